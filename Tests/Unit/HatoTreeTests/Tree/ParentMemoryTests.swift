import HatoModel
import HatoTesting
import Testing

@testable import HatoTree

struct ParentMemoryTests {
    private func key(_ milliseconds: Int64) -> PushKey { PushKey(milliseconds: milliseconds, random: (1, 2)) }

    @Test func secondPushIntoARoomReadsNothing() throws {
        let tree = MemoryTree()
        let planner = WritePlanner(codec: tree.codec, memory: ParentMemory())
        let room = try TreePath("/rooms/r1")
        for time: Int64 in 1...3 {
            let counting = CountingReader(tree.rows)
            let plan = try planner.plan(.push(["text": "x"], at: room, key: key(time)), reading: counting, at: time)
            plan.rows.apply(to: tree.rows)
            // The first finds no parent, the second reads its child, the third uses the cache.
            if time == 3 { #expect(counting.scans + counting.gets == 0) }
            #expect(plan.changes[0].existedDepth == (time == 1 ? 0 : 2))
        }
        #expect(try tree.nodes.node(at: room).leafCount == 3)
    }

    @Test func writeUnderAPushKeyOfTheClientsReadsNothing() throws {
        let tree = MemoryTree()
        let planner = WritePlanner(codec: tree.codec, memory: ParentMemory())
        let room = try TreePath("/rooms/r1")
        for time: Int64 in 1...6 {
            let counting = CountingReader(tree.rows)
            let place = try room.child(TreeKey(key(time)))
            let mutation: Mutation =
                time % 2 == 0
                ? .set(["text": "x"], at: place) : .update(["r1/\(key(time))": 1], at: try TreePath("/rooms"))
            try planner.plan(mutation, reading: counting, at: time).rows.apply(to: tree.rows)
            if time > 2 { #expect(counting.scans + counting.gets == 0) }
        }
        #expect(try tree.nodes.node(at: room).leafCount == 6)
    }

    @Test func overtakenPushReadsNothing() throws {
        let tree = MemoryTree()
        let planner = WritePlanner(codec: tree.codec, memory: ParentMemory())
        let room = try TreePath("/rooms/r1")
        for (step, time) in ([1, 2, 9, 5, 7, 3, 8] as [Int64]).enumerated() {
            let counting = CountingReader(tree.rows)
            let plan = try planner.plan(.push("x", at: room, key: key(time)), reading: counting, at: time)
            plan.rows.apply(to: tree.rows)
            if step > 1 { #expect(counting.scans + counting.gets == 0, "\(time)") }
        }
        // The same key again must be looked up.
        let counting = CountingReader(tree.rows)
        let again = Mutation.push("x", at: room, key: key(5), isClientKey: true)
        #expect(try planner.plan(again, reading: counting, at: 10).isEmpty)
        #expect(counting.scans + counting.gets > 0)
    }

    @Test func aTreeThatWasEmptiedChildByChildIsCreatedAgain() throws {
        let tree = MemoryTree()
        let planner = WritePlanner(codec: tree.codec, memory: ParentMemory())
        let mutations: [Mutation] = [
            .set(1, at: try TreePath("/x")), .push(1, at: .root, key: key(1)), .push(1, at: .root, key: key(2)),
            .remove(at: try TreePath("/x")), .remove(at: try TreePath("/\(key(1))")),
            .remove(at: try TreePath("/\(key(2))")), .push(1, at: .root, key: key(3)),
        ]
        var beginsAndEnds: [Bool] = []
        for mutation in mutations {
            let plan = try planner.plan(mutation, reading: tree.rows, at: 1)
            plan.rows.apply(to: tree.rows)
            beginsAndEnds += plan.changes.map(\.rootCameOrWent)
        }
        #expect(beginsAndEnds == [true, false, false, false, false, true, true])
    }

    @Test func childrenInUseStayCachedWhenTooManyAre() throws {
        let tree = MemoryTree()
        let planner = WritePlanner(codec: tree.codec, memory: ParentMemory(allChildrenMax: 10))
        for time: Int64 in 1...60 {
            for room in 1...3 {
                let counting = CountingReader(tree.rows)
                let push = Mutation.push("x", at: try TreePath("/rooms/r\(room)"), key: key(10 * time))
                try planner.plan(push, reading: counting, at: time).rows.apply(to: tree.rows)
                if time > 2 { #expect(counting.scans + counting.gets == 0, "\(time), \(room)") }
            }
        }
        // The newest are still held individually, the oldest are not.
        for (time, isKnown) in [(599, true), (1, false)] as [(Int64, Bool)] {
            let counting = CountingReader(tree.rows)
            _ = try planner.plan(
                .push("x", at: TreePath("/rooms/r3"), key: key(time)), reading: counting, at: time)
            #expect((counting.scans + counting.gets == 0) == isKnown, "\(time)")
        }
    }

    @Test func parentInUseStaysCachedWhenTooManyAreAdded() throws {
        let tree = MemoryTree()
        let planner = WritePlanner(codec: tree.codec, memory: ParentMemory(parentsMax: 8))
        func reads(pushing time: Int64, into room: String) throws -> Int {
            let counting = CountingReader(tree.rows)
            let push = Mutation.push("x", at: try TreePath("/rooms/\(room)"), key: key(time))
            try planner.plan(push, reading: counting, at: time).rows.apply(to: tree.rows)
            return counting.scans + counting.gets
        }
        for time: Int64 in 1...2 { _ = try reads(pushing: time, into: "used") }
        for time: Int64 in 3...100 {
            for step: Int64 in 0..<3 {
                #expect(try (reads(pushing: 3 * time + step, into: "r\(time)") == 0) == (step == 2))
            }
            #expect(try reads(pushing: time, into: "used") == 0, "\(time)")
        }
        #expect(try reads(pushing: 1_000, into: "r3") > 0)
    }

    @Test func parentThatBecameYoungAgainIsEvictedWithItsLastChild() throws {
        let tree = MemoryTree()
        let planner = WritePlanner(codec: tree.codec, memory: ParentMemory(parentsMax: 8))
        func push(_ time: Int64, into room: String) throws -> Int? {
            let push = Mutation.push("x", at: try TreePath("/rooms/\(room)"), key: key(time))
            let plan = try planner.plan(push, reading: tree.rows, at: time)
            plan.rows.apply(to: tree.rows)
            return plan.changes.first?.existedDepth
        }
        // Four are a generation: with the fifth, the others become old.
        for room in ["a", "b", "c", "d", "e"] { for time: Int64 in 1...2 { _ = try push(time, into: room) } }
        #expect(try push(3, into: "a") == 2)
        for time: Int64 in 1...3 {
            let removal = Mutation.remove(at: try TreePath("/rooms/a/\(key(time))"))
            try planner.plan(removal, reading: tree.rows, at: 4).rows.apply(to: tree.rows)
        }
        #expect(try push(5, into: "a") == 1)
    }

    /// How many parents, children of each and children of all: generations change and floors rise all the time, except
    /// in the one cache that is never full.
    private static let limits = [(5, 4, 1_000), (2, 1, 1), (4, 256, 6), (6, 3, 5), (100, 256, 1_000), (0, 0, 0)]

    @Test(arguments: limits)
    func plansAreTheSameWithAndWithoutACache(parentsMax: Int, childrenMax: Int, allChildrenMax: Int) throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        let tree = MemoryTree()
        let memory = ParentMemory(
            parentsMax: parentsMax, childrenMax: childrenMax, allChildrenMax: allChildrenMax)
        var remembering = WritePlanner(codec: tree.codec, memory: memory)
        remembering.emptyRanges = EmptyRanges(
            slowLook: .zero, countMax: max(2, parentsMax), uptime: { .zero })
        var removals: [Mutation] = []
        var freeCount = 0
        for time: Int64 in 1...4000 {
            if removals.isEmpty, random.chance(1, in: 20) { removals = try Self.emptying(tree, &random) }
            let mutation = try removals.popLast() ?? Self.mutation(time, &random)
            let (known, read) = (CountingReader(tree.rows), CountingReader(tree.rows))
            let found = Result { try remembering.plan(mutation, reading: known, at: time) }
            let wanted = Result { try tree.planner.plan(mutation, reading: read, at: time) }
            let changes = try? found.get().changes
            guard changes == (try? wanted.get().changes), let plan = try? wanted.get() else {
                if changes == nil, (try? wanted.get()) == nil { continue }
                Issue.record("seed \(seed), time \(time): \(found) is not \(wanted)")
                return
            }
            // A plan may be refused after it was made.
            if Int.random(in: 0..<10, using: &random) > 0 { plan.rows.apply(to: tree.rows) }
            for path in try Self.places(time, &random) {
                let isFree = memory.whether(isFree: PlacedPath(path, tree.codec)) == .free
                if isFree { freeCount += 1 }
                if try Self.isTrue(isFree: isFree, memory, path, in: tree) { continue }
                Issue.record("seed \(seed), time \(time): \(path), free: \(isFree)")
                return
            }
        }
        #expect(freeCount > 100)
    }

    /// Removes all children of a room, not the room: at once or one by one.
    private static func emptying(_ tree: MemoryTree, _ random: inout SeededRandom) throws -> [Mutation] {
        let room = try TreePath(random.pick(rooms))
        let children = try tree.nodes.node(at: room).children.map { Array($0) } ?? []
        if random.chance(1, in: 2) { return try children.map { .remove(at: try room.child($0.key)) } }
        return [.update(JSONObject(uniqueMembers: children.map { .init($0.key.text, .null) }), at: room)]
    }

    /// Whether the facts of a cache about a path are true.
    private static func isTrue(
        isFree: Bool, _ memory: ParentMemory, _ path: TreePath, in tree: MemoryTree
    ) throws -> Bool {
        let isThere = try tree.nodes.exists(at: path)
        if isThere, memory.lackingDepth(of: PlacedPath(path, tree.codec)) != nil { return false }
        guard isFree else { return true }
        // The root may be empty: see `LocatedNode.rootIsThere`.
        guard !isThere, let parent = path.parent, try parent.isRoot || tree.nodes.exists(at: parent) else {
            return false
        }
        return try tree.nodes.leaf(at: parent) == nil
    }

    /// Paths that the history writes to now or has written to, some a long time ago.
    private static func places(_ time: Int64, _ random: inout SeededRandom) throws -> [TreePath] {
        let room = random.pick(try rooms.map { try TreePath($0) })
        let offset = random.pick([-1000, -100, -10, -5, -4, -3, -2, -1, 0, 1, 2, 3] as [Int64])
        let pushed = PushKey(milliseconds: max(0, time + offset), random: (UInt64.random(in: 0...1, using: &random), 0))
        let child = try room.child(TreeKey(pushed))
        return [
            room, child, try child.child(TreeKey("t")), try room.child(TreeKey("z")),
            try room.child(longKey(pushed, &random)), try room.child(TreeKey(random.pick(numbers))),
        ]
    }

    /// Two with equal beginnings, also equal to that of a pushed key.
    private static func longKey(_ pushed: PushKey, _ random: inout SeededRandom) throws -> TreeKey {
        try TreeKey("\(pushed)-long-\(random.pick([1, 2]))")
    }

    /// Their rows have zeros in them, and different lengths.
    private static let numbers = ["0", "-0", "00", "7", "07", "256"]
    private static let rooms = ["/r/1", "/r/2", "/r/3", "/r", "/s", "/r/1/-zzzzzzz------------", "/t/u/v", "/"]

    static func mutation(_ time: Int64, _ random: inout SeededRandom) throws -> Mutation {
        let room = try TreePath(random.pick(rooms))
        let offset = Int64.random(in: -3...3, using: &random)
        let pushed = PushKey(milliseconds: max(0, time + offset), random: (UInt64.random(in: 0...1, using: &random), 0))
        switch Int.random(in: 0..<40, using: &random) {
        case 0: return .remove(at: .root)
        case 1: return .set(5, at: room)
        case 2: return .remove(at: room)
        case 3: return .set([pushed.text: 1, "a": 2], at: room)
        case 4:
            let keys = [try TreeKey("z"), try longKey(pushed, &random), try TreeKey(random.pick(numbers))]
            return .set(1, at: try room.child(random.pick(keys)))
        case 5: return .remove(at: try room.child(TreeKey("z")))
        case 6: return .remove(at: room.parent ?? .root)
        case 7: return .set(7, at: room.parent ?? .root)
        case 8: return .setPriority(1, at: room)
        case 9: return .update(["r/1/z": nil, "r/2": nil, "r/3/\(pushed)": 1, "s/.priority": 2], at: .root)
        case 10...15: return .set(.null, at: try room.child(TreeKey(pushed)))
        case 16...18: return .push("x", at: room, key: pushed, isClientKey: true)
        case 19...22: return .set(["t": 2, "u": 3], at: try room.child(TreeKey(pushed)))
        case 23:
            let other = PushKey(milliseconds: time, random: (2, 0))
            return .update(["\(pushed)": 1, "\(other)": ["t": 1], "z": nil], at: room)
        default: return .push(["t": 1], at: room, key: pushed)
        }
    }
}
