import HatoModel
import HatoRules
import HatoTesting

@testable import HatoTree

extension SeededRandom {
    mutating func chance(_ one: Int, in all: Int) -> Bool { Int.random(in: 0..<all, using: &self) < one }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &self)]
    }
}

/// Random data that is difficult for orders: equal values of all kinds, texts with equal beginnings, keys like numbers.
struct RandomTree {
    var random: SeededRandom

    static let keys = [
        "a", "b", "-", "0", "00", "1", "01", "10", "9", "-1", "2147483648", "é", "e\u{301}", "🕊", "\u{FFFD}", "Z", "_",
    ]
    static let long = String(repeating: "長", count: 256)

    mutating func key() -> TreeKey { TreeKey(unchecked: random.pick(Self.keys)) }

    mutating func primitive() -> JSONValue {
        switch Int.random(in: 0..<12, using: &random) {
        case 0: false
        case 1: true
        case 2: .number(0)
        case 3: .number(Double(Int.random(in: -3...3, using: &random)))
        case 4: .number(Double.random(in: -2...2, using: &random))
        case 5: .number(random.pick([1e300, -1e300, 5e-324, -5e-324, 9_007_199_254_740_991]))
        case 6:
            .string(random.pick(["", "a", "ab", "b", "é", "e\u{301}", "🕊", "\u{FFFD}", "\u{0}", "\u{1}a", "\u{7F}"]))
        case 7: .string(Self.long + random.pick(["", "a", "b", "🕊", "\u{FFFD}"]))
        case 8: .string(String(Self.long.dropLast()) + random.pick(["🕊", "🕊a", "x"]))
        default: .number(Double(Int.random(in: 1...5, using: &random)))
        }
    }

    mutating func priority() -> JSONValue {
        random.pick([.null, 1, 2, -1.5, "p", "q", "", .string(Self.long + "a"), .string(Self.long + "b")])
    }

    /// A typical child of a collection: fields named a and b, sometimes a leaf, null, or something deeper.
    mutating func value(depth: Int) -> JSONValue {
        if depth == 0 || random.chance(1, in: 5) {
            if random.chance(1, in: 8) { return .null }
            let leaf = primitive()
            return random.chance(1, in: 6) ? [".value": leaf, ".priority": priority()] : leaf
        }
        var object: JSONObject = [:]
        for _ in 0..<Int.random(in: 0...4, using: &random) { object[key().text] = value(depth: depth - 1) }
        for field in ["a", "b"] where random.chance(1, in: 2) { object[field] = primitive() }
        if random.chance(1, in: 5) { object[".priority"] = priority() }
        return .object(object)
    }

    /// A query in any order, with any bounds and limits, as JSON.
    mutating func query() -> TreeQuery {
        let order: TreeQuery.Order = random.pick([
            .key, .value, .priority, .child(TreePath(uncheckedKeys: [TreeKey(unchecked: "a")])),
            .child(TreePath(uncheckedKeys: [TreeKey(unchecked: "b"), TreeKey(unchecked: "a")])),
        ])
        var object: JSONObject = ["orderBy": .string(order.text)]
        switch Int.random(in: 0..<8, using: &random) {
        case 0: break
        case 1: object["equalTo"] = bound(order)
        default:
            if random.chance(1, in: 2) { object[random.pick(["startAt", "startAfter"])] = bound(order) }
            if random.chance(1, in: 2) { object[random.pick(["endAt", "endBefore"])] = bound(order) }
        }
        switch Int.random(in: 0..<3, using: &random) {
        case 0: break
        case 1: object["limitToFirst"] = .number(Double(Int.random(in: 1...4, using: &random)))
        default: object["limitToLast"] = .number(Double(Int.random(in: 1...4, using: &random)))
        }
        do {
            return try TreeQuery(.object(object))
        } catch {
            preconditionFailure("\(error) in \(object)")
        }
    }

    private mutating func bound(_ order: TreeQuery.Order) -> JSONValue {
        let odd = [
            "[MIN_NAME]", "[MAX_NAME]", "", "\u{0}", "\u{1}", "a\u{0}", "k-", "a" + String(repeating: "z", count: 785),
        ]
        let name = JSONValue.string(random.chance(1, in: 5) ? random.pick(odd) : key().text)
        if order == .key { return name }
        var value = random.chance(1, in: 8) ? .null : primitive()
        if order == .priority {
            value = priority()
        }
        return random.chance(1, in: 3) ? ["value": value, "key": name] : value
    }
}
