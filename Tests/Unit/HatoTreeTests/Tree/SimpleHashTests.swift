import HatoModel
import Testing

@testable import HatoTree

struct SimpleHashTests {
    @Test func nothingHasAnEtagOfItsOwn() {
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
}
