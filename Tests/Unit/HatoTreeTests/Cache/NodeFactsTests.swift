import HatoModel
import HatoRules
import HatoTesting
import Testing

@testable import HatoTree

@Suite struct NodeFactsTests {
    /// The walk to the second path leaves that of the first where the third continues it.
    @Test func adjacentPathsAreDistinguished() throws {
        let tree = MemoryTree()
        try tree.set("/friends", ["alice": ["carol": true], "bob": ["dave": true]])
        let data = WritePlanner(codec: tree.codec, cache: NodeCache()).facts(tree.rows)
        #expect(try data.exists(at: TreePath("/friends/alice")))
        #expect(try data.exists(at: TreePath("/friends/bob")))
        #expect(try !data.exists(at: TreePath("/friends/alice/bob")))
    }

    @Test func writesInvalidateFactsAboutTheRoot() throws {
        let tree = MemoryTree()
        let planner = WritePlanner(codec: tree.codec, cache: NodeCache())
        #expect(try !planner.facts(tree.rows).exists(at: .root))
        try planner.plan(.set(1, at: TreePath("/a")), reading: tree.rows, at: 1).rows.apply(to: tree.rows)
        #expect(try planner.facts(tree.rows).exists(at: .root))
    }

    @Test func nextMessageOfAChatNeedsNoLookUp() throws {
        let tree = MemoryTree()
        try tree.set("/chats/c", ["members": ["masuo": true], "messages": ["-A": 1]])
        let planner = WritePlanner(codec: tree.codec, cache: NodeCache())
        let (room, masuo) = (try TreePath("/chats/c/messages"), try TreePath("/chats/c/members/masuo"))
        for time: Int64 in 1...3 {
            let counting = CountingReader(tree.rows)
            let data = planner.facts(counting)
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
        #expect(try !planner.facts(tree.rows).exists(at: masuo))
    }
}

extension WritePlanner {
    /// What rules read in a turn of its own.
    func facts(_ reader: any TreeReader) -> StoredData { storedData(in: turn(reading: reader)) }
}
