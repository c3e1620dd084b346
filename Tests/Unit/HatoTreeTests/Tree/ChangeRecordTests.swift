import HatoModel
import Testing

@testable import HatoTree

struct ChangeRecordTests {
    private func record(_ changes: [PathChange], uid: String? = "u1") -> ChangeRecord {
        ChangeRecord(version: 1 << 40, time: 1_700_000_000_000, uid: uid, database: "default", changes: changes)
    }

    @Test func rareMembersAreStoredSeparately() throws {
        let plain = PathChange(path: try TreePath("/a"), before: nil, after: nil, depths: (1, 1))
        let (one, two) = (NodeSkeleton(tree: .leaf(.number(1))), NodeSkeleton(tree: .leaf(.number(2))))
        var change = plain
        change.beforeSkeleton = one
        change.afterSkeleton = two
        change.standing = .leaf(.bool(true))
        let copy = change
        #expect(change.beforeSkeleton == one && change.afterSkeleton == two && change.standing == .leaf(.bool(true)))
        change.afterSkeleton = one
        #expect(copy.afterSkeleton == two && change != copy)
        change.afterSkeleton = two
        // Another object with equal contents.
        #expect(change == copy && change.hashValue == copy.hashValue)
        (change.beforeSkeleton, change.afterSkeleton, change.standing) = (nil, nil, nil)
        #expect(change == plain && change.hashValue == plain.hashValue)
    }

    @Test func recordIsReadBack() throws {
        let node = try TreeNode(json: [
            "a": [".value": true, ".priority": "p"], "b": ["c": -1.5, "d": "é😀", ".priority": 3], "1": false,
        ])
        let changes = [
            PathChange(path: .root, before: .empty, after: node, depths: (0, 0)),
            PathChange(path: try TreePath("/x/鳩/1"), before: node, after: .empty, depths: (3, 1)),
            PathChange(path: try TreePath("/x/.priority"), before: .leaf(.number(1)), after: .empty, depths: (1, 1)),
            PathChange(
                path: try TreePath("/y/z"), before: .empty, after: .leaf(.string("")), depths: (1, 2),
                replacedLeafDepth: 1),
            PathChange(path: try TreePath("/w"), before: nil, after: .empty, depths: (1, 0)),
        ]
        var moved = changes[2]
        moved.standing = node
        for uid in ["u1", nil] {
            let record = record(changes + [moved], uid: uid)
            #expect(try ChangeRecord(decoding: record.encoded) == record)
        }
    }

    @Test func nodesBeyondTheLimitAreOmitted() throws {
        let big = TreeNode.leaf(.string(String(repeating: "x", count: 600_000)))
        let changes = try ["/a", "/b", "/c"].map {
            PathChange(path: try TreePath($0), before: .empty, after: big, depths: (0, 1))
        }
        let read = try ChangeRecord(decoding: record(ChangeRecord.cut(changes)).encoded)
        #expect(read.changes.map { $0.after == big } == [true, false, false])
        #expect(read.changes.map(\.isTruncated) == [false, true, true])
        #expect(read.changes.map(\.path) == changes.map(\.path))
    }

    @Test func standingNodesCountAsOftenAsTheyAreStored() throws {
        let big = TreeNode.leaf(.string(String(repeating: "x", count: 400_000)))
        var changes = try ["/a/.priority", "/b/.priority", "/c/d"].map {
            PathChange(path: try TreePath($0), before: .empty, after: .leaf(.number(1)), depths: (1, 1))
        }
        for index in changes.indices { changes[index].standing = big }
        #expect(ChangeRecord.byteCount(of: changes) > 2_000_000)
        let read = try ChangeRecord(decoding: record(ChangeRecord.cut(changes)).encoded)
        #expect(read.changes.map { $0.standing == big } == [true, false, false])
        #expect(read.changes.map(\.isTruncated) == [false, false, false])
    }

    @Test func recordOfTheFirstFormatIsRead() throws {
        let changes = [PathChange(path: try TreePath("/w"), before: nil, after: .empty, depths: (1, 0))]
        var bytes = record(changes).encoded
        #expect(bytes[0] == 3)
        bytes[0] = 1
        #expect(try ChangeRecord(decoding: bytes) == record(changes))
    }

    @Test func everyCutRecordIsRefused() throws {
        let node = try TreeNode(json: ["a": ["b": "text", "c": 1]])
        let bytes = record([PathChange(path: try TreePath("/a"), before: node, after: node, depths: (1, 1))]).encoded
        for length in 0..<bytes.count {
            #expect(throws: TreeError.self) { try ChangeRecord(decoding: Array(bytes[..<length])) }
        }
        #expect(throws: TreeError.self) { try ChangeRecord(decoding: [99] + bytes.dropFirst()) }
    }
}
