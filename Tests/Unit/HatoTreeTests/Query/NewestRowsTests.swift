import HatoModel
import Testing

@testable import HatoTree

/// The random histories of `QueryHistoryTests` show that the cache changes no result.
@Suite struct NewestRowsTests {
    /// Rows in memory, with counts of the forward and backward steps.
    private final class Steps: TreeReader {
        private let rows: MemoryRows
        private(set) var forwards = 0
        private(set) var back = 0

        init(_ rows: MemoryRows) { self.rows = rows }

        func get(_ key: Span<UInt8>) throws -> [UInt8]? { try rows.get(key) }

        func scan(
            lower: [UInt8], upper: [UInt8]?, reverse: Bool,
            _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
        ) throws {
            try rows.scan(lower: lower, upper: upper, reverse: reverse) { key, value in
                if reverse { back += 1 } else { forwards += 1 }
                return try visit(key, value)
            }
        }
    }

    private static let room = TreePath(uncheckedKeys: [TreeKey(unchecked: "room")])
    private static let query = TreeQuery(
        order: .child(TreePath(uncheckedKeys: [TreeKey(unchecked: "date")])), limit: .last(50))

    private static func post(_ dates: Range<Int>, to tree: inout IndexedTree) throws {
        for date in dates {
            try tree.apply(.set(["date": .number(Double(date)), "text": "いま帰る"], at: room.child(TreeKey("m\(date)"))))
        }
    }

    private static func newest(_ tree: IndexedTree, _ memory: NewestRows, _ steps: Steps) throws -> [String] {
        var runner = QueryRunner(steps, codec: tree.codec, indexCodec: tree.indexCodec)
        runner.newest = memory
        let plan = QueryPlan(query, at: room, in: tree.catalog)
        return try runner.sortKeys(query, at: room, by: plan).map(\.key.text)
    }

    @Test func readsForwardsTheNewestRowsAndLaterOnes() throws {
        var tree = try IndexedTree(rules: #"{"rules": {"room": {".indexOn": "date"}}}"#)
        try Self.post(0..<200, to: &tree)
        let (memory, steps) = (NewestRows(), Steps(tree.rows))
        #expect(try Self.newest(tree, memory, steps) == (150..<200).map { "m\($0)" })
        #expect(steps.back == 50)
        for round in 1...40 {
            try Self.post((190 + 10 * round)..<(200 + 10 * round), to: &tree)
            let before = steps.forwards
            let expected = ((150 + 10 * round)..<(200 + 10 * round)).map { "m\($0)" }
            #expect(try Self.newest(tree, memory, steps) == expected)
            #expect(steps.forwards - before <= 90)
        }
        #expect(steps.back == 50)
    }

    @Test func readsBackwardsWhenTooFewAreLeftOrFarTooManyWereAdded() throws {
        var tree = try IndexedTree(rules: #"{"rules": {"room": {".indexOn": "date"}}}"#)
        try Self.post(0..<200, to: &tree)
        let (memory, steps) = (NewestRows(), Steps(tree.rows))
        _ = try Self.newest(tree, memory, steps)
        try tree.apply(.remove(at: Self.room.child(TreeKey("m170"))))
        #expect(try Self.newest(tree, memory, steps).first == "m149")
        #expect(steps.back == 100)
        try Self.post(200..<1_000, to: &tree)
        #expect(try Self.newest(tree, memory, steps).first == "m950")
        #expect(steps.back == 150)
        _ = try Self.newest(tree, memory, steps)
        #expect(steps.back == 150)
    }

    /// The order of truncated texts is settled by the tree, backwards; then nothing is read from a cached start.
    @Test func readsForwardsInVainOnlyOnce() throws {
        var tree = try IndexedTree(rules: #"{"rules": {"room": {".indexOn": "date"}}}"#)
        try Self.post(0..<200, to: &tree)
        let (memory, steps) = (NewestRows(), Steps(tree.rows))
        _ = try Self.newest(tree, memory, steps)
        let long = JSONValue.string(String(repeating: "x", count: 300))
        try tree.apply(.set(["date": long], at: Self.room.child(TreeKey("long"))))
        #expect(try Self.newest(tree, memory, steps).last == "long")
        var forwards: [Int] = []
        for memory in [memory, NewestRows()] {
            let before = steps.forwards
            #expect(try Self.newest(tree, memory, steps).first == "m151")
            forwards.append(steps.forwards - before)
        }
        #expect(forwards[0] == forwards[1])
    }
}
