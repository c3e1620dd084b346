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
            // The first finds no room, the second finds its child, the third knows.
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

    @Test func pushThatOthersOvertookReadsNothing() throws {
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

    @Test func aTreeThatWasEmptiedChildByChildBeginsAnew() throws {
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

    @Test func plansAreTheSameWithAMemoryAndWithout() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        let tree = MemoryTree()
        // Small enough to begin anew now and then.
        let remembering = WritePlanner(codec: tree.codec, memory: ParentMemory(parentsMax: 5, childrenMax: 4))
        var time: Int64 = 0
        for step in 0..<8000 {
            time += 1
            let mutation = try Self.mutation(time, &random)
            let (known, read) = (CountingReader(tree.rows), CountingReader(tree.rows))
            let found = Result { try remembering.plan(mutation, reading: known, at: time) }
            let wanted = Result { try tree.planner.plan(mutation, reading: read, at: time) }
            let changes = try? found.get().changes
            guard changes == (try? wanted.get().changes), let plan = try? wanted.get() else {
                if changes == nil, (try? wanted.get()) == nil { continue }
                Issue.record("seed \(seed), step \(step): \(found) is not \(wanted)")
                return
            }
            // A plan may be refused after it was made.
            if Int.random(in: 0..<10, using: &random) > 0 { plan.rows.apply(to: tree.rows) }
        }
    }

    static func mutation(_ time: Int64, _ random: inout SeededRandom) throws -> Mutation {
        let room = try TreePath(
            ["/r/1", "/r/2", "/r/3", "/r", "/s", "/r/1/-zzzzzzz------------", "/t/u/v", "/"].randomElement(
                using: &random)
                ?? "/")
        let offset = Int64.random(in: -3...3, using: &random)
        let pushed = PushKey(milliseconds: max(0, time + offset), random: (UInt64.random(in: 0...1, using: &random), 0))
        switch Int.random(in: 0..<40, using: &random) {
        case 0: return .remove(at: .root)
        case 1: return .set(5, at: room)
        case 2: return .remove(at: room)
        case 3: return .set([pushed.text: 1, "a": 2], at: room)
        case 4: return .set(1, at: try room.child(TreeKey("z")))
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
