import HatoModel
import HatoTesting
import Synchronization
import Testing

@testable import HatoTree

struct EmptyRangesTests {
    @Test(arguments: [true, false] as [Bool])
    func tombstonesAreNotSteppedOverRepeatedly(remembers: Bool) throws {
        let rows = RowsWithTraces()
        let codec = TreeKeyCodec(prefix: [7, 7])
        var planner = WritePlanner(codec: codec, memory: ParentMemory())
        planner.emptyRanges = remembers ? EmptyRanges(slowLook: .zero, uptime: { .zero }) : nil
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
        if remembers { #expect(rows.steps < 20_000) } else { #expect(rows.steps > 200_000) }
    }

    @Test func onlySlowReadsAreCached() throws {
        let time = Mutex(Duration.zero)
        for (cost, isRemembered) in [(Duration.microseconds(1), false), (.milliseconds(1), true)] {
            let ranges = EmptyRanges(uptime: {
                time.withLock { time in
                    time += cost; return time
                }
            })
            try EmptyRangesReader(MemoryRows(), ranges).scan(lower: [1], upper: [2], reverse: true) { _, _ in .next }
            #expect(ranges.isEmpty == !isRemembered)
        }
    }

    @Test func plansAheadInvalidateRangesThatTheyFill() throws {
        let tree = MemoryTree()
        var planner = WritePlanner(codec: tree.codec, memory: ParentMemory())
        planner.emptyRanges = EmptyRanges(slowLook: .zero, uptime: { .zero })
        func apply(_ mutation: Mutation) throws -> WritePlan {
            let plan = try planner.plan(mutation, reading: tree.rows, at: 1)
            plan.rows.apply(to: tree.rows)
            return plan
        }
        _ = try apply(.set(["a": 1, "z": 1], at: .root))
        // The planner caches that nothing is between them.
        _ = try apply(.remove(at: try TreePath("/m/n/o")))
        let resolved = try planner.resolve(.set(["p": 1], at: try TreePath("/m/n")), reading: tree.rows, at: 1)
        let ahead = try #require(try planner.planAhead(resolved, reading: tree.rows))
        planner.adopt(ahead)
        ahead.plan.rows.apply(to: tree.rows)
        #expect(try apply(.remove(at: try TreePath("/m/n/p"))).changes.first?.existedDepth == 3)
    }

    /// Scans with seeks, puts and removals in any order return the rows as stored.
    @Test func readsAsTheRowsThemselves() throws {
        var random = SeededRandom(seed: 20_261_122)
        for countMax in [1, 3, 1_024] {
            let (rows, ranges) = (MemoryRows(), EmptyRanges(slowLook: .zero, countMax: countMax, uptime: { .zero }))
            let reader = EmptyRangesReader(rows, ranges)
            for _ in 0..<6_000 {
                let key = Self.key(&random)
                switch Int.random(in: 0..<10, using: &random) {
                case 0, 1:
                    ranges.forget(key.span)
                    rows.put(key.span, key.span)
                case 2...4: rows.delete(key.span)
                case 5:
                    let upper = TreeKeyCodec.upperBound(of: key)
                    ranges.forget(from: key, to: upper)
                    let below = key + [5]
                    rows.put(below.span, key.span)
                default:
                    let (lower, upper) = (key, random.chance(1, in: 8) ? nil : Self.key(&random))
                    let reverse = random.chance(1, in: 2)
                    let seeks = (0..<4).map { _ in random.chance(1, in: 3) ? Self.key(&random) : nil }
                    let found = try Self.visited(reader, (lower, upper), reverse, seeks)
                    #expect(try found == Self.visited(rows, (lower, upper), reverse, seeks))
                }
            }
        }
    }

    /// Plans in turn and ahead, applied or not, in any order: cached empty ranges contain no row, and plans equal those
    /// made without caches.
    @Test(arguments: [1_024, 4])
    func cachedEmptyRangesAreEmpty(countMax: Int) throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        let tree = MemoryTree()
        let ranges = EmptyRanges(slowLook: .zero, countMax: countMax, uptime: { .zero })
        var planner = WritePlanner(codec: tree.codec, memory: ParentMemory(parentsMax: 6, childrenMax: 4))
        planner.emptyRanges = ranges
        var waiting: [(ahead: AheadPlan, isTouched: Bool)] = []
        var (adopted, seen) = (0, 0)
        for time: Int64 in 1...4_000 {
            var done: WritePlan?
            if random.chance(1, in: 4), let index = waiting.indices.randomElement(using: &random) {
                let (ahead, isTouched) = waiting.remove(at: index)
                if isTouched { continue }
                planner.adopt(ahead)
                adopted += 1
                done = ahead.plan
            } else {
                let mutation = try ParentMemoryTests.mutation(time, &random)
                guard let resolved = try? planner.resolve(mutation, reading: tree.rows, at: time) else { continue }
                if random.chance(1, in: 4) {
                    let ahead = try planner.planAhead(resolved, reading: tree.rows)
                    if let ahead { waiting.append((ahead, false)) }
                    continue
                }
                let plain = try? tree.planner.plan(resolved, reading: tree.rows)
                done = try? planner.plan(resolved, reading: tree.rows)
                try #require(done?.changes == plain?.changes, "seed \(seed), time \(time): \(mutation)")
            }
            // A plan may be refused after it was made.
            if let done, random.chance(9, in: 10) {
                for index in waiting.indices where waiting[index].ahead.basis.isTouched(by: done.changes) {
                    waiting[index].isTouched = true
                }
                done.rows.apply(to: tree.rows)
            }
            let (isTrue, count) = try Self.compare(ranges, with: tree.rows)
            try #require(isTrue, "seed \(seed), time \(time)")
            seen += count
        }
        #expect(adopted > 50 && seen > 1_000, "seed \(seed): \(adopted), \(seen)")
    }

    /// Whether no range contains a row, and the number of ranges.
    private static func compare(_ ranges: EmptyRanges, with rows: MemoryRows) throws -> (Bool, Int) {
        var (place, count): ([UInt8], Int) = ([], 0)
        while let stretch = ranges.first(endingBehind: place) {
            var isEmpty = true
            try rows.scan(lower: stretch.lower, upper: stretch.upper, reverse: false) { _, _ in
                isEmpty = false
                return .stop
            }
            if !isEmpty { return (false, count) }
            count += 1
            place = stretch.upper
        }
        return (true, count)
    }

    /// A condition on a node whose children were removed does not step over their tombstones again.
    @Test func conditionSkipsEmptyRanges() throws {
        let rows = RowsWithTraces()
        let codec = TreeKeyCodec(prefix: [7, 7])
        var planner = WritePlanner(codec: codec, memory: ParentMemory())
        planner.emptyRanges = EmptyRanges(slowLook: .zero, uptime: { .zero })
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

    private static func key(_ random: inout SeededRandom) -> [UInt8] {
        (0..<Int.random(in: 1...3, using: &random)).map { _ in UInt8.random(in: 0...5, using: &random) }
    }

    /// Seeks from a visited row to the given key, if it is ahead.
    private static func visited(
        _ reader: any TreeReader, _ range: (lower: [UInt8], upper: [UInt8]?), _ reverse: Bool, _ seeks: [[UInt8]?]
    ) throws -> [[UInt8]] {
        var keys: [[UInt8]] = []
        try reader.scan(lower: range.lower, upper: range.upper, reverse: reverse) { row, _ in
            let key = row.withUnsafeBufferPointer { Array($0) }
            keys.append(key)
            if keys.count > seeks.count { return .stop }
            guard let target = seeks[keys.count - 1] else { return .next }
            let isAhead = reverse ? target.lexicographicallyPrecedes(key) : key.lexicographicallyPrecedes(target)
            return isAhead ? .seek(target) : .next
        }
        return keys
    }
}
