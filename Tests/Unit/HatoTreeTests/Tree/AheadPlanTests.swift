import HatoModel
import HatoTesting
import Testing

@testable import HatoTree

/// Plans made on an older state, compared with those made in their turn.
@Suite struct AheadPlanTests {
    /// As long as the basis is not touched, the rows and the changes equal those of a plan made now.
    @Test func untouchedPlanEqualsAPlanInTurn() throws {
        let seed = SeededRandom.seed()
        var random = RandomTree(random: SeededRandom(seed: seed))
        let rules = #"{"rules": {"a": {".indexOn": ["a", "b/a", ".value"]}, "$x": {"b": {".indexOn": "a"}}}}"#
        var untouched = 0
        for round in 0..<1_500 {
            var tree = try IndexedTree(rules: rules)
            for _ in 0..<4 { try tree.apply(Self.mutation(&random, depth: 2)) }
            let planner = WritePlanner(codec: tree.codec, indexes: IndexDeltas(tree.catalog, codec: tree.indexCodec))
            let mutation = try Self.mutation(&random, depth: 3)
            let resolved = try planner.resolve(mutation, reading: tree.rows, at: 1)
            let ahead = try planner.planAhead(resolved, reading: tree.rows)
            var isTouched = false
            for _ in 0..<random.random.pick([0, 1, 1, 2, 3]) {
                let changes = try tree.apply(Self.mutation(&random, depth: 1))
                isTouched = isTouched || ahead.basis.isTouched(by: changes)
            }
            if isTouched { continue }
            untouched += 1
            let now = try planner.plan(resolved, reading: tree.rows)
            #expect(ahead.plan.changes == now.changes, "seed \(seed), round \(round): \(mutation)")
            #expect(Self.operations(ahead.plan.rows) == Self.operations(now.rows), "seed \(seed), round \(round)")
        }
        #expect(untouched > 300, "seed \(seed)")
    }

    private static func mutation(_ random: inout RandomTree, depth: Int) throws -> Mutation {
        var path = TreePath.root
        for _ in 0..<random.random.pick([0, 1, 2, 2, 3, 3, 4]) { path = try path.child(random.key()) }
        switch random.random.pick([0, 1, 1, 2, 2, 2, 3, 3]) {
        case 0 where !path.isRoot: return .setPriority(random.priority(), at: path)
        case 1: return .remove(at: path)
        case 3:
            var values = JSONObject()
            for _ in 0..<3 {
                let key = random.key().text
                if values[key] == nil {
                    values[key] = random.random.chance(1, in: 3) ? .null : random.value(depth: depth)
                }
            }
            return .update(values, at: path)
        default: return .set(random.value(depth: depth), at: path)
        }
    }

    /// The operations of a batch, one text for each.
    private static func operations(_ batch: RowBatch) -> [String] {
        let list = OperationList()
        batch.apply(to: list)
        return list.steps
    }

    /// A tree that a plan would end gets another node meanwhile; one that exists for a plan ends meanwhile.
    @Test func beginningAndEndOfTheTreeChangeABasis() throws {
        let tree = MemoryTree()
        func basis(_ mutation: Mutation) throws -> PlanBasis {
            let resolved = try tree.planner.resolve(mutation, reading: tree.rows, at: 1)
            return try tree.planner.planAhead(resolved, reading: tree.rows).basis
        }
        try tree.set("/", ["a": ["x": 1], ".priority": 5])
        let removal = try basis(.remove(at: TreePath("/a/x")))
        #expect(try removal.isTouched(by: tree.set("/z", 1).changes))
        try tree.set("/z", .null)
        let beside = try basis(.set(1, at: TreePath("/b")))
        #expect(try beside.isTouched(by: tree.set("/a/x", .null).changes))
        let first = try basis(.set(1, at: TreePath("/b")))
        #expect(try first.isTouched(by: tree.set("/z/y", 1).changes))
    }

    @Test func basisIsTouchedDependingOnThePath() throws {
        let tree = MemoryTree()
        try tree.set("/a/b/c", ["x": 1])
        try tree.set("/a/d", 1)
        func basis(_ mutation: Mutation) throws -> PlanBasis {
            let resolved = try tree.planner.resolve(mutation, reading: tree.rows, at: 1)
            return try tree.planner.planAhead(resolved, reading: tree.rows).basis
        }
        func change(_ path: String, existed: Int, exists: Int, removed: Bool = false) throws -> [PathChange] {
            let path = try TreePath(path)
            return [
                PathChange(
                    path: path, before: .leaf(.bool(true)), after: removed ? .empty : .leaf(.number(1)),
                    depths: (existed, exists))
            ]
        }
        let set = try basis(.set(["y": 1], at: TreePath("/a/b/n")))
        // At, above and below it; a node above it that comes or goes.
        #expect(try set.isTouched(by: change("/a/b/n", existed: 2, exists: 3)))
        #expect(try set.isTouched(by: change("/a/b/n/y/z", existed: 2, exists: 5)))
        #expect(try set.isTouched(by: change("/a", existed: 1, exists: 1)))
        #expect(try set.isTouched(by: change("/a/b/c", existed: 3, exists: 1, removed: true)))
        #expect(try set.isTouched(by: change("/a/b/c", existed: 0, exists: 3)))
        // Elsewhere.
        #expect(try !set.isTouched(by: change("/a/b/c", existed: 2, exists: 3)))
        #expect(try !set.isTouched(by: change("/a/b/c", existed: 3, exists: 2, removed: true)))
        #expect(try !set.isTouched(by: change("/z", existed: 0, exists: 1)))
        // Whether the last child goes with it depends on its neighbours.
        let removal = try basis(.remove(at: TreePath("/a/b/c")))
        #expect(try removal.isTouched(by: change("/a/b/n", existed: 2, exists: 3)))
        #expect(try removal.isTouched(by: change("/a/d", existed: 2, exists: 1, removed: true)))
        #expect(try !removal.isTouched(by: change("/a/e", existed: 1, exists: 2)))
        #expect(try !removal.isTouched(by: change("/z", existed: 1, exists: 0, removed: true)))
    }

    /// A large push is compared with the stored node before its turn.
    @Test func pushWithATakenKeyReadsNothingInItsTurn() throws {
        let (tree, key) = (MemoryTree(), PushKey(milliseconds: 1_700_000_000_000, random: (1, 2)))
        let values = JSONObject(uniqueMembers: (0..<300).map { .init("k\($0)", .number(Double($0))) })
        func push(_ value: JSONValue) throws -> Mutation {
            .push(value, at: try TreePath("/r"), key: key, isClientKey: true)
        }
        try tree.apply(push(["values": .object(values), "date": [".sv": "timestamp"]]))
        for (value, isSame) in [
            (["values": .object(values), "date": [".sv": "timestamp"]], true), (["values": .object(values)], false),
        ] as [(JSONValue, Bool)] {
            let resolved = try tree.planner.resolve(push(value), reading: tree.rows, at: 9)
            let ahead = try tree.planner.planAhead(resolved, reading: tree.rows)
            #expect(ahead.plan.isEmpty)
            #expect(try ahead.basis.isTouched(by: tree.set("/r/\(key)/x", 1).changes))
            try tree.set("/r/\(key)/x", .null)
            let counting = CountingReader(tree.rows)
            let turn = tree.planner.turn(reading: counting)
            if isSame {
                try tree.planner.check(ahead, of: resolved, in: turn, history: nil)
            } else {
                #expect(throws: TreeError.self) {
                    try tree.planner.check(ahead, of: resolved, in: turn, history: nil)
                }
            }
            #expect(counting.rowsSeen + counting.gets == 0)
            // Without the right to read only the caller's own earlier pushes count.
            var hidden = resolved
            hidden.hidesStored = true
            #expect(throws: TreeError.self) {
                try tree.planner.check(ahead, of: hidden, in: turn, history: nil)
            }
        }
    }

    @Test func sortedPartsDoTheSame() throws {
        var random = SeededRandom(seed: SeededRandom.seed())
        for _ in 0..<400 {
            var batch = RowBatch()
            for _ in 0..<Int.random(in: 0..<30, using: &random) {
                let key = (0..<3).map { _ in UInt8.random(in: 1...3, using: &random) }
                let value: [UInt8] = [.random(in: 0...9, using: &random)]
                switch Int.random(in: 0..<8, using: &random) {
                case 0: batch.deleteRange(Array(key.prefix(2)), TreeKeyCodec.upperBound(of: Array(key.prefix(2))))
                case 1, 2: batch.delete(key)
                default: batch.put(key.span, value.span)
                }
            }
            // In sections, ranges first, each key once, in order.
            let parts = try #require(batch.sorted { _ in 1 })
            let (one, other) = (MemoryRows(), MemoryRows())
            for rows in [one, other] {
                for key in [[1, 1, 1], [1, 2, 3], [2, 2, 2], [3, 3, 3]] as [[UInt8]] { rows.put(key.span, key.span) }
            }
            batch.apply(to: one)
            for part in parts {
                part.apply(to: other)
                let list = OperationList()
                part.apply(to: list)
                #expect(Set(list.keys.map { $0[0] }).count == 1)
                let points = list.keys.drop { list.ranges.contains($0) }
                #expect(zip(points, points.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) })
            }
            #expect(one.keys == other.keys)
            #expect(try one.keys.allSatisfy { try one.get($0.span) == other.get($0.span) })
        }
        var many = RowBatch()
        for number in 0..<20 as Range<UInt8> { many.deleteRange([number], [100]) }
        many.put([50].span, [0].span)
        #expect(many.sorted { _ in 1 } == nil)
    }
}

private final class OperationList: RowTarget {
    var steps: [String] = []
    var keys: [[UInt8]] = []
    var ranges: [[UInt8]] = []

    func put(_ key: Span<UInt8>, _ value: Span<UInt8>) { add("put", key, value) }
    func delete(_ key: Span<UInt8>) { add("delete", key, key) }
    func deleteRange(_ lower: Span<UInt8>, _ upper: Span<UInt8>) {
        ranges.append(copy(lower))
        add("range", lower, upper)
    }

    private func add(_ step: String, _ key: Span<UInt8>, _ value: Span<UInt8>) {
        keys.append(copy(key))
        steps.append("\(step) \(copy(key)) \(copy(value))")
    }

    private func copy(_ bytes: Span<UInt8>) -> [UInt8] { bytes.withUnsafeBufferPointer { Array($0) } }
}
