import HatoModel
import Testing

@Suite struct JSONEqualityTests {
    private func nested(_ depth: Int, _ innermost: JSONValue, isReversed: Bool = false) -> JSONValue {
        (0..<depth).reduce(innermost) { value, _ in
            let members = [JSONObject.Member("a", value), JSONObject.Member("b", 1)]
            return .object(JSONObject(uniqueMembers: isReversed ? members.reversed() : members))
        }
    }

    /// Comparing the values of a level twice, this would not end.
    @Test func deepObjectsAreComparedOnce() {
        let value = nested(60, 1)
        #expect(value == nested(60, 1))
        #expect(value != nested(60, 2))
        #expect(value == nested(60, 1, isReversed: true))
        #expect(value != nested(60, 2, isReversed: true))
        #expect(value.hashValue == nested(60, 1, isReversed: true).hashValue)
    }

    @Test func theOrderOfMembersDoesNotCount() {
        let value: JSONValue = ["a": 1, "b": ["c": 2, "d": 3]]
        #expect(value == ["b": ["d": 3, "c": 2], "a": 1])
        #expect(value != ["b": ["d": 3, "c": 1], "a": 1])
        #expect(value != ["b": ["d": 3, "e": 2], "a": 1])
        #expect(value != ["a": 1])
        #expect(JSONValue.object(["a": 1, "b": 2]) != ["a": 2, "b": 1])
    }
}
