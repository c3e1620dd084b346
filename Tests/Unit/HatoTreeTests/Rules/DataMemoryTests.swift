import HatoModel
import HatoRules
import HatoTesting
import Testing

@testable import HatoTree

@Suite struct DataMemoryTests {
    private static let places: [TreePath] = [
        "/", "/r", "/r/1", "/r/2", "/r/3", "/r/1/z", "/r/1/a", "/r/2/z", "/r/1/z/q", "/s", "/s/q", "/t", "/t/u",
        "/t/u/v",
        "/t/u/v/z", "/r/1/-zzzzzzz------------", "/r/1/2", "/r/2/1", "/r/1/z/a", "/r/s", "/t/s",
    ].compactMap { try? TreePath($0) }

    private struct Answers: Equatable {
        var leaf: TreeLeaf?
        var exists: Bool
        var hasChildren: Bool
        var priority: TreePriority?

        init(_ data: StoredData, at path: TreePath) throws {
            leaf = try data.leaf(at: path)
            exists = try data.exists(at: path)
            hasChildren = try data.hasChildren(at: path)
            priority = try data.priority(at: path)
        }
    }

    @Test func cachedFactsEqualTheStoredTree() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        let tree = MemoryTree()
        let planner = WritePlanner(codec: tree.codec, memory: ParentMemory(parentsMax: 5, childrenMax: 4))
        for step in 0..<6_000 {
            let mutation = try ParentMemoryTests.mutation(Int64(step), &random)
            var asked = (0..<4).compactMap { _ in Self.places.randomElement(using: &random) }
            if let target = try? planner.resolve(mutation, reading: tree.rows, at: Int64(step)).rulesTargets.first {
                asked.append(target.path.node)
            }
            let remembering = planner.storedData(reading: tree.rows)
            let reading = StoredData(tree.rows, codec: tree.codec)
            for path in asked {
                let (known, stored) = (try Answers(remembering, at: path), try Answers(reading, at: path))
                try #require(known == stored, "seed \(seed), step \(step), \(path)")
            }
            // Planned in its turn, or before it.
            let plan: WritePlan
            if Int.random(in: 0..<4, using: &random) == 0,
                let resolved = try? planner.resolve(mutation, reading: tree.rows, at: Int64(step)),
                let ahead = try? planner.planAhead(resolved, reading: tree.rows)
            {
                planner.adopt(ahead)
                plan = ahead.plan
            } else {
                guard let made = try? planner.plan(mutation, reading: tree.rows, at: Int64(step)) else { continue }
                plan = made
            }
            // A plan may be refused after it was made.
            if Int.random(in: 0..<10, using: &random) > 0 { plan.rows.apply(to: tree.rows) }
        }
    }

    /// The walk to the second path leaves that of the first where the third continues it.
    @Test func adjacentPathsAreDistinguished() throws {
        let tree = MemoryTree()
        try tree.set("/friends", ["alice": ["carol": true], "bob": ["dave": true]])
        let data = WritePlanner(codec: tree.codec, memory: ParentMemory()).storedData(reading: tree.rows)
        #expect(try data.exists(at: TreePath("/friends/alice")))
        #expect(try data.exists(at: TreePath("/friends/bob")))
        #expect(try !data.exists(at: TreePath("/friends/alice/bob")))
    }

    @Test func writesInvalidateFactsAboutTheRoot() throws {
        let tree = MemoryTree()
        let planner = WritePlanner(codec: tree.codec, memory: ParentMemory())
        #expect(try !planner.storedData(reading: tree.rows).exists(at: .root))
        try planner.plan(.set(1, at: TreePath("/a")), reading: tree.rows, at: 1).rows.apply(to: tree.rows)
        #expect(try planner.storedData(reading: tree.rows).exists(at: .root))
    }

    @Test func nextMessageOfAChatNeedsNoLookUp() throws {
        let tree = MemoryTree()
        try tree.set("/chats/c", ["members": ["masuo": true], "messages": ["-A": 1]])
        let planner = WritePlanner(codec: tree.codec, memory: ParentMemory())
        let (room, masuo) = (try TreePath("/chats/c/messages"), try TreePath("/chats/c/members/masuo"))
        for time: Int64 in 1...3 {
            let counting = CountingReader(tree.rows)
            let data = planner.storedData(reading: counting)
            let key = PushKey(milliseconds: 1_700_000_000_000 + time, random: (1, 2))
            #expect(try data.exists(at: masuo))
            #expect(try !data.exists(at: TreePath("/chats/c/members/tara")))
            let message = try room.child(TreeKey(key))
            #expect(try !data.exists(at: message))
            #expect(try data.leaf(at: message.child(TreeKey("text"))) == nil)
            #expect(try !data.hasChildren(at: message.child(TreeKey("text"))))
            let plan = try planner.plan(.push("x", at: room, key: key), reading: counting, at: time)
            plan.rows.apply(to: tree.rows)
            if time > 1 { #expect(counting.scans + counting.gets == 0) }
        }
        try planner.plan(.remove(at: masuo), reading: tree.rows, at: 4).rows.apply(to: tree.rows)
        #expect(try !planner.storedData(reading: tree.rows).exists(at: masuo))
    }
}
