import HatoModel
import Testing

@testable import HatoTree

@Suite struct ListenerTrieTests {
    @Test func changeAffectsListenersAtAboveAndBelow() throws {
        var trie = ListenerTrie<Int>()
        let paths = ["/", "/a", "/a/b", "/a/b/c", "/a/x", "/b"]
        for (index, path) in paths.enumerated() { trie.insert(index, at: try TreePath(path)) }
        func matches(_ path: String) throws -> Set<Int> {
            Set(trie.matches([try change(path)]).flatMap(\.ids))
        }
        #expect(try matches("/a/b") == [0, 1, 2, 3])
        #expect(try matches("/a/b/c/d") == [0, 1, 2, 3])
        #expect(try matches("/a") == [0, 1, 2, 3, 4])
        #expect(try matches("/") == [0, 1, 2, 3, 4, 5])
        #expect(try matches("/z/z") == [0])
        #expect(try matches("/a/b/.priority") == [0, 1, 2, 3])
        #expect(trie.count == 6)
    }

    @Test func removedListenersAreNotMatched() throws {
        var trie = ListenerTrie<String>()
        let path = try TreePath("/a/b/c")
        trie.insert("one", at: path)
        trie.insert("two", at: path)
        trie.insert("two", at: path)
        #expect(trie.count == 2)
        trie.remove("one", at: path)
        trie.remove("one", at: path)
        trie.remove("none", at: try TreePath("/a/z"))
        #expect(trie.count == 1)
        trie.remove("two", at: path)
        #expect(trie.count == 0)
        trie.insert("three", at: try TreePath("/x"))
        #expect(trie.matches([try change("/")]).flatMap(\.ids) == ["three"])
    }

    @Test func commitWithManyChangesNamesAListenerOnce() throws {
        var trie = ListenerTrie<Int>()
        trie.insert(1, at: try TreePath("/a"))
        var tree = IndexedTree()
        let changes = try tree.update("/", ["a/x": 1, "a/y": 2, "b": 3])
        #expect(trie.matches(changes).map(\.ids) == [[1]])
    }

    @Test func listenersAreGivenTheChangesOfTheirPathAlone() throws {
        var trie = ListenerTrie<String>()
        for path in ["/a", "/a/x", "/a/y/z", "/b"] { trie.insert(path, at: try TreePath(path)) }
        let changes = try ["/a/x/1", "/a/y", "/a/x/2"].map { try change($0) }
        var found: [String: [Int]] = [:]
        for match in trie.matches(changes) { for id in match.ids { found[id] = match.indexes } }
        #expect(found == ["/a": [0, 1, 2], "/a/x": [0, 2], "/a/y/z": [1]])
    }

    private func change(_ path: String) throws -> PathChange {
        PathChange(path: try TreePath(path), before: .empty, after: .empty, depths: (0, 0))
    }
}

@Suite struct ListenerUpdateTests {
    private func path(_ text: String) throws -> TreePath { try TreePath(text) }

    private func text(_ update: ListenerUpdate) -> String {
        guard case .events(let events) = update else { return update == .fresh ? "fresh" : "nothing" }
        var writer = JSONWriter()
        for event in events { event.write(to: &writer) }
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    @Test func writeBelowIsAPutOfItsRelativePath() throws {
        var tree = IndexedTree()
        try tree.set("/chats/c1", ["title": "鳩"])
        let changes = try tree.set("/chats/c1/messages/m1", ["text": "ただいま", "list": ["a", "b"]])
        #expect(
            text(ListenerUpdate(of: changes, at: try path("/chats/c1")))
                == #"{"type":"put","path":"/messages/m1","data":{"list":{"0":"a","1":"b"},"text":"ただいま"}}"#)
        #expect(ListenerUpdate(of: changes, at: try path("/chats/c2")) == .nothing)
    }

    @Test func writeAboveIsAPutOfTheRootUnlessNothingChangedThere() throws {
        var tree = IndexedTree()
        try tree.set("/a", ["b": 1, "c": 2])
        let changes = try tree.set("/a", ["b": 5, "c": 2])
        #expect(text(ListenerUpdate(of: changes, at: try path("/a/b"))) == #"{"type":"put","path":"/","data":5}"#)
        #expect(ListenerUpdate(of: changes, at: try path("/a/c")) == .nothing)
        let removal = try tree.set("/a", .null)
        #expect(text(ListenerUpdate(of: removal, at: try path("/a/b"))) == #"{"type":"put","path":"/","data":null}"#)
    }

    @Test func updateIsOnePatch() throws {
        var tree = IndexedTree()
        try tree.set("/a", ["x": 1, "y": 2])
        let changes = try tree.update(
            "/", ["a/x": 5, "a/deep/z": [".value": 1, ".priority": 2], "b": 1, "a/y": .null])
        #expect(
            text(ListenerUpdate(of: changes, at: try path("/a")))
                == #"{"type":"patch","path":"/","data":{"x":5,"deep/z":{".value":1,".priority":2},"y":null}}"#)
        #expect(text(ListenerUpdate(of: changes, at: try path("/b"))) == #"{"type":"put","path":"/","data":1}"#)
    }

    @Test func priorityIsAPutOfItsPath() throws {
        var tree = IndexedTree()
        try tree.set("/a", ["x": 1])
        let changes = try tree.apply(.setPriority("p", at: path("/a/x")))
        #expect(
            text(ListenerUpdate(of: changes, at: try path("/a"))) == #"{"type":"put","path":"/x/.priority","data":"p"}"#
        )
        #expect(
            text(ListenerUpdate(of: changes, at: try path("/a/x"))) == #"{"type":"put","path":"/.priority","data":"p"}"#
        )
    }

    @Test func tooLargeNodeCausesAFreshValue() throws {
        let change = PathChange(path: try path("/a"), before: nil, after: nil, depths: (1, 1))
        #expect(ListenerUpdate(of: [change], at: try path("/a/b")) == .fresh)
        let cut = PathChange(path: try path("/a/b"), before: .empty, after: nil, depths: (1, 2))
        #expect(ListenerUpdate(of: [cut], at: try path("/a")) == .fresh)
    }

    @Test func tooLargeNodeIsSentAgain() throws {
        let change = PathChange(path: try path("/a"), before: nil, after: try TreeNode(json: ["b": 1]), depths: (1, 1))
        #expect(
            text(ListenerUpdate(of: [change], at: try path("/a/b"))) == #"{"type":"put","path":"/","data":1}"#)
    }

    @Test func missedChangesAreOneEventOfTheCurrentState() throws {
        var tree = IndexedTree()
        try tree.set("/a", ["x": 1, "y": 2, "z": ["p": 1, "q": 2]])
        var changes = ChangedPaths(of: try path("/a"), after: 0)
        #expect(changes.missing(after: 0) == .nothing)
        changes.add(try tree.set("/a/z/p", 5), at: 1)
        changes.add(try tree.set("/a/x", 7), at: 2)
        changes.add(try tree.set("/a/x", 8), at: 3)
        changes.add(try tree.set("/elsewhere", 8), at: 4)
        changes.add(try tree.set("/a/z", ["q": 3]), at: 5)
        #expect(
            text(try changes.paths(from: 1).update(reading: tree.nodes))
                == #"{"type":"patch","path":"/","data":{"x":8,"z":{"q":3}}}"#)
        changes.add(try tree.set("/a", 1), at: 6)
        #expect(try changes.paths(from: 1).update(reading: tree.nodes) == .fresh)
    }

    @Test func nodeThatCouldLoseItsPriorityInBetweenIsSentWhole() throws {
        var tree = IndexedTree()
        try tree.set(
            "/a", ["x": ["only": 1, ".priority": 5], "long": ["p": 1, "q": 2, "r": 3, ".priority": 6], "z": 0])
        var changes = ChangedPaths(of: try path("/a"), after: 0)
        changes.add(try tree.update("/a/x", ["only": nil, "other/deep": 2]), at: 1)
        changes.add(try tree.update("/a/long", ["p": nil, "s": 4]), at: 2)
        // The list has other children all the time: it need not be sent again.
        #expect(
            text(try changes.paths(from: 1).update(reading: tree.nodes))
                == #"{"type":"patch","path":"/","data":{"long/p":null,"long/s":4,"x":{".priority":5,"other":{"deep":2}}}}"#
        )
        var new = ChangedPaths(of: try path("/a"), after: 0)
        new.add(try tree.set("/a/new/child", true), at: 1)
        new.add(try tree.apply(.setPriority(7, at: path("/a/new"))), at: 2)
        new.add(try tree.apply(.setPriority(8, at: path("/a/long"))), at: 3)
        #expect(
            text(try new.paths(from: 1).update(reading: tree.nodes))
                == #"{"type":"patch","path":"/","data":{"new":{".priority":7,"child":true},"long/.priority":8}}"#)
    }

    @Test func tooManyMissedPathsAreTheWholeValue() throws {
        var tree = IndexedTree()
        var changes = ChangedPaths(of: try path("/a"), after: 0)
        for index in 0...ChangedPaths.pathsMax {
            #expect(!changes.paths(from: 1).isWhole)
            changes.add(try tree.set("/a/k\(index)", 1), at: UInt64(index) + 1)
        }
        #expect(changes.paths(from: 1).isWhole)
        #expect(!changes.paths(from: 2).isWhole)
    }
}
