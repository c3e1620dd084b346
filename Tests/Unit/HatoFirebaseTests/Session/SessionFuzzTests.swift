import HatoModel
import Testing

@testable import HatoFirebase

/// Damaged messages: what goes to the service and to the client is JSON in one line, whatever a client sends.
@Suite struct SessionFuzzTests {
    private static let messages = [
        #"{"t":"d","d":{"r":1,"a":"s","b":{"c":{"sdk.js.12-18-0":1}}}}"#,
        #"{"t":"d","d":{"r":2,"a":"q","b":{"p":"/a/b","q":{"i":"n","sp":3,"sn":"k","sin":false,"l":2},"t":1,"h":""}}}"#,
        #"{"t":"d","d":{"r":3,"a":"q","b":{"p":"a","h":"YPVfR2bXt/lcDjiQZ8pOkAd3qkQ=","ch":{"ps":["x"],"hs":["",""]}}}}"#,
        #"{"t":"d","d":{"r":4,"a":"n","b":{"p":"/a/b","q":{"i":"n","sp":3,"sn":"k","sin":false,"l":2},"t":1}}}"#,
        #"{"t":"d","d":{"r":5,"a":"p","b":{"p":"/a","d":{"x":[1,2.5e3,"é\u00e9",null,true],".priority":1},"h":""}}}"#,
        #"{"t":"d","d":{"r":6,"a":"m","b":{"p":"/a","d":{"b/c":1,"d":{".sv":{"increment":1}}}}}}"#,
        #"{"t":"d","d":{"r":7,"a":"om","b":{"p":"/a","d":{"b":{".sv":"timestamp"}}}}}"#,
        #"{"t":"d","d":{"r":8,"a":"auth","b":{"cred":"eyJ.e30.x","authvar":{"uid":"u"}}}}"#,
        #"{"t":"d","d":{"r":9,"a":"g","b":{"p":"/a","q":{}}}}"#, #"{"t":"c","d":{"t":"p","d":{}}}"#,
    ]

    @Test func damagedMessagesBreakNoLine() {
        let failures = SeededInputs.failures(3_000) { random in
            var session = SessionStateMachine(database: nil, host: "h", session: "s")
            _ = session.handle(.accepted)
            _ = session.handle(.wireOpened(at: 1))
            for _ in 0..<3 {
                var bytes = Array(random.one(of: Self.messages).utf8)
                if !random.once(in: 4) { random.damage(&bytes) }
                let message: ReceivedMessage =
                    random.once(in: 10) ? .oversized(start: bytes, end: bytes) : .whole(bytes)
                let actions = session.handle(.message(message))
                if actions.isEmpty { continue }
                for action in actions {
                    switch action {
                    case .send(let text), .call(_, _, let text):
                        if (try? JSONParser.parse(text)) == nil { return "no JSON: \(action.line)" }
                        if text.contains(0x0A) || text.contains(0x0D) { return "a line end: \(action.line)" }
                    case .authenticate, .schedule, .cancel, .close: break
                    }
                }
            }
            return nil
        }
        #expect(failures.isEmpty, "\(failures)")
    }

    /// Texts of services are trusted, and yet nothing traps.
    @Test func damagedNotificationsTrapNowhere() {
        let failures = SeededInputs.failures(2_000) { random in
            var session = SessionScript()
            session.listens(1, "/a", "l1")
            _ = session.asks(2, "g", #"{"p":"/a"}"#)
            _ = session.asks(3, "q", #"{"p":"/b"}"#)
            var bytes = Array(
                #"{"subscription":"l2","version":1,"value":[1],"events":[{"type":"put","path":"/x","data":{"a":"\""}}]}"#
                    .utf8)
            random.damage(&bytes)
            _ = session.handle(.notified(.init(subscription: "l1", params: bytes[...])))
            _ = session.handle(.succeeded(call: 2, result: bytes[...]))
            _ = session.handle(.succeeded(call: 3, result: bytes[...]))
            _ = session.handle(.notified(.init(isEnd: true, subscription: "l1", params: bytes[...])))
            return nil
        }
        #expect(failures.isEmpty)
    }
}
