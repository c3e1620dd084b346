import HatoModel
import Testing

struct TreePathTests {
    @Test func slashesAreNormalised() throws {
        for text in ["/a/b", "a/b", "//a///b/", "a/b//"] {
            #expect(try TreePath(text).text == "/a/b")
        }
        for text in ["", "/", "///"] {
            #expect(try TreePath(text) == .root)
        }
    }

    @Test func priorityMayBeTheLastSegmentOnly() throws {
        let path = try TreePath("/a/.priority")
        #expect(path.isPriority)
        #expect(path.text == "/a/.priority")
        #expect(path.node.text == "/a")
        #expect(path.parent?.text == "/a")
        #expect(try TreePath(".priority").text == "/.priority")
        #expect(try !TreePath(".priority").isRoot)
        for text in ["/a/.priority/b", "/.priority/.priority", ".value", "/a/.info", "/.sv", "/.settings/rules"] {
            #expect(throws: ArgumentError.self) { try TreePath(text) }
        }
    }

    @Test func hugePathsAreRefusedWithoutParsing() throws {
        let slashes = String(repeating: "/", count: TreeLimits.pathBytesMax)
        #expect(try TreePath(slashes).isRoot)
        #expect(throws: ArgumentError.self) { try TreePath(slashes + "/") }
    }

    @Test func wrongKeysAreNamedWithTheRule() {
        let error = #expect(throws: ArgumentError.self) { try TreePath("/users/ann@example.com/name") }
        #expect(error?.reason == "invalid_key")
        #expect(error?.message.contains("\"ann@example.com\" contains \".\"") == true)
        #expect(error?.message.contains("1 to 768 bytes") == true)
        #expect(error?.message.contains("/users/ann@example.com/name") == true)
    }

    @Test func everyForbiddenCharacterIsRefusedAndNoOther() throws {
        let forbidden = (0..<0x20).map { $0 } + [0x7F] + ".#$[]".unicodeScalars.map { Int($0.value) }
        for code in 0..<0x250 {
            guard code != 0x2F, let scalar = Unicode.Scalar(UInt32(code)) else { continue }
            let text = "k\(Character(scalar))"
            #expect((TreeKey.problem(text) != nil) == forbidden.contains(code), "U+\(String(code, radix: 16))")
        }
        #expect(try TreeKey("a b:@%~😀").text == "a b:@%~😀")
        #expect(TreeKey.problem("") != nil)
        #expect(TreeKey.problem("a/b") != nil)
    }

    @Test func keysHave768BytesAndPathsHave32Keys() throws {
        _ = try TreeKey(String(repeating: "é", count: 384))
        #expect(throws: ArgumentError.self) { try TreeKey(String(repeating: "é", count: 384) + "a") }
        let deepest = String(repeating: "/a", count: 32)
        let path = try TreePath(deepest)
        #expect(path.depth == 32)
        #expect(throws: ArgumentError.self) { try TreePath(deepest + "/a") }
        #expect(throws: ArgumentError.self) { try path.child(TreeKey("a")) }
        #expect(throws: ArgumentError.self) { try path.appending(TreePath("/a")) }
        #expect(try TreePath(deepest + "/.priority").depth == 32)
    }

    @Test func keysAreTheirBytes() throws {
        let composed = try TreeKey("\u{E9}"), decomposed = try TreeKey("e\u{301}")
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed]).count == 2)
        #expect(try TreePath("/\u{E9}") != TreePath("/e\u{301}"))
    }

    @Test func pathsKnowTheirAncestorsAndDescendants() throws {
        let chat = try TreePath("/chats/c1"), message = try TreePath("/chats/c1/messages/m1")
        #expect(chat.isAtOrAbove(message))
        #expect(chat.isAtOrAbove(chat))
        #expect(!message.isAtOrAbove(chat))
        #expect(try !chat.isAtOrAbove(TreePath("/chats/c10")))
        #expect(TreePath.root.isAtOrAbove(message))
        #expect(try chat.isAtOrAbove(TreePath("/chats/c1/.priority")))
        #expect(message.relative(to: chat)?.text == "/messages/m1")
        #expect(chat.relative(to: message) == nil)
        #expect(try chat.sharedDepth(with: TreePath("/chats/c2")) == 1)
        #expect(message.parent?.text == "/chats/c1/messages")
        #expect(TreePath.root.parent == nil)
        #expect(try chat.appending(TreePath("x/.priority")).text == "/chats/c1/x/.priority")
    }

    @Test func operationsOnNodesRefusePriorities() throws {
        try TreePath("/a").requireNode()
        #expect(throws: ArgumentError.self) { try TreePath("/a/.priority").requireNode() }
    }
}
