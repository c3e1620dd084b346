import HatoModel
import HatoTesting
import Testing

/// Queries as JSON against a simple implementation of the specification (realtime-database §4, protocol §5).
@Suite struct QueryFuzzTests {
    @Test func queryIsReadOrRefusedWithAMessageAndReadsBack() {
        let failures = FuzzInputs.failures(3_000) { random in
            let json = random.query()
            let shown = String(decoding: json.encoded, as: UTF8.self)
            do {
                let query = try TreeQuery(json)
                if let count = query.limit?.count, !(1...1_000_000).contains(count) { return "limit of \(shown)" }
                let again = try TreeQuery(query.json)
                guard again == query, again.hashValue == query.hashValue, again.json == query.json else {
                    return "not read back: \(shown)"
                }
                return Self.isPlausible(json) ? nil : "accepted: \(shown)"
            } catch let error as ArgumentError {
                if error.reason.isEmpty || !error.message.contains("e.g. ") { return "\(shown): \(error)" }
                return Self.limitIsWrong(json) || !Self.isPlainlyRight(json) ? nil : "refused: \(shown): \(error)"
            }
        }
        #expect(failures == [])
    }

    @Test func querySelectsWhatItsDefinitionSays() {
        let failures = FuzzInputs.failures(2_000) { random in
            let json = random.plainQuery()
            var children: JSONObject = [:]
            for _ in 0..<random.below(9) { children[random.one(of: SeededRandom.names)] = random.child() }
            let node = try TreeNode(json: .object(children))
            let found = try TreeQuery(json).select(from: node).map(\.key.text)
            let expected = Self.selected(json, children)
            return found == expected
                ? nil : "\(json.encoded.text) of \(JSONValue.object(children).encoded.text): \(found), not \(expected)"
        }
        #expect(failures == [])
    }

    // MARK: Plain readings

    private static let bounds = ["startAt", "startAfter", "endAt", "endBefore", "equalTo"]

    /// Whether each member is allowed; false means that no query may have it.
    private static func isPlausible(_ json: JSONValue) -> Bool {
        guard let members = json.object?.members else { return false }
        guard
            members.allSatisfy({
                ["orderBy", "limitToFirst", "limitToLast"].contains($0.name) || bounds.contains($0.name)
            })
        else { return false }
        if limitIsWrong(json) { return false }
        let order = json["orderBy"]
        let named = members.filter { bounds.contains($0.name) || !$0.value.isNull }
        return order?.string != nil || named.isEmpty
    }

    private static func limitIsWrong(_ json: JSONValue) -> Bool {
        ["limitToFirst", "limitToLast"].contains { name in
            guard let value = json[name], !value.isNull else { return false }
            guard let number = value.number else { return true }
            return !(number >= 1 && number <= 1_000_000 && number.truncatingRemainder(dividingBy: 1) == 0)
        }
    }

    /// Whether its form is certainly that of a query: a path of plain keys, and a limit or a bound that is a number.
    private static func isPlainlyRight(_ json: JSONValue) -> Bool {
        guard let members = json.object?.members, let order = json["orderBy"]?.string else { return false }
        guard ["date", "a/b", "$value"].contains(order) else { return false }
        let rest = members.filter { $0.name != "orderBy" }
        return rest.count <= 1
            && rest.allSatisfy { member in
                bounds.contains(member.name) && member.value.number != nil || member.name.hasPrefix("limitTo")
            }
    }

    private static func selected(_ json: JSONValue, _ children: JSONObject) -> [String] {
        let order = json["orderBy"]?.string ?? ""
        func place(_ member: JSONObject.Member) -> (JSONValue, String) {
            switch order {
            case "$key": (.null, member.name)
            case "$value": (member.value, member.name)
            default: (member.value[order] ?? .null, member.name)
            }
        }
        func bound(_ name: String) -> (JSONValue, String?)? {
            guard let value = json[name] else { return nil }
            if order == "$key" { return (.null, value.string) }
            return value["value"].map { ($0, value["key"]?.string) } ?? (value, nil)
        }
        /// Compares a position with a bound; children with the value of a bound without a key are at it.
        func compare(_ place: (JSONValue, String), _ bound: (JSONValue, String?)) -> Int {
            let order = compareValues(place.0, bound.0)
            guard order == 0, let key = bound.1 else { return order }
            return KeyOrder.compare(place.1, key).signum()
        }
        let all = children.members.filter { !$0.value.isNull }.map(place).sorted {
            let order = compareValues($0.0, $1.0)
            return order != 0 ? order < 0 : KeyOrder.compare($0.1, $1.1) < 0
        }
        let kept = all.filter { place in
            (bound("startAt").map { compare(place, $0) >= 0 } ?? true)
                && (bound("startAfter").map { compare(place, $0) > 0 } ?? true)
                && (bound("endAt").map { compare(place, $0) <= 0 } ?? true)
                && (bound("endBefore").map { compare(place, $0) < 0 } ?? true)
                && (bound("equalTo").map { compare(place, $0) == 0 } ?? true)
        }.map(\.1)
        if let count = json["limitToFirst"]?.number { return Array(kept.prefix(Int(count))) }
        if let count = json["limitToLast"]?.number { return Array(kept.suffix(Int(count))) }
        return kept
    }

    private static func compareValues(_ left: JSONValue, _ right: JSONValue) -> Int {
        func rank(_ value: JSONValue) -> Int {
            switch value {
            case .null: 0
            case .bool(false): 1
            case .bool(true): 2
            case .number: 3
            case .string: 4
            default: 5
            }
        }
        if rank(left) != rank(right) { return rank(left) < rank(right) ? -1 : 1 }
        if let one = left.number, let other = right.number { return one == other ? 0 : one < other ? -1 : 1 }
        guard let one = left.string, let other = right.string else { return 0 }
        if Array(one.utf16) == Array(other.utf16) { return 0 }
        return one.utf16.lexicographicallyPrecedes(other.utf16) ? -1 : 1
    }
}

extension [UInt8] {
    fileprivate var text: String { String(decoding: self, as: UTF8.self) }
}

extension SeededRandom {
    fileprivate static let names = ["1", "2", "10", "-3", "a", "b", "c", "é", "😀", "\u{FFFF}", "01"]
    private static let numbers: [Double] = [
        0, 1, 2, -1, 0.5, 1_000_000, 1_000_001, 2_147_483_647, 2_147_483_648, 9_007_199_254_740_991,
        9_007_199_254_740_992,
        4_611_686_018_427_387_392, 9_223_372_036_854_774_784, 9_223_372_036_854_775_808, 18_446_744_073_709_551_616,
        1e308,
        -1e308, 5e-324, 999_999.5,
    ]

    private mutating func anything(depth: Int = 2) -> JSONValue {
        switch below(depth > 0 ? 9 : 6) {
        case 0: .null
        case 1: .bool(once(in: 2))
        case 2, 3: .number(one(of: Self.numbers))
        case 4, 5:
            .string(
                one(of: [
                    "", "a", "$key", "$value", "$priority", "date", "[MIN_NAME]", "[MAX_NAME]", "a/b", ".", "1",
                    "\u{0}", "😀", "k",
                ]))
        case 6: .array([anything(depth: depth - 1)])
        case 7: ["value": anything(depth: 0), "key": anything(depth: 0)]
        default: [one(of: ["value", "key", "x", ".sv"]): anything(depth: depth - 1)]
        }
    }

    /// A query, or nearly one.
    fileprivate mutating func query() -> JSONValue {
        if once(in: 20) { return anything() }
        var object: JSONObject = [:]
        if !once(in: 8) {
            object["orderBy"] =
                once(in: 8)
                ? anything()
                : .string(one(of: ["$key", "$value", "$priority", "date", "a/b", "/", "a/.priority", "$x", ""]))
        }
        for name in ["startAt", "startAfter", "endAt", "endBefore", "equalTo"] where once(in: 5) {
            object[name] = anything()
        }
        for name in ["limitToFirst", "limitToLast"] where once(in: 4) {
            object[name] = once(in: 6) ? anything() : .number(one(of: Self.numbers))
        }
        if once(in: 20) { object[one(of: ["limit", "", "orderby", "shallow"])] = anything() }
        return .object(object)
    }

    private mutating func primitive() -> JSONValue {
        one(of: [.null, false, true, 1, 2, -1, 1.5, "a", "b", "é", "😀", "\u{FFFF}"])
    }

    fileprivate mutating func child() -> JSONValue {
        once(in: 3) ? primitive() : ["v": primitive(), "w": primitive(), "z": 1]
    }

    /// A valid query.
    fileprivate mutating func plainQuery() -> JSONValue {
        var object: JSONObject = ["orderBy": .string(one(of: ["$key", "$value", "v", "w"]))]
        let isByKey = object["orderBy"] == "$key"
        var bounds: [String] = once(in: 4) ? ["equalTo"] : []
        if bounds.isEmpty {
            if once(in: 2) { bounds.append(one(of: ["startAt", "startAfter"])) }
            if once(in: 2) { bounds.append(one(of: ["endAt", "endBefore"])) }
        }
        for name in bounds {
            let key = JSONValue.string(one(of: Self.names))
            if isByKey {
                object[name] = key
            } else {
                object[name] = once(in: 3) ? ["value": primitive(), "key": key] : primitive()
            }
        }
        if once(in: 2) { object[one(of: ["limitToFirst", "limitToLast"])] = .number(Double(1 + below(6))) }
        return .object(object)
    }
}
