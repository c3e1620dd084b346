import HatoModel
import HatoTesting
import Testing

@testable import HatoTree

/// Skeletons of nodes that are too large to keep.
struct NodeSkeletonTests {
    private let node: JSONValue = [
        "a": ["x": 1, "y": "text of more than eight bytes", ".priority": 2], "b": [".value": true, ".priority": "p"],
        "c": ["d": ["e": -0.5]],
    ]

    private func skeleton(_ json: JSONValue) throws -> NodeSkeleton { NodeSkeleton(of: try TreeNode(json: json)) }

    private func key(_ text: String) -> TreeKey { TreeKey(unchecked: text) }

    private func keys(_ skeleton: NodeSkeleton?) -> [String]? { skeleton?.childKeys?.map(\.text) }

    private func text(_ length: Int) -> JSONValue { .string(String(repeating: "x", count: length)) }

    @Test func skeletonHasAllKeysAndDistinguishesNodes() throws {
        let skeleton = try skeleton(node)
        #expect(keys(skeleton) == ["a", "b", "c"])
        #expect(keys(skeleton.child(key("a"))) == ["x", "y"])
        #expect(keys(skeleton.child(key("b"))) == [])
        #expect(skeleton.child(key("z")) == nil)
        let same = try self.skeleton(node)
        #expect(skeleton.isSurelySame(as: same))
        let others: [(String, JSONValue)] = [
            ("/a/x", 2), ("/a/y", "text of more than eight byteS"), ("/a/.priority", 3), ("/b/.priority", "q"),
            ("/c/d/e", nil), ("/b", "true"), ("/new", 1),
        ]
        for (path, value) in others {
            let path = try TreePath(path)
            let changed = try TreeNode(json: node).setting(TreeNode(json: value), at: path)
            #expect(!NodeSkeleton(of: changed).isSurelySame(as: skeleton), "\(path)")
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>) func skeletonOfRowsIsThatOfTheNode(seed: UInt64) throws {
        var random = RandomTree(random: SeededRandom(seed: seed))
        let tree = MemoryTree()
        let value = random.value(depth: 4)
        try tree.set("/at", value)
        guard try tree.nodes.exists(at: TreePath("/at")) else { return }
        var budget = SkeletonBudget()
        let read = try tree.nodes.skeleton(at: TreePath("/at"), &budget)
        #expect(read == NodeSkeleton(of: try tree.nodes.node(at: TreePath("/at"))))
    }

    @Test func fingerprintsOfLikeValuesDiffer() {
        var seen: Set<Double> = []
        var leaves: [TreeLeaf] = [.bool(true), .bool(false), .string("")]
        leaves += (0..<500).map { .number(Double($0)) } + (0..<500).map { .string("\($0)") }
        leaves += (1..<100).map { .string(String(repeating: "\0", count: $0)) }
        for leaf in leaves { seen.insert(NodeSkeleton.fingerprint(of: leaf)) }
        #expect(seen.count == leaves.count)
        #expect(seen.allSatisfy { $0 >= 0 && $0 < 9_007_199_254_740_992 && $0 == $0.rounded() })
        // The form in records.
        #expect(NodeSkeleton.fingerprint(of: .string("hato")) == 3_025_663_264_705_571)
    }

    @Test func upperKeysOfATooLargeNodeAreKept() throws {
        let tree = MemoryTree()
        let members = (0..<50).map { JSONObject.Member("k\($0)", ["a": 1, "b": 2]) }
        try tree.set("/big", ["many": .object(JSONObject(uniqueMembers: members)), "few": ["x": ["y": 1]]])
        var small = SkeletonBudget()
        small.rows = 20
        small.keys = 30
        let node = try tree.nodes.node(at: TreePath("/big"))
        for isRead in [true, false] {
            var budget = small
            let skeleton =
                try isRead
                ? tree.nodes.skeleton(at: TreePath("/big"), &budget) : NodeSkeleton(of: node, &budget)
            #expect(skeleton.isShallow)
            #expect(keys(skeleton) == ["few", "many"])
            #expect(keys(skeleton.child(key("few"))) == ["x"])
            #expect(keys(skeleton.child(key("many"))) == nil, "folded: it has more than there is room for")
            #expect(!skeleton.isSurelySame(as: skeleton))
            #expect(budget.keys <= 0)
        }
        let counting = CountingReader(tree.rows)
        var budget = small
        _ = try NodeReader(counting, codec: tree.codec).skeleton(at: TreePath("/big"), &budget)
        #expect(counting.rowsSeen < 20 + 30 * 10)
    }

    @Test func removalOfALargeNodeKeepsItsKeys() throws {
        let tree = MemoryTree()
        let value = JSONValue.object(
            JSONObject(uniqueMembers: (0..<900).map { .init("m\($0)", ["text": text(3_000), "n": 1]) }))
        try tree.set("/chat", ["messages": value, "title": "t"])
        let change = try #require(try tree.set("/chat", .null).changes.first)
        #expect(change.before == nil)
        let messages = try #require(change.beforeSkeleton?.child(key("messages")))
        #expect(messages.childKeys?.count == 900)
        #expect(messages.isSurelySame(as: try skeleton(value)))
    }

    @Test func skeletonsArePartOfTheRecord() throws {
        let big = try TreeNode(json: ["m1": ["text": text(600_000)], "m2": ["text": text(600_000)], "m3": 3])
        let whole = PathChange(path: try TreePath("/a"), before: .leaf(.number(1)), after: big, depths: (1, 1))
        let removal = PathChange(path: try TreePath("/b"), before: big, after: .empty, depths: (1, 0))
        let cut = ChangeRecord.cut([whole, removal])
        #expect(cut[0].before == whole.before)
        #expect(cut[0].after == nil)
        #expect(cut[1].after == .empty)
        #expect(cut[0].afterSkeleton == NodeSkeleton(of: big))
        #expect(cut[1].beforeSkeleton == cut[0].afterSkeleton)
        let record = ChangeRecord(version: 1, time: 2, uid: "u", database: "0", changes: cut)
        #expect(record.encoded.count < 200)
        #expect(try ChangeRecord(decoding: record.encoded) == record)
    }
}
