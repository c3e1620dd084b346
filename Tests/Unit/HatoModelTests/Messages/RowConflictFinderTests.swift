import HatoModel
import Testing

@Suite struct RowConflictFinderTests {
    private func problem(_ text: String, in places: inout RowConflictFinder) throws -> String? {
        places.problem(with: try TreePath(text))
    }

    @Test func contradictoryRowsAreFound() throws {
        var places = RowConflictFinder()
        for path in ["/a/b/c", "/a/b/d", "/a/\u{E9}", "/e", "/e/.priority"] {
            let found = try problem(path, in: &places)
            #expect(found == nil, "\(path)")
        }
        for (path, words) in [
            ("/a/b/c", #"has "/a/b/c" a second time"#),
            ("/a/b", #"has a value for "/a/b"; earlier rows are below it"#),
            ("/", "earlier rows are below it"),
            ("/e/f/g", #"has "/e/f/g", which is below the value of "/e""#),
        ] {
            let found = try problem(path, in: &places)
            #expect(found?.contains(words) == true, "\(path): \(found ?? "nothing")")
        }
        // Keys are compared by bytes: composed and decomposed letters differ.
        let other = try problem("/a/e\u{301}", in: &places)
        #expect(other == nil)
    }

    @Test func rowsAtPathsBeyondTheLimitAreNotCompared() throws {
        // Capacity for the root and one path below it.
        var places = RowConflictFinder(bytesMax: RowConflictFinder.placeBytes + 1)
        for path in ["/a", "/b", "/b", "/b/c"] {
            let found = try problem(path, in: &places)
            #expect(found == nil, "\(path)")
        }
        for path in ["/a", "/a/b", "/"] {
            let found = try problem(path, in: &places)
            #expect(found != nil, "\(path)")
        }
    }

    @Test func withoutCapacityNothingIsCompared() throws {
        var places = RowConflictFinder(bytesMax: 0)
        for path in ["/a", "/a", "/a/b", "/"] {
            let found = try problem(path, in: &places)
            #expect(found == nil, "\(path)")
        }
    }
}
