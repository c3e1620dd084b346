import HatoModel
import Testing

@testable import HatoFirebase

/// The actions of clients (spec realtime-database §8.4), row by row: the native call, and the response.
@Suite struct SessionRequestTests {
    @Test func helloIsSentWhenTheWireStands() {
        var machine = SessionStateMachine(database: nil, host: "db.example.com:80", session: "s-1")
        #expect(machine.handle(.accepted).map(\.line) == ["schedule wire after(10000)"])
        #expect(
            machine.handle(.wireOpened(at: 1_700_000_000_000)).map(\.line) == [
                "cancel wire",
                #"send {"t":"c","d":{"t":"h","d":{"ts":1700000000000,"v":"5","h":"db.example.com:80","s":"s-1"}}}"#,
            ])
        #expect(machine.handle(.wireOpened(at: 1)).isEmpty)
    }

    @Test func sessionClosesWithoutHelloWhenTheWireDoesNotStandInTime() {
        var machine = SessionStateMachine(database: nil, host: "h", session: "s")
        _ = machine.handle(.accepted)
        #expect(machine.handle(.timerFired(.wire)) == [.close(.wireLost)])
        #expect(machine.handle(.wireOpened(at: 1)).isEmpty)
    }

    @Test func messageBeforeTheHelloClosesTheSession() {
        var machine = SessionStateMachine(database: nil, host: "h", session: "s")
        #expect(machine.handle(.message(.whole(Array("{}".utf8)))) == [.close(.tooEarly)])
    }

    /// Actions that become one native call whose result is not read.
    private static let writes: [(action: String, body: String, call: String)] = [
        ("p", #"{"p":"/a/b","d":{"x":1}}"#, #"messages.set {"path":"/a/b","value":{"x":1}}"#),
        ("p", #"{"p":"a//b/","d":null}"#, #"messages.set {"path":"/a/b","value":null}"#),
        ("p", #"{"p":"","d":{".sv":"timestamp"}}"#, #"messages.set {"path":"/","value":{".sv":"timestamp"}}"#),
        ("p", #"{"p":"/a/.priority","d":3}"#, #"messages.set {"path":"/a/.priority","value":3}"#),
        ("p", #"{"d":"ただいま","p":"/磯野\u0022家"}"#, #"messages.set {"path":"/磯野\"家","value":"ただいま"}"#),
        ("p", #"{"p":"/a","d":1,"h":""}"#, #"messages.set {"path":"/a","ifMatch":"null_etag","value":1}"#),
        (
            "p", #"{"p":"/a","d":1,"h":"YPVfR2bXt/lcDjiQZ8pOkAd3qkQ="}"#,
            #"messages.set {"path":"/a","ifMatch":"YPVfR2bXt/lcDjiQZ8pOkAd3qkQ=","value":1}"#
        ),
        ("m", #"{"p":"/a","d":{"b/c":1,"d":null}}"#, #"messages.update {"path":"/a","values":{"b/c":1,"d":null}}"#),
        ("m", #"{"p":"/a","d":{}}"#, #"messages.update {"path":"/a","values":{}}"#),
        ("o", #"{"p":"/a","d":false}"#, #"messages.onDisconnect.set {"path":"/a","value":false}"#),
        ("o", #"{"p":"/a","d":null}"#, #"messages.onDisconnect.set {"path":"/a","value":null}"#),
        ("om", #"{"p":"/a","d":{"b":1}}"#, #"messages.onDisconnect.update {"path":"/a","values":{"b":1}}"#),
        ("oc", #"{"p":"/a","d":null}"#, #"messages.onDisconnect.cancel {"path":"/a"}"#),
    ]

    @Test func writesBecomeNativeCalls() {
        for row in Self.writes {
            var session = SessionScript()
            #expect(session.asks(7, row.action, row.body) == ["call 1 \(row.call)"])
            #expect(session.succeeds(1, #"{"version":3}"#) == [response(7, "ok")])
        }
    }

    @Test func databaseIsNamedInEachCall() {
        var session = SessionScript(database: DatabaseName(rawValue: "chat-2"))
        #expect(
            session.asks(1, "p", #"{"p":"/a","d":1}"#) == [
                #"call 2 messages.set {"database":"chat-2","path":"/a","value":1}"#
            ])
        #expect(
            session.asks(2, "q", #"{"p":"/a","h":""}"#) == [
                #"call 3 messages.listen {"database":"chat-2","path":"/a"}"#
            ])
    }

    @Test func lineEndsOfCopiedTextsBecomeBlanks() {
        var session = SessionScript()
        #expect(
            session.asks(1, "p", "{\"p\":\"/a\",\"d\":{\r\n\"x\"\n:\t1}}")
                == ["call 1 messages.set {\"path\":\"/a\",\"value\":{  \"x\" :\t1}}"])
    }

    @Test func hashThatCanBeNoHashIsStaleWithoutACall() {
        for hash in ["invalid-etag", "null_etag", "YPVfR2bXt/lcDjiQZ8pOkAd3qkQ", "YPVfR2bXt/lcDjiQZ8pOkAd3qk?="] {
            var session = SessionScript()
            #expect(
                session.asks(1, "p", "{\"p\":\"/a\",\"d\":1,\"h\":\"\(hash)\"}")
                    == [response(1, "datastale", "\"Transaction hash does not match\"")])
        }
    }

    /// Actions that get a response at once.
    private static let direct: [(action: String, body: String, word: String, data: String)] = [
        ("s", #"{"c":{"sdk.js.12-18-0":1}}"#, "ok", "\"\""),
        ("appcheck", #"{"token":"t"}"#, "ok", "\"\""),
        ("unappeck", "{}", "ok", "\"\""),
        ("n", #"{"p":"/never"}"#, "ok", "\"\""),
        ("zzz", "{}", "failure", "\"Unknown action\""),
        ("zzz", "null", "failure", "\"Unknown action\""),
    ]

    @Test func actionsWithoutACallGetTheirResponse() {
        for row in Self.direct {
            var session = SessionScript()
            #expect(session.asks(3, row.action, row.body) == [response(3, row.word, row.data)])
        }
    }

    @Test func readsBecomeNativeCalls() {
        let rows = [
            (#"{"p":"/a","q":{}}"#, #"{"path":"/a","export":true}"#),
            (#"{"p":"/a"}"#, #"{"path":"/a","export":true}"#),
            (#"{"p":"/a","q":{"i":"n"}}"#, #"{"path":"/a","export":true}"#),
            (
                #"{"p":"/a","q":{"i":"n","l":2,"vf":"l"}}"#,
                #"{"path":"/a","query":{"orderBy":"n","limitToFirst":2},"export":true}"#
            ),
        ]
        for (body, params) in rows {
            var session = SessionScript()
            #expect(session.asks(1, "g", body) == ["call 1 messages.get \(params)"])
            #expect(
                session.succeeds(1, #"{"value":{"x":{".value":1,".priority":2}},"version":9}"#)
                    == [response(1, "ok", #"{"x":{".value":1,".priority":2}}"#)])
        }
    }

    @Test func absentValueIsReadAsNull() {
        var session = SessionScript()
        _ = session.asks(1, "g", #"{"p":"/a","q":{}}"#)
        #expect(session.succeeds(1, #"{"version":9,"value":null}"#) == [response(1, "ok", "null")])
    }

    /// Requests whose body does not fit.
    private static let wrong: [(action: String, body: String)] = [
        ("p", #"{"d":1}"#), ("p", #"{"p":"/a"}"#), ("p", #"{"p":"/a.b","d":1}"#), ("p", #"{"p":7,"d":1}"#),
        ("p", #"{"p":"/.info/connected","d":1}"#), ("p", #"{"p":"/a","d":1,"h":7}"#), ("p", "null"),
        ("m", #"{"p":"/a","d":1}"#), ("m", #"{"p":"/a","d":[]}"#), ("om", #"{"p":"/a","d":null}"#),
        ("o", #"{"p":"/a"}"#), ("oc", "{}"), ("g", #"{"q":{}}"#), ("g", #"{"p":"/a","q":7}"#),
        ("g", #"{"p":"/a","q":{"l":"2"}}"#), ("q", #"{"p":"/a","h":"","q":{"l":2,"vf":"l"}}"#),
        ("q", #"{"p":"/a","h":"","q":{"l":2},"t":1.5}"#), ("q", #"{"p":"/a","q":{"sp":{},"i":"x"},"t":1}"#),
        ("auth", "{}"), ("auth", #"{"cred":7}"#), ("gauth", #"{"cred":"x","authvar":7}"#),
    ]

    @Test func wrongBodiesGetAFailureByTheirNumber() {
        for row in Self.wrong {
            var session = SessionScript()
            let lines = session.asks(4, row.action, row.body)
            #expect(lines.count == 1)
            #expect(
                lines.first?.hasPrefix(#"send {"t":"d","d":{"r":4,"b":{"s":"failure","d":""#) == true,
                "\(row): \(lines)")
        }
    }

    @Test func valueThatIsNoJSONGetsAFailureByItsNumber() {
        let values = ["\"\\ud83d\"", "{\"a\":1,\"a\":2}", "1e999", "[1,]", String(repeating: "[", count: 70), "nul"]
        for value in values {
            var session = SessionScript()
            let lines = session.asks(5, "p", "{\"p\":\"/a\",\"d\":\(value)}")
            #expect(
                lines.first?.hasPrefix(#"send {"t":"d","d":{"r":5,"b":{"s":"failure","d":"Invalid data; "#) == true,
                "\(value): \(lines)")
        }
    }

    @Test func numberBehindTheBodyIsFoundToo() {
        var session = SessionScript()
        let lines = session.says(#"{"d":{"b":{"p":"/a","d":{"r":1,"x":"\ud800"}},"a":"p","r":9},"t":"d"}"#)
        #expect(lines.first?.hasPrefix(#"send {"t":"d","d":{"r":9,"b":{"s":"failure""#) == true)
    }

    @Test func textThatIsNoMessageClosesTheSession() {
        for text in [
            "", "7", "[]", "hello", "{}", #"{"t":"d"}"#, #"{"t":"d","d":{"a":"p"}}"#, #"{"t":"x","d":{"r":1,"a":"s"}}"#,
            #"{"t":"d","d":{"r":1.5,"a":"s"}}"#, #"{"t":"d","d":{"r":"1","a":"s"}}"#, "\u{FEFF}{}",
        ] {
            var session = SessionScript()
            let lines = session.says(text)
            #expect(lines.count == 1 && lines[0].hasPrefix("close unreadableMessage"), "\(text): \(lines)")
            #expect(session.asks(1, "s", "{}").isEmpty)
        }
    }

    @Test func messageThatIsTooLargeGetsItsResponse() {
        let tooBig = #""Data to write exceeds the maximum size that can be modified with a single request.""#
        let start = Array(#"{"t":"d","d":{"r":6,"a":"p","b":{"p":"/a","d":"xx"#.utf8)
        var session = SessionScript()
        #expect(
            session.handle(.message(.oversized(start: start, end: Array("xx\"}}}".utf8))))
                == [response(6, "write_too_big", tooBig)])
        let unordered = Array(#"{"d":{"b":{"p":"/a","d":"xx"#.utf8)
        #expect(
            session.handle(
                .message(.oversized(start: unordered, end: Array(#"r":1}xx"},"a":"p","r":8},"t":"d"}"#.utf8))))
                == [response(8, "write_too_big", tooBig)])
        // The last `r` belongs to the value.
        #expect(
            session.handle(.message(.oversized(start: unordered, end: Array(#"x","r":8}}},"t":"d"}"#.utf8)))).first?
                .hasPrefix("close unreadableMessage") == true)
    }

    @Test func callThatDoesNotFitIntoALineGetsItsResponse() {
        var limits = SessionLimits()
        limits.callBytesMax = 40
        var session = SessionScript(limits: limits)
        #expect(
            session.asks(1, "p", #"{"p":"/a","d":"1234567"}"#) == [
                #"call 1 messages.set {"path":"/a","value":"1234567"}"#
            ])
        let tooBig = #""Data to write exceeds the maximum size that can be modified with a single request.""#
        #expect(session.asks(2, "p", #"{"p":"/a","d":"1234567890123456789"}"#).isEmpty)
        #expect(session.succeeds(1, "{}") == [response(1, "ok"), response(2, "write_too_big", tooBig)])
    }

    @Test func pingsGetAPongWithItsInnerData() {
        var session = SessionScript()
        #expect(session.says(#"{"t":"c","d":{"t":"p","d":{}}}"#) == [#"send {"t":"c","d":{"t":"o","d":null}}"#])
        #expect(session.says(#"{"t":"c","d":{"t":"zzz","d":{}}}"#).isEmpty)
    }

    @Test func responsesComeInTheOrderOfTheRequests() {
        var session = SessionScript()
        _ = session.asks(1, "p", #"{"p":"/a","d":1}"#)
        #expect(session.asks(2, "s", "{}").isEmpty)
        _ = session.asks(3, "p", #"{"p":"/a","d":2}"#)
        #expect(session.succeeds(2, "{}").isEmpty)
        #expect(session.succeeds(1, "{}") == [response(1, "ok"), response(2, "ok"), response(3, "ok")])
        #expect(session.succeeds(1, "{}").isEmpty)
    }

    @Test func queryThatMeetsAnIndexBeingBuiltIsRepeated() {
        var limits = SessionLimits()
        limits.indexMsMax = 500
        var session = SessionScript(limits: limits)
        _ = session.asks(1, "g", #"{"p":"/a","q":{"i":"n","sp":1}}"#)
        _ = session.asks(2, "p", #"{"p":"/a","d":2}"#)
        #expect(session.refuses(1, .failedPrecondition, "index_building") == ["schedule read(1) after(250)"])
        // Others do not wait for it.
        #expect(session.succeeds(2, "{}") == [response(2, "ok")])
        let call = #"messages.get {"path":"/a","query":{"orderBy":"n","startAt":1},"export":true}"#
        #expect(session.handle(.timerFired(.read(1))) == ["call 3 \(call)"])
        #expect(
            session.refuses(3, .failedPrecondition, "index_building") == [response(1, "unavailable", "\"It is so\"")])
        #expect(session.handle(.timerFired(.read(1))).isEmpty)
    }

    @Test func repeatedQueryGetsItsValue() {
        var session = SessionScript()
        _ = session.asks(1, "g", #"{"p":"/a","q":{"i":"n","sp":1}}"#)
        _ = session.refuses(1, .failedPrecondition, "index_building")
        _ = session.handle(.timerFired(.read(1)))
        #expect(session.succeeds(2, #"{"value":{"k":1},"keys":["k"],"version":1}"#) == [response(1, "ok", #"{"k":1}"#)])
    }

    @Test func stoppingSendsTheClientToItsOwnHost() {
        var session = SessionScript()
        #expect(session.handle(.stopping) == [#"send {"t":"c","d":{"t":"r","d":"127.0.0.1:9000"}}"#])
    }

    @Test func unknownNamespaceShutsTheClientDown() {
        var machine = SessionStateMachine(database: nil, host: "h", session: "s")
        let text =
            "Firebase error. Please ensure that you have the URL of your Firebase Realtime Database instance configured correctly."
        #expect(
            machine.handle(.namespaceWasUnknown).map(\.line) == [
                "send {\"t\":\"c\",\"d\":{\"t\":\"s\",\"d\":\"\(text)\"}}", "close unknownNamespace",
            ])
    }

    /// A name says nothing of whether there is the database.
    @Test func clientsOfAnotherDatabaseAreGreetedOnceItIsKnownToBeThere() {
        func opened() -> (machine: SessionStateMachine, actions: [String]) {
            var machine = SessionStateMachine(database: DatabaseName(rawValue: "chat-2"), host: "h", session: "s")
            _ = machine.handle(.accepted)
            let actions = machine.handle(.wireOpened(at: 7)).map(\.line)
            return (machine, actions)
        }
        let read = #"call 1 messages.get {"database":"chat-2","path":"/-/-"}"#
        let hello = #"send {"t":"c","d":{"t":"h","d":{"ts":7,"v":"5","h":"h","s":"s"}}}"#
        func outcome(_ event: SessionStateMachine.Event) -> [String] {
            var (machine, actions) = opened()
            #expect(actions == [read])
            return machine.handle(event).map(\.line)
        }
        #expect(outcome(.succeeded(call: 1, result: Array(#"{"value":null}"#.utf8)[...])) == ["cancel wire", hello])
        func refused(_ code: RPCError.Code, _ reason: String) -> [String] {
            outcome(.refused(call: 1, RPCError(code, reason: reason, "It is so")))
        }
        #expect(refused(.permissionDenied, "permission_denied") == ["cancel wire", hello])
        #expect(refused(.resourceExhausted, "busy") == ["cancel wire", hello])
        #expect(refused(.unavailable, "stopping") == ["close outage(\"stopping\")"])
        let unknown = refused(.notFound, "database_not_found")
        #expect(unknown.count == 2 && unknown.first?.contains(#""t":"s""#) == true)
        #expect(unknown.last == "close unknownNamespace")
    }

    @Test func nothingHappensOnceTheWireHasEnded() {
        var session = SessionScript()
        session.listens(1, "/a", "l1")
        _ = session.asks(2, "p", #"{"p":"/a","d":1}"#)
        #expect(session.handle(.wireEnded) == ["close wireLost"])
        #expect(session.succeeds(2, "{}").isEmpty)
        #expect(session.notifies("l1", #"{"type":"put","path":"/","data":1}"#).isEmpty)
        #expect(session.asks(3, "s", "{}").isEmpty)
        #expect(session.handle(.wireEnded).isEmpty)
    }

    @Test func resultsThatCannotBeReadCloseTheSession() {
        var session = SessionScript()
        _ = session.asks(1, "g", #"{"p":"/a","q":{}}"#)
        #expect(session.succeeds(1, "{\"version\":7}") == ["close unreadableResult"])
    }
}
