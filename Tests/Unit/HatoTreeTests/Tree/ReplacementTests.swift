import HatoModel
import Testing

@testable import HatoTree

/// How much of the stored nodes a write that replaces many of them reads and deletes row by row.
@Suite struct ReplacementTests {
    private let tree = MemoryTree()
    private var planner: WritePlanner {
        var planner = tree.planner
        (planner.skeletons.rows, planner.skeletons.keys) = (0, 0)
        return planner
    }

    /// Puts nodes at `/list/n…`, each of so many rows with values of so many bytes; returns the removal of all of them.
    private func removal(nodes: Int, rows: Int, bytes: Int) throws -> Mutation {
        let text = JSONValue.string(String(repeating: "x", count: bytes))
        var values = JSONObject()
        for node in 0..<nodes {
            let children = JSONObject(uniqueMembers: (0..<rows).map { .init("k\($0 + 100_000)", text) })
            try tree.set("/list/n\(node + 1_000)", .object(children))
            values.append("n\(node + 1_000)", .null)
        }
        return .update(values, at: try TreePath("/list"))
    }

    private func plan(_ mutation: Mutation, _ reader: any TreeReader) throws -> WritePlan {
        try planner.plan(mutation, reading: reader, at: 1)
    }

    private func operations(_ plan: WritePlan) -> (deletes: Int, ranges: Int) {
        let counter = OperationCounter()
        plan.rows.apply(to: counter)
        return (counter.deletes, counter.ranges)
    }

    @Test func aPlanInItsTurnReadsFewRowsOfManyNodes() throws {
        var mutation = try removal(nodes: 30, rows: 1_000, bytes: 60)
        mutation.rowsInTurnMax = 8_192
        let counting = CountingReader(tree.rows)
        #expect(throws: TooLargeForTurn.self) { try plan(mutation, counting).isEmpty }
        // Each twice: counted, and deleted.
        #expect(counting.rowsSeen <= 2 * (8_192 + 1_000))
        // Before its turn all of them are read.
        let resolved = try planner.resolve(mutation, reading: tree.rows, at: 1)
        let ahead = try planner.planAhead(resolved, reading: tree.rows)
        ahead.plan.rows.apply(to: tree.rows)
        #expect(tree.rows.count == 0)
    }

    @Test func aSinglePathIsPlannedInItsTurn() throws {
        var mutation = try removal(nodes: 1, rows: 9_000, bytes: 1)
        mutation.rowsInTurnMax = 8_192
        #expect(try plan(mutation, tree.rows).changes.count == 1)
    }

    @Test func manyRowsAreDeletedByRange() throws {
        let mutation = try removal(nodes: 90, rows: 1_000, bytes: 60)
        let plan = try plan(mutation, tree.rows)
        let (deletes, ranges) = operations(plan)
        #expect(deletes < 67_000)
        #expect(ranges > 0 && ranges <= 90)
        plan.rows.apply(to: tree.rows)
        #expect(tree.rows.count == 0)
    }

    @Test func nodesTooLargeToKeepAreNotReadAgainAndAgain() throws {
        let mutation = try removal(nodes: 8, rows: 3_000, bytes: 400)
        let counting = CountingReader(tree.rows)
        let plan = try plan(mutation, counting)
        // Two of them up to the mebibyte, of the others as many rows as show that they are deleted by range.
        #expect(counting.rowsSeen < 2 * 3_000 + 6 * 1_100)
        #expect(operations(plan).ranges == 8)
    }

    @Test func rowsOfManyBytesAreNotReadToBeCounted() throws {
        let mutation = try removal(nodes: 20, rows: 30, bytes: 50_000)
        let counting = CountingReader(tree.rows)
        let plan = try plan(mutation, counting)
        let (deletes, ranges) = operations(plan)
        #expect(ranges > 0 && deletes > 0)
        // 16 MiB of them are counted, and read once more to be deleted.
        #expect(counting.bytesSeen < 2 * 18 << 20)
        plan.rows.apply(to: tree.rows)
        #expect(tree.rows.count == 0)
    }

    @Test func manyRangesHaveSortedPartsToo() throws {
        var batch = RowBatch()
        for node in 0..<200 as Range<UInt8> {
            batch.put([1, node, 1].span, [0].span)
            batch.deleteRange([1, node], [1, node + 1])
            batch.put([1, node, 2].span, [0].span)
        }
        let parts = try #require(batch.sorted { _ in 1 })
        let rows = MemoryRows()
        for part in parts { part.apply(to: rows) }
        #expect(rows.keys == (0..<200).map { [1, $0, 2] })
    }
}

private final class OperationCounter: RowTarget {
    private(set) var deletes = 0
    private(set) var ranges = 0

    func put(_ key: Span<UInt8>, _ value: Span<UInt8>) {}
    func delete(_ key: Span<UInt8>) { deletes += 1 }
    func deleteRange(_ lower: Span<UInt8>, _ upper: Span<UInt8>) { ranges += 1 }
}
