import HatoModel
import Testing

@testable import HatoFirebase

/// Queries of both generations of clients (spec realtime-database §4.3), and what they select natively.
@Suite struct WireQueryTests {
    private static let max = "[MAX_NAME]"
    private static let long = "j" + String(repeating: "z", count: 785)

    /// A query of the wire, and the native one.
    private static let rows: [(wire: String, native: String?)] = [
        ("{}", nil),
        (#"{"i":"date"}"#, nil),
        (#"{"i":".key"}"#, nil),
        // Limits.
        (#"{"l":5,"vf":"l"}"#, #"{"orderBy":"$priority","limitToFirst":5}"#),
        (#"{"l":5,"vf":"r"}"#, #"{"orderBy":"$priority","limitToLast":5}"#),
        (#"{"l":5}"#, #"{"orderBy":"$priority","limitToLast":5}"#),
        (#"{"l":5,"sp":1,"i":"n"}"#, #"{"orderBy":"n","startAt":1,"limitToFirst":5}"#),
        (#"{"l":5,"ep":1,"i":"n"}"#, #"{"orderBy":"n","endAt":1,"limitToLast":5}"#),
        (#"{"l":5,"sp":1,"i":"n","vf":"r"}"#, #"{"orderBy":"n","startAt":1,"limitToLast":5}"#),
        // Orders.
        (#"{"i":".value","sp":true}"#, #"{"orderBy":"$value","startAt":true}"#),
        (#"{"i":".priority","sp":null}"#, #"{"orderBy":"$priority","startAt":null}"#),
        (#"{"i":"a/b","ep":"x"}"#, #"{"orderBy":"a/b","endAt":"x"}"#),
        (#"{"i":".key","sp":"a","ep":"b"}"#, #"{"orderBy":"$key","startAt":"a","endAt":"b"}"#),
        // The newer generation.
        (
            #"{"sp":3,"sn":"[MAX_NAME]","sin":false,"i":"n"}"#,
            #"{"orderBy":"n","startAfter":{"value":3,"key":"[MAX_NAME]"}}"#
        ),
        (
            #"{"ep":3,"en":"[MIN_NAME]","ein":false,"i":"n"}"#,
            #"{"orderBy":"n","endBefore":{"value":3,"key":"[MIN_NAME]"}}"#
        ),
        (#"{"sp":"k","sin":false,"i":".key"}"#, #"{"orderBy":"$key","startAfter":"k"}"#),
        (#"{"ep":"k","ein":false,"i":".key"}"#, #"{"orderBy":"$key","endBefore":"k"}"#),
        (
            #"{"sp":3,"sn":"k","sin":false,"i":"n"}"#, #"{"orderBy":"n","startAfter":{"value":3,"key":"k"}}"#
        ),
        (#"{"sp":3,"sin":true,"ep":4,"ein":true,"i":"n"}"#, #"{"orderBy":"n","startAt":3,"endAt":4}"#),
        // A key that is absent is the lowest, or the highest, one.
        (#"{"sp":3,"sin":false,"i":"n"}"#, #"{"orderBy":"n","startAfter":{"value":3,"key":"[MIN_NAME]"}}"#),
        (#"{"ep":3,"ein":false,"i":"n"}"#, #"{"orderBy":"n","endBefore":{"value":3,"key":"[MAX_NAME]"}}"#),
        // The older generation.
        (#"{"sp":3,"sn":"[MAX_NAME]","i":"n"}"#, #"{"orderBy":"n","startAt":{"value":3,"key":"[MAX_NAME]"}}"#),
        (#"{"sp":3,"sn":"k-","i":"n"}"#, #"{"orderBy":"n","startAt":{"value":3,"key":"k-"}}"#),
        (
            "{\"ep\":\"m\",\"en\":\"\(long)\",\"i\":\"n\"}",
            "{\"orderBy\":\"n\",\"endAt\":{\"value\":\"m\",\"key\":\"\(long)\"}}"
        ),
        (#"{"sp":"k-","i":".key"}"#, #"{"orderBy":"$key","startAt":"k-"}"#),
        // equalTo.
        (#"{"sp":3,"ep":3,"i":"n"}"#, #"{"orderBy":"n","startAt":3,"endAt":3}"#),
        (
            #"{"sp":3,"sn":"k","ep":3,"en":"k","i":"n"}"#,
            #"{"orderBy":"n","startAt":{"value":3,"key":"k"},"endAt":{"value":3,"key":"k"}}"#
        ),
    ]

    @Test func queriesBecomeNativeOnes() throws {
        for row in Self.rows {
            let query = try WireQuery(try JSONParser.parse(row.wire))
            let native = try row.native.map { try JSONParser.parse($0) }
            #expect(query.native == native, "\(row.wire)")
        }
    }

    @Test func nativeQueriesAreTaken() throws {
        for row in Self.rows {
            guard let native = try WireQuery(try JSONParser.parse(row.wire)).native else { continue }
            _ = try TreeQuery(native)
        }
    }

    @Test func wrongQueriesAreRefused() throws {
        let wrong = [
            "7", "[]", "null", #"{"x":1}"#, #"{"l":"5"}"#, #"{"sp":{}}"#, #"{"ep":[]}"#, #"{"sn":5,"sp":1}"#,
            #"{"sin":1,"sp":1}"#, #"{"vf":"x","l":1}"#, #"{"i":7}"#, #"{"i":"$key","l":1}"#, #"{"i":"$value","sp":1}"#,
        ]
        for text in wrong {
            let json = try JSONParser.parse(text)
            #expect(throws: ArgumentError.self, "\(text)") { try WireQuery(json) }
        }
    }

    @Test func canonicalTextHasSortedMembers() throws {
        let one = try WireQuery(try JSONParser.parse(#"{"vf":"r","l":2.0,"i":"n"}"#))
        let other = try WireQuery(try JSONParser.parse(#"{"i":"n","l":2,"vf":"r"}"#))
        #expect(one.canonical == #"{"i":"n","l":2,"vf":"r"}"#)
        #expect(one.canonical == other.canonical)
        #expect(try WireQuery(.object([:])).canonical.isEmpty)
    }

    @Test(arguments: [
        ("l", "\"x\"", "\"l\" must be a number"), ("i", "5", "\"i\" must be a text"),
        ("vf", "\"x\"", "\"vf\" must be \"l\" or \"r\""), ("sn", "5", "\"sn\" must be a text"),
        ("ein", "1", "\"ein\" must be true or false"), ("zz", "1", "A query has no such \"zz\""),
    ])
    func errorsSayWhatAMemberMustBe(name: String, value: String, message: String) throws {
        let query = try JSONParser.parse("{\"\(name)\":\(value)}")
        do {
            _ = try WireQuery(query)
            Issue.record("\(name)")
        } catch {
            #expect(error.message == "\(message), e.g. {\"i\":\"date\",\"l\":50,\"vf\":\"r\"}")
        }
    }

    // MARK: What is selected

    /// A slow, simple definition of both encodings: the children whose position is between the bounds.
    private struct Model {
        let object: JSONObject

        func selects(_ key: String, _ value: Double) -> Bool {
            isBetween(position(key, value), "sp", "sn", "sin", KeyOrder.minName) { $0 > 0 }
                && isBetween(position(key, value), "ep", "en", "ein", KeyOrder.maxName) { $0 < 0 }
        }

        private func position(_ key: String, _ value: Double) -> (JSONValue, String) {
            object["i"] == ".key" ? (.null, key) : (.number(value), key)
        }

        private func isBetween(
            _ position: (JSONValue, String), _ value: String, _ key: String, _ isInclusive: String, _ edge: String,
            _ isInside: (Int) -> Bool
        ) -> Bool {
            guard let bound = object[value] else { return true }
            var limit = (bound, object[key]?.string ?? edge)
            if object["i"] == ".key" { limit = (.null, bound.string ?? "") }
            let order = compare(position, limit)
            return isInside(order) || (order == 0 && object[isInclusive]?.bool != false)
        }

        private func compare(_ left: (JSONValue, String), _ right: (JSONValue, String)) -> Int {
            let order = (left.0.number ?? -1) - (right.0.number ?? -1)
            return order == 0 ? KeyOrder.compare(left.1, right.1) : order < 0 ? -1 : 1
        }
    }

    @Test func bothEncodingsSelectWhatTheirBoundsSay() throws {
        let children = [("a", 1.0), ("b", 2), ("c", 2), ("d", 3), ("1", 2), ("j~", 2)]
        let node = try TreeNode(
            json: .object(
                JSONObject(uniqueMembers: children.map { .init($0.0, ["n": .number($0.1)]) })), at: .root)
        let keys: [JSONValue] = ["a", "b", "c", "b-", "[MIN_NAME]", "[MAX_NAME]", .string(Self.long), "1"]
        let failures = SeededInputs.failures(400) { random in
            let isByKey = random.once(in: 3)
            var object: JSONObject = ["i": isByKey ? ".key" : "n"]
            for (value, key, isInclusive) in [("sp", "sn", "sin"), ("ep", "en", "ein")] where !random.once(in: 4) {
                object[value] = isByKey ? random.one(of: keys) : .number(Double(random.below(5)))
                if !isByKey, random.once(in: 2) { object[key] = random.one(of: keys) }
                if random.once(in: 2) { object[isInclusive] = .bool(random.once(in: 2)) }
            }
            guard let query = try? WireQuery(.object(object)) else { return "refused \(object)" }
            let model = Model(object: object)
            let expected = Set(children.filter { model.selects($0.0, $0.1) }.map(\.0))
            guard let native = query.native else { return expected.count == 6 ? nil : "everything for \(object)" }
            guard let tree = try? TreeQuery(native) else { return "native refused \(native)" }
            let found = Set(tree.select(from: node).map(\.key.text))
            return found == expected ? nil : "\(object): \(found), not \(expected)"
        }
        #expect(failures.isEmpty, "\(failures)")
    }
}
