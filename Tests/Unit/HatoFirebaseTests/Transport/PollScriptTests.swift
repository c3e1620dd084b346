import Testing

@testable import HatoFirebase

/// The texts of responses to polls, and the requests they response (spec realtime-database §8.9).
@Suite struct PollScriptTests {
    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func firstResponseHasItsShape() throws {
        let secrets = try #require(PollScript.Secrets(id: "Abc-1", password: "p_2"))
        let hello = ServerText.hello(at: 1_700_000_000_000, host: "127.0.0.1:9000", session: "sess-1")
        #expect(
            text(PollScript.start(callback: 7, secrets, [hello])) == """
                function pLPCommand(c, a1, a2, a3, a4) { parent.window["pLPCommand7"] && parent.window["pLPCommand7"](c, a1, a2, a3, a4); }
                function pRTLPCB(pN, data) { parent.window["pRTLPCB7"] && parent.window["pRTLPCB7"](pN, data); }
                pLPCommand('start','Abc-1','p_2');
                pRTLPCB(0,[{"t":"c","d":{"t":"h","d":{"ts":1700000000000,"v":"5","h":"127.0.0.1:9000","s":"sess-1"}}}]);

                """)
    }

    @Test func responsesAreListsOfMessages() {
        #expect(text(PollScript.response(3, [])) == "pRTLPCB(3,[]);\n")
        #expect(text(PollScript.response(4, [[0x31], [0x32]])) == "pRTLPCB(4,[1,2]);\n")
        #expect(text(PollScript.close) == "pLPCommand('close');\n")
        #expect(text(PollScript.close(after: 12)) == "pLPCommand('close',12);\n")
    }

    @Test func charactersThatEndALineOrAScriptAreEscaped() {
        let message = Array("{\"x\":\"a\u{2028}b\u{2029}</script>\u{2027}\u{202A}家\"}".utf8)
        #expect(
            text(PollScript.response(1, [message]))
                == "pRTLPCB(1,[{\"x\":\"a\\u2028b\\u2029\\u003c/script>\u{2027}\u{202A}家\"}]);\n")
    }

    @Test func secretsAreLettersAndDigits() {
        for wrong in ["", "a'b", "a\"", "a b", "a<", "é", "a\n", "a&b"] {
            #expect(PollScript.Secrets(id: wrong, password: "x") == nil)
            #expect(PollScript.Secrets(id: "x", password: wrong) == nil)
        }
    }

    @Test func leavingPageNamesItsSession() throws {
        let secrets = try #require(PollScript.Secrets(id: "Abc-1", password: "p_2"))
        #expect(text(PollScript.leavingPage(secrets)).contains("\"/.lp?disconn=t&id=Abc-1&pw=p_2\""))
    }

    @Test func requestsAreRead() throws {
        func request(_ query: String) throws -> PollRequest { try PollRequest(target: "/.lp?\(query)") }
        #expect(try request("start=t&ser=9&cb=7&v=5&ns=a%zz&cb=8") == .start(callback: 7))
        #expect(try request("dframe=t&id=a&pw=b") == .leavingPage(id: "a", password: "b"))
        #expect(try request("disconn=t&id=a&pw=%62") == .leave(id: "a", password: "b"))
        #expect(
            try request("id=a&pw=b&ser=1&seg0=3&ts0=2&d0=e30.&seg1=4&ts1=2&d1=&segment=9&seg=")
                == .poll(
                    id: "a", password: "b",
                    .init(
                        serial: 1,
                        segments: [
                            .init(number: 3, count: 2, data: Array("e30.".utf8)), .init(number: 4, count: 2, data: []),
                        ])))
        for query in ["", "&ser=", "&ser=-1", "&ser=1234567890123456"] {
            #expect(try request("id=a&pw=b" + query) == .poll(id: "a", password: "b", .init()), "\(query)")
        }
    }

    /// Requests that wait would else hold thousands of tiny segments that no limit sees.
    @Test func eachSegmentCountsMoreThanItsText() throws {
        let request = try PollRequest(target: "/.lp?id=a&pw=b&seg0=0&ts0=1&d0=&seg1=1&ts1=1&d1=abcd")
        guard case .poll(_, _, let poll) = request else { throw PollRequest.Failure.wrong("the kind") }
        #expect(poll.bytes == 64 + 64 + 64 + 4)
    }

    @Test func wrongRequestsAreRefusedByName() {
        let wrong: [(String, String)] = [
            ("start=t", "cb"), ("start=t&cb=7]", "cb"), ("start=t&cb=-7", "cb"), ("start=t&cb", "cb"),
            ("start=t&cb=1234567890123456", "cb"), ("start=t&cb=%37%zz", "cb"), ("", "id"), ("start=f&pw=b", "id"),
            ("id=a", "pw"), ("id=%ff&pw=b", "id"), ("id=a&pw=b&seg0=x&ts0=1&d0=", "seg0"),
            ("id=a&pw=b&seg0=-1&ts0=1&d0=", "seg0"), ("id=a&pw=b&seg0=0&d0=", "ts0"),
            ("id=a&pw=b&seg0=0&ts0=1e3&d0=", "ts0"), ("id=a&pw=b&seg0=0&ts0=1", "d0"),
            ("id=a&pw=b&seg0=0&ts0=1&d0=%f", "d0"), ("id=a&pw=b&seg1=0&ts1=1&d1=", "seg0"),
            ("id=a&pw=b&seg0=0&ts0=1&d0=&seg2=9", "seg1"),
        ]
        for (query, name) in wrong {
            #expect(throws: PollRequest.Failure.wrong(name), "\(query)") { try PollRequest(target: "/.lp?\(query)") }
        }
        #expect(throws: PollRequest.Failure.wrong("id")) { try PollRequest(target: "/.lp") }
    }

    @Test func formerSessionsAreNamed() {
        let both = SessionParameters(target: "/.ws?v=5&ls=a-b&s=c_d&s=e")
        #expect(both.former == "a-b" && both.takenOver == "c_d")
        for target in ["/.ws", "/.ws?", "/.ws?ls=&s=", "/.ws?ls=%&s=%ff", "/.ws?xls=1&sx=2"] {
            let none = SessionParameters(target: target)
            #expect(none.former == nil && none.takenOver == nil)
        }
    }
}
