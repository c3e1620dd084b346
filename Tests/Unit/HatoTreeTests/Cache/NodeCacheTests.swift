import HatoModel
import HatoRules
import HatoTesting
import Testing

@testable import HatoTree

/// Reads and plans through a cache, compared with the stored rows themselves.
@Suite struct NodeCacheTests {
    /// In all but the last, something is evicted all the time.
    private static let limits: [NodeCache.Limits] = [
        .test(nodes: 10, children: 4, allChildren: 1_000, ranges: 4, rows: 2),
        .test(nodes: 4, children: 1, allChildren: 1, ranges: 1, rows: 4_096),
        .test(nodes: 8, children: 256, allChildren: 6, ranges: 16, rows: 0),
        .test(nodes: 30, children: 3, allChildren: 5, ranges: 2, rows: 3),
        .test(nodes: 0, children: 0, allChildren: 0, ranges: 0, rows: 0),
        .test(nodes: 1_000, children: 256, allChildren: 1_000, ranges: 1_024, rows: 4_096),
    ]

    /// Writes in their turn, planned ahead and refused, in any order: reads in turns return what is stored, and plans
    /// equal those made without a cache.
    @Test(arguments: limits)
    func whatIsReadThroughTheCacheIsWhatIsStored(limits: NodeCache.Limits) throws {
        let seed = SeededRandom.seed()
        var history = CacheHistory(seed: seed, NodeCache(limits: limits, uptime: { .zero }))
        for time: Int64 in 1...4_000 { try history.step(time) }
        // All kinds of writes have happened, and something was cached.
        #expect(history.aheadCount > 50 && history.refusedCount > 50 && history.freeCount > 10, "seed \(seed)")
        if limits.nodesMax >= 1_000 { #expect(history.savedCount > 1_000 && history.freeCount > 1_000) }
    }

    @Test func aReadAfterTheCommitTraps() async {
        await #expect(processExitsWith: .failure) {
            let tree = MemoryTree()
            let planner = WritePlanner(codec: tree.codec, cache: NodeCache())
            let turn = planner.turn(reading: tree.rows)
            let data = planner.storedData(in: turn)
            guard try !data.exists(at: .root) else { return }
            turn.commit(try planner.plan(planner.resolve(.set(1, at: .root), reading: turn, at: 1), in: turn))
            _ = try data.exists(at: .root)
        }
    }

    @Test func planningAfterTheCommitTraps() async {
        await #expect(processExitsWith: .failure) {
            let tree = MemoryTree()
            let planner = WritePlanner(codec: tree.codec)
            let turn = planner.turn(reading: tree.rows)
            let resolved = try planner.resolve(.set(1, at: .root), reading: turn, at: 1)
            turn.commit(try planner.plan(resolved, in: turn))
            _ = try planner.plan(resolved, in: turn)
        }
    }

    @Test func aReadInTheTurnOfAnEarlierWriteTraps() async {
        await #expect(processExitsWith: .failure) {
            let tree = MemoryTree()
            let planner = WritePlanner(codec: tree.codec, cache: NodeCache())
            let refused = planner.storedData(in: planner.turn(reading: tree.rows))
            guard try !refused.exists(at: .root) else { return }
            _ = planner.turn(reading: tree.rows)
            _ = try refused.exists(at: .root)
        }
    }
}

extension NodeCache.Limits {
    static func test(_ change: (inout NodeCache.Limits) -> Void) -> NodeCache.Limits {
        var limits = NodeCache.Limits()
        change(&limits)
        return limits
    }

    fileprivate static func test(
        nodes: Int, children: Int, allChildren: Int, ranges: Int, rows: Int
    ) -> NodeCache.Limits {
        .test {
            ($0.nodesMax, $0.childrenMax, $0.allChildrenMax) = (nodes, children, allChildren)
            ($0.rangesMax, $0.rowsMax, $0.slowRead) = (ranges, rows, .zero)
        }
    }
}
