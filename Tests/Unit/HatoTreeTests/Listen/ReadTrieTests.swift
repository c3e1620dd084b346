import HatoModel
import HatoRules
import HatoTesting
import Testing

@testable import HatoTree

@Suite struct ReadTrieTests {
    private func reads(_ reads: [(String, RulesRead.Aspect)]) throws -> RulesReadSet {
        var set = RulesReadSet()
        for (path, aspect) in reads { set.insert(RulesRead(path: try TreePath(path), aspect: aspect)) }
        return set
    }

    @Test func messageDoesNotTouchAReadOfItsChatsExistence() throws {
        var trie = ReadTrie<Int>()
        for user in 0..<1_000 {
            trie.insert(user, try reads([("/chats/c", .existence), ("/chats/c/members/u\(user)", .existence)]))
        }
        var tree = IndexedTree()
        #expect(try trie.touched(by: tree.set("/chats/c/title", "鳩")).count == 1_000)
        #expect(try trie.touched(by: tree.set("/chats/c/messages/m1", ["text": "ただいま"])).isEmpty)
        #expect(try trie.touched(by: tree.set("/chats/c/members/u7", true)) == [7])
        #expect(try trie.touched(by: tree.update("/chats/c/members", ["u7": .null, "u8": true])) == [7, 8])
        #expect(try trie.touched(by: tree.set("/chats/c", .null)).count == 1_000)
    }

    /// Both implementations agree, whatever was read and written.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func trieFindsIdentifiersWithTouchedReadSets(seed: UInt64) throws {
        var history = RandomHistory(seed)
        let aspects: [RulesRead.Aspect] = [.value, .existence, .children, .priority]
        var sets: [Int: RulesReadSet] = [:]
        var trie = ReadTrie<Int>()
        for step in 0..<300 {
            var set = RulesReadSet()
            for _ in 0..<Int.random(in: 0...3, using: &history.random) {
                set.insert(RulesRead(path: history.path(), aspect: history.random.pick(aspects)))
            }
            sets[step] = set
            trie.insert(step, set)
            if step > 20, let old = sets.removeValue(forKey: step - 20) { trie.remove(step - 20, old) }
            let changes = try history.write()
            let expected = Set(sets.filter { $0.value.isTouched(by: changes) }.keys)
            try #require(trie.touched(by: changes) == expected, "seed \(seed), step \(step)")
            for (id, set) in sets {
                let index = RulesReadIndex(set)
                try #require(index.isTouched(by: changes) == expected.contains(id), "seed \(seed), step \(step)")
            }
        }
    }

    @Test func readSetThatNamesNothingIsTouchedByEverything() throws {
        var set = RulesReadSet()
        for index in 0...RulesLimits.readsMax {
            set.insert(RulesRead(path: try TreePath("/a/k\(index)"), aspect: .value))
        }
        var trie = ReadTrie<Int>()
        trie.insert(1, set)
        var tree = IndexedTree()
        #expect(try trie.touched(by: tree.set("/elsewhere", 1)) == [1])
        trie.remove(1, set)
        #expect(try trie.touched(by: tree.set("/elsewhere", 2)).isEmpty)
    }
}
