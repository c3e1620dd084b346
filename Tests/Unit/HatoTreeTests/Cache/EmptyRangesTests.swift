import HatoModel
import HatoTesting
import Synchronization
import Testing

@testable import HatoTree

@Suite struct EmptyRangesTests {
    private static let noTime: @Sendable () -> Duration = { .zero }

    @Test(arguments: [true, false] as [Bool])
    func tombstonesAreNotSteppedOverRepeatedly(isCached: Bool) throws {
        let rows = RowsWithTraces()
        let codec = TreeKeyCodec(prefix: [7, 7])
        let cache = NodeCache(limits: .test { $0.slowRead = .zero }, uptime: isCached ? Self.noTime : nil)
        let planner = WritePlanner(codec: codec, cache: cache)
        func apply(_ mutation: Mutation) throws {
            try planner.plan(mutation, reading: rows, at: 1).rows.apply(to: rows)
        }
        try apply(.set(["aa": ["live": 1], "zz": ["live": 1]], at: .root))
        for round in 0..<40 {
            for room in 0..<25 {
                let place = try TreePath("/typing/c\(room)/u\(round % 7)")
                try apply(.set(true, at: place))
                try apply(.remove(at: place))
            }
        }
        // For 2,000 writes.
        if isCached { #expect(rows.steps < 20_000) } else { #expect(rows.steps > 200_000) }
    }

    @Test func onlySlowReadsAreCached() throws {
        let time = Mutex(Duration.zero)
        for (cost, isCached) in [(Duration.microseconds(1), false), (.milliseconds(1), true)] {
            let cache = NodeCache(uptime: {
                time.withLock { time in
                    time += cost; return time
                }
            })
            let rows = CountingReader(MemoryRows())
            let turn = Turn(rows, codec: TreeKeyCodec(prefix: [1]), cache: cache)
            for _ in 0..<3 { try turn.scan(lower: [1], upper: [2], reverse: true) { _, _ in .next } }
            #expect(rows.scans == (isCached ? 1 : 3))
        }
    }

    @Test func plansAheadInvalidateRangesThatTheyFill() throws {
        let tree = MemoryTree()
        let cache = NodeCache(limits: .test { $0.slowRead = .zero }, uptime: Self.noTime)
        let planner = WritePlanner(codec: tree.codec, cache: cache)
        func apply(_ mutation: Mutation) throws -> WritePlan {
            let plan = try planner.plan(mutation, reading: tree.rows, at: 1)
            plan.rows.apply(to: tree.rows)
            return plan
        }
        _ = try apply(.set(["a": 1, "z": 1], at: .root))
        // The planner caches that nothing is between them.
        _ = try apply(.remove(at: try TreePath("/m/n/o")))
        let resolved = try planner.resolve(.set(["p": 1], at: try TreePath("/m/n")), reading: tree.rows, at: 1)
        let ahead = try planner.planAhead(resolved, reading: tree.rows)
        planner.turn(reading: tree.rows).commit(ahead.plan)
        ahead.plan.rows.apply(to: tree.rows)
        #expect(try apply(.remove(at: try TreePath("/m/n/p"))).changes.first?.existedDepth == 3)
    }

    /// A condition on a node whose children were removed does not step over their tombstones again.
    @Test func conditionSkipsEmptyRanges() throws {
        let rows = RowsWithTraces()
        let codec = TreeKeyCodec(prefix: [7, 7])
        let cache = NodeCache(limits: .test { $0.slowRead = .zero }, uptime: Self.noTime)
        let planner = WritePlanner(codec: codec, cache: cache)
        func apply(_ mutation: Mutation) throws {
            try planner.plan(mutation, reading: rows, at: 1).rows.apply(to: rows)
        }
        try apply(.set(["a": 1, "z": 1], at: .root))
        for user in 0..<500 {
            let place = try TreePath("/typing/u\(user)")
            try apply(.set(true, at: place))
            try apply(.remove(at: place))
        }
        let place = try TreePath("/typing")
        let nothing = SimpleHash.etag(.empty)
        try apply(.set(.null, at: place, if: .etag(nothing)))
        let before = rows.steps
        for _ in 0..<20 { try apply(.set(.null, at: place, if: .etag(nothing))) }
        #expect(rows.steps - before < 100)
    }

    /// Scans with seeks, puts and removals of any keys return the rows as stored.
    @Test func scansVisitTheRowsThatAreStored() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        let codec = TreeKeyCodec(prefix: [1])
        for rangesMax in [1, 3, 1_024] {
            let limits = NodeCache.Limits.test { ($0.rangesMax, $0.slowRead) = (rangesMax, .zero) }
            let (rows, cache) = (MemoryRows(), NodeCache(limits: limits, uptime: Self.noTime))
            for step in 0..<6_000 {
                let turn = Turn(rows, codec: codec, cache: cache)
                let key = Self.key(&random)
                switch Int.random(in: 0..<10, using: &random) {
                case 0, 1:
                    var batch = RowBatch()
                    batch.put(key.span, key.span)
                    turn.commit(WritePlan(rows: batch, changes: [], time: 0))
                    rows.put(key.span, key.span)
                case 2...4: rows.delete(key.span)
                default:
                    let scan = SeekingScan(
                        lower: key, upper: random.chance(1, in: 8) ? nil : Self.key(&random),
                        reverse: random.chance(1, in: 2),
                        seeks: (0..<4).map { _ in random.chance(1, in: 3) ? Self.key(&random) : nil })
                    try #require(try scan.keys(turn) == scan.keys(rows), "seed \(seed), step \(step)")
                }
            }
        }
    }

    private static func key(_ random: inout SeededRandom) -> [UInt8] {
        (0..<Int.random(in: 1...3, using: &random)).map { _ in UInt8.random(in: 0...5, using: &random) }
    }
}
