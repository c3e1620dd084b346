import HatoModel
import HatoTree
import Testing

@testable import HatoMessages

struct FeedMatchesTests {
    private func change(_ path: TreePath, _ before: TreeNode, _ after: TreeNode) -> PathChange {
        PathChange(path: path, before: before, after: after, depths: (path.depth, path.depth))
    }

    private func changes(_ count: Int) -> [PathChange] {
        (0..<count).map { number in
            let path = TreePath(uncheckedKeys: ["chats", "c", "x", "k\(number)"].map { TreeKey(unchecked: $0) })
            return change(path, .leaf(.number(Double(number))), .leaf(.bool(true)))
        }
    }

    private func matches(_ changes: [PathChange]) throws -> FeedMatches {
        var matches = FeedMatches(try FeedPattern("/chats/{chat}"), matchesMax: 100)
        for change in changes { matches.add(change) }
        return matches
    }

    @Test func allPartsOfANodeAreOneMatch() throws {
        let matches = try matches(changes(3) + [change("/chats/d", .empty, .leaf(.bool(false)))])
        #expect(matches.all.map(\.path.text) == ["/chats/c", "/chats/d"])
        #expect(matches.all.map(\.isPartial) == [true, false])
        #expect(matches.all.first?.before?.export == ["x": ["k0": 0, "k1": 1, "k2": 2]])
        #expect(matches.all.first?.after?.export == ["x": ["k0": true, "k1": true, "k2": true]])
    }

    /// Copying what is known of the node for each of its parts, sixteen times the parts would take a hundred times as
    /// long.
    @Test func manyPartsOfANodeCostWhatTheyAre() throws {
        func time(_ count: Int) throws -> Duration {
            let changes = changes(count)
            return try (0..<3).map { _ in
                var found = 0
                let time = try ContinuousClock().measure { found = try matches(changes).all.count }
                #expect(found == 1)
                return time
            }.min() ?? .zero
        }
        let (few, many) = (try time(2_000), try time(32_000))
        #expect(many < few * 50)
    }
}
