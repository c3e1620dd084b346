import HatoModel
import Testing

@testable import HatoTree

struct SimpleHashTests {
    @Test func missingNodeHasItsOwnEtag() {
        #expect(SimpleHash.etag(.empty) == "null_etag")
        #expect(SimpleHash.hash(.empty) == "")
    }

    @Test func hashSeesPrioritiesAndTypes() throws {
        let values: [JSONValue] = [
            1, "1", true, [".value": 1, ".priority": 1], [".value": 1, ".priority": "1"], ["a": 1], ["a": "1"],
            ["a": [".value": 1, ".priority": 1]], ["a": 1, ".priority": 1],
        ]
        let hashes = try values.map { SimpleHash.hash(try TreeNode(json: $0)) }
        #expect(Set(hashes).count == values.count)
    }

    /// None, numbers, strings; equal ones by key, integers first. Hashed manually as in the specification.
    @Test func childrenAreHashedByPriorityThenKey() throws {
        func leaf(_ priority: JSONValue) -> JSONValue { [".value": 1, ".priority": priority] }
        var value: JSONObject = [
            "0": leaf("a"), "10": 1, "9": 1, "a": 1, "b": leaf(2), "c": leaf(10), "d": leaf("A"), "e": leaf(10),
            "gone": nil,
        ]
        #expect(SimpleHash.hash(try TreeNode(json: .object(value))) == "+y4XHJ7Wk5+oMRIPNhK5cs1okXw=")
        value[".priority"] = .number(-1.5)
        #expect(SimpleHash.hash(try TreeNode(json: .object(value))) == "RctqoLkpJvx8jx6L7X/YdkOt8xE=")
    }

    /// A letter with an accent, and the same composed of two characters.
    @Test func textsAndKeysAreHashedByTheirBytes() throws {
        let values: [JSONValue] = ["\u{E9}", "e\u{301}", ["\u{E9}": 1], ["e\u{301}": 1]]
        let hashes = try values.map { SimpleHash.hash(try TreeNode(json: $0)) }
        #expect(
            hashes == [
                "1M+kSgpwpb2WVucwSmGGq+h8/uU=", "33Mx8t4PL5PTL/hAs1ai1jzzuPo=", "4/rAbuuf7D4aOXH2KzojC0jeRVE=",
                "cUgkKoRkk+Ip2zL2jADpT+RErHY=",
            ])
    }
}
