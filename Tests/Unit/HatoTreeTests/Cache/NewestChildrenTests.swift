import HatoModel
import HatoTesting
import Testing

@testable import HatoTree

@Suite struct NewestChildrenTests {
    private func key(_ milliseconds: Int64) -> PushKey { PushKey(milliseconds: milliseconds, random: (1, 2)) }

    @Test func secondPushIntoACollectionReadsNothing() throws {
        let tree = MemoryTree()
        let planner = WritePlanner(codec: tree.codec, cache: NodeCache())
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
        let planner = WritePlanner(codec: tree.codec, cache: NodeCache())
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
        let planner = WritePlanner(codec: tree.codec, cache: NodeCache())
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
        let planner = WritePlanner(codec: tree.codec, cache: NodeCache())
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
        let planner = WritePlanner(codec: tree.codec, cache: NodeCache(limits: .test { $0.allChildrenMax = 10 }))
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
        let planner = WritePlanner(codec: tree.codec, cache: NodeCache(limits: .test { $0.nodesMax = 8 }))
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
        let planner = WritePlanner(codec: tree.codec, cache: NodeCache(limits: .test { $0.nodesMax = 8 }))
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
}
