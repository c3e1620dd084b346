import HatoModel
import Testing

@Suite struct FeedPatternTests {
    @Test(arguments: ["/", "/chats", "/chats/{chat}/messages/{id}", "/{a}/{b_2}", "/鳩/{x}/-1"])
    func patternsAreReadAndWrittenAlike(text: String) throws {
        #expect(try FeedPattern(text).description == text)
    }

    @Test func emptySegmentsAreDropped() throws {
        #expect(try FeedPattern("//a///{b}/").description == "/a/{b}")
    }

    @Test(arguments: [
        "", "chats", "/a.b", "/$x", "/{}", "/{1a}", "/{a", "/a}", "/{a-b}", "/x{a}", "/{a}/{a}", "/a#",
        "/" + String(repeating: "a/", count: 33), "/.priority",
    ])
    func wrongPatternsAreRefusedWithAnExample(text: String) {
        #expect {
            try FeedPattern(text)
        } throws: { error in
            guard let error = error as? ArgumentError else { return false }
            return error.reason == "invalid_pattern" && error.message.contains("e.g. /chats/{chat}/messages/{id}")
                || error.message.contains("32 keys")
        }
    }

    @Test func pathsMatchExactlyAboveAndBelow() throws {
        let pattern: FeedPattern = "/chats/{chat}/messages/{id}"
        let chat = FeedPattern.Parameter("chat", try TreeKey("c1"))
        let id = FeedPattern.Parameter("id", try TreeKey("m1"))
        #expect(pattern.match(try TreePath("/chats/c1/messages/m1")) == .exact([chat, id]))
        #expect(pattern.match(try TreePath("/chats/c1/messages/m1/text/x")) == .below([chat, id], depth: 4))
        #expect(pattern.match(try TreePath("/chats/c1/messages")) == .above([chat]))
        #expect(pattern.match(try TreePath("/chats")) == .above([]))
        #expect(pattern.match(.root) == .above([]))
        #expect(pattern.match(try TreePath("/chats/c1/members/m1")) == nil)
        #expect(pattern.match(try TreePath("/users/c1/messages/m1")) == nil)
        #expect(pattern.match(try TreePath("/users")) == nil)
        #expect(FeedPattern(segments: []).match(try TreePath("/a")) == .below([], depth: 0))
        #expect(pattern.fixedPrefix.map(\.text) == ["chats"])
    }

    @Test func keysAreMatchedByteByByte() throws {
        let pattern: FeedPattern = "/caf\u{E9}"
        #expect(pattern.match(try TreePath("/caf\u{E9}")) == .exact([]))
        #expect(pattern.match(try TreePath("/cafe\u{301}")) == nil)
    }
}
