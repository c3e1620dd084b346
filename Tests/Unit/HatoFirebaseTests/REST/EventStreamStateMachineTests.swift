import HatoModel
import Testing

@testable import HatoFirebase

@Suite struct EventStreamStateMachineTests {
    private static let accept = [(name: "Accept", value: "text/event-stream")]
    private static let opened = #"{"subscription":"s1","version":17,"epoch":"e"}"#

    /// A stream with its listener's call.
    private struct Stream {
        var machine: EventStreamStateMachine
        let listen: RESTOperation

        init(_ target: String = "/a.json") throws {
            let request = try RESTSamples.request("GET", target, accept)
            machine = EventStreamStateMachine(request, as: request.identity())
            listen = try RESTSamples.operation("GET", target, accept)
        }

        mutating func open(_ result: String = opened) -> [EventStreamStateMachine.Action] {
            machine.callSucceeded(listen, result: Array(result.utf8))
        }

        mutating func events(_ events: String) -> [EventStreamStateMachine.Action] {
            machine.eventsArrived(Array(#"{"subscription":"s1","version":18,"events":[\#(events)]}"#.utf8))
        }

        /// What the stream sends for events after the first one.
        mutating func text(_ events: String) -> String {
            self.events(events).map {
                if case .send(let bytes) = $0 { String(decoding: bytes, as: UTF8.self) } else { "\($0)" }
            }
            .joined()
        }
    }

    private static func started(_ target: String = "/a.json") throws -> Stream {
        var stream = try Stream(target)
        _ = stream.open()
        _ = stream.events(#"{"type":"put","path":"/","data":null}"#)
        return stream
    }

    private static func send(_ text: String) -> EventStreamStateMachine.Action { .send(Array(text.utf8)) }

    // MARK: Begin

    @Test func streamBeginsWithTheWholeValue() throws {
        var stream = try Stream()
        #expect(stream.open() == [])
        let actions = stream.events(#"{"type":"put","path":"/","data":{"0":{".value":"x",".priority":1},"1":true}}"#)
        try #require(actions.count == 3)
        guard case .sendHead(let head) = actions[0] else {
            Issue.record("no head")
            return
        }
        #expect(head.status == 200)
        #expect(head.header("content-type") == "text/event-stream; charset=utf-8")
        #expect(head.header("cache-control") == "no-cache")
        #expect(head.header("access-control-allow-origin") == "*")
        #expect(actions[1] == Self.send("event: put\ndata: {\"path\":\"/\",\"data\":[\"x\",true]}\n\n"))
        #expect(actions[2] == .scheduleKeepAlive(milliseconds: 30_000))
    }

    @Test(arguments: [
        (RPCError.permissionDenied(path: "/a"), RESTErrors.denied),
        (RPCError.unauthenticated(reason: "TOKEN_EXPIRED", "x"), RESTErrors.expiredToken),
        (RPCError.unavailable(reason: "stopping", "x"), RESTErrors.unavailable),
        (RPCError.notFound(reason: "database_not_found", "x"), RESTErrors.notFound),
    ])
    func listenerThatIsRefusedIsAResponse(error: RPCError, response: RESTError) throws {
        var stream = try Stream("/a.json?auth=t.t.t")
        #expect(stream.machine.callFailed(stream.listen, error) == [.answer(response.response())])
        #expect(stream.events(#"{"type":"put","path":"/","data":1}"#) == [])
        #expect(stream.machine.wireEnded() == [])
    }

    @Test(arguments: [
        ("permission_denied", RESTErrors.denied), ("token_expired", RESTErrors.expiredToken),
        ("token_revoked", RESTErrors.invalidToken), ("too_big", RESTErrors.valueTooBig),
        ("database_dropped", RESTErrors.notFound), ("unavailable", RESTErrors.unavailable),
        ("stopping", RESTErrors.unavailable),
    ])
    func listenerThatEndsBeforeItsFirstEventIsAResponse(reason: String, response: RESTError) throws {
        var stream = try Stream()
        _ = stream.open()
        #expect(stream.machine.listenerWasCancelled(reason: reason) == [.answer(response.response())])
        #expect(stream.machine.keepAliveWasDue() == [])
    }

    @Test func wireThatEndsBeforeTheFirstEventIsUnavailable() throws {
        var stream = try Stream()
        #expect(stream.machine.wireEnded() == [.answer(RESTErrors.unavailable.response())])
        var open = try Stream()
        _ = open.open()
        #expect(open.machine.wireEnded() == [.answer(RESTErrors.unavailable.response())])
    }

    // MARK: Indexes

    private static let query = "/a.json?orderBy=%22n%22&limitToLast=1&auth=t"
    private static let withoutIndex = #"{"subscription":"s1","version":17,"epoch":"e","warning":"no_index"}"#

    @Test func queryWithoutAnIndexIsRefused() throws {
        var stream = try Stream(Self.query)
        let actions = stream.open(Self.withoutIndex)
        guard case .call(let probe)? = actions.first, actions.count == 1 else {
            Issue.record("\(actions)")
            return
        }
        #expect(probe.method == "messages.get")
        #expect(probe.text == #"{"path":"/a","query":{"orderBy":"n","limitToLast":1},"shallow":true,"auth":"t"}"#)
        // Events of the listener may come first.
        #expect(stream.events(#"{"type":"put","path":"/","data":null}"#) == [])
        let text = #"Index not defined, add ".indexOn": "n", for path "/a", to the rules"#
        let error = RPCError.failedPrecondition(reason: "index_not_defined", text)
        #expect(stream.machine.callFailed(probe, error) == [.answer(RESTError(400, text).response())])
    }

    @Test func queryWhoseIndexIsBeingBuiltBeginsAgain() throws {
        let again = EventStreamStateMachine.Action.beginAgain(otherwise: RESTErrors.unavailable.response())
        var stream = try Stream(Self.query)
        guard case .call(let probe)? = stream.open(Self.withoutIndex).first else { return }
        #expect(stream.machine.callFailed(probe, .failedPrecondition(reason: "index_building", "x")) == [again])
        var ready = try Stream(Self.query)
        _ = ready.open(Self.withoutIndex)
        #expect(
            ready.machine.callSucceeded(probe, result: Array(#"{"value":{},"keys":[],"version":1}"#.utf8)) == [again])
    }

    // MARK: Events

    @Test(arguments: [
        (#"{"type":"put","path":"/b/c","data":1}"#, "event: put\ndata: {\"path\":\"/b/c\",\"data\":1}\n\n"),
        (#"{"type":"put","path":"/b","data":null}"#, "event: put\ndata: {\"path\":\"/b\",\"data\":null}\n\n"),
        (#"{"type":"put","path":"/\"あ","data":"\n"}"#, "event: put\ndata: {\"path\":\"/\\\"あ\",\"data\":\"\\n\"}\n\n"),
        (
            #"{"type":"patch","path":"/","data":{"b":1,"c":null}}"#,
            "event: patch\ndata: {\"path\":\"/\",\"data\":{\"b\":1,\"c\":null}}\n\n"
        ),
        (
            #"{"type":"patch","path":"/","data":{"b/c":1,"b/d":2}}"#,
            "event: patch\ndata: {\"path\":\"/b\",\"data\":{\"c\":1,\"d\":2}}\n\n"
        ),
        (
            #"{"type":"patch","path":"/x","data":{"b/c":1,"b/d":2}}"#,
            "event: patch\ndata: {\"path\":\"/x/b\",\"data\":{\"c\":1,\"d\":2}}\n\n"
        ),
        (#"{"type":"patch","path":"/x","data":{"b":1}}"#, "event: put\ndata: {\"path\":\"/x/b\",\"data\":1}\n\n"),
        (
            #"{"type":"patch","path":"/","data":{"a":0,"b/c":1,"b/d":2,"e/f/g":3}}"#,
            "event: put\ndata: {\"path\":\"/a\",\"data\":0}\n\n"
                + "event: patch\ndata: {\"path\":\"/b\",\"data\":{\"c\":1,\"d\":2}}\n\n"
                + "event: put\ndata: {\"path\":\"/e/f/g\",\"data\":3}\n\n"
        ),
        (
            #"{"type":"put","path":"/b","data":1},{"type":"put","path":"/c","data":2}"#,
            "event: put\ndata: {\"path\":\"/b\",\"data\":1}\n\nevent: put\ndata: {\"path\":\"/c\",\"data\":2}\n\n"
        ),
        // Priorities alone send nothing.
        (#"{"type":"put","path":"/b/.priority","data":3}"#, ""), (#"{"type":"put","path":"/.priority","data":3}"#, ""),
        (#"{"type":"patch","path":"/","data":{"b/.priority":1,".priority":2}}"#, ""),
        (
            #"{"type":"patch","path":"/","data":{"b":1,"b/.priority":1}}"#,
            "event: put\ndata: {\"path\":\"/b\",\"data\":1}\n\n"
        ),
        (
            #"{"type":"put","path":"/b","data":{".value":1,".priority":2}}"#,
            "event: put\ndata: {\"path\":\"/b\",\"data\":1}\n\n"
        ),
        (
            #"{"type":"patch","path":"/","data":{"b":{"0":1},"c":{".priority":1,"d":2}}}"#,
            "event: patch\ndata: {\"path\":\"/\",\"data\":{\"b\":[1],\"c\":{\"d\":2}}}\n\n"
        ),
        ("", ""),
    ])
    func eventsHaveTheFormOfAGet(events: String, text: String) throws {
        var stream = try Self.started()
        #expect(stream.text(events) == text)
    }

    @Test(arguments: [
        (
            #"{"type":"put","path":"/b/.priority","data":3}"#,
            "event: put\ndata: {\"path\":\"/b/.priority\",\"data\":3}\n\n"
        ),
        (
            #"{"type":"put","path":"/b","data":{".value":1,".priority":2}}"#,
            "event: put\ndata: {\"path\":\"/b\",\"data\":{\".value\":1,\".priority\":2}}\n\n"
        ),
        (#"{"type":"put","path":"/b","data":{"0":1}}"#, "event: put\ndata: {\"path\":\"/b\",\"data\":{\"0\":1}}\n\n"),
        (
            #"{"type":"patch","path":"/","data":{"b/c":1,"b/.priority":2}}"#,
            "event: patch\ndata: {\"path\":\"/b\",\"data\":{\"c\":1,\".priority\":2}}\n\n"
        ),
    ])
    func exportKeepsPriorities(events: String, text: String) throws {
        var stream = try Self.started("/a.json?format=export")
        #expect(stream.text(events) == text)
    }

    @Test(arguments: ["", "&format=export"])
    func resultOfAQueryIsAnObjectInKeyOrder(format: String) throws {
        var stream = try Self.started("/a.json?orderBy=%22n%22\(format)")
        #expect(
            stream.text(#"{"type":"put","path":"/","data":{"1":{"n":1},"0":{"n":2}}}"#)
                == "event: put\ndata: {\"path\":\"/\",\"data\":{\"0\":{\"n\":2},\"1\":{\"n\":1}}}\n\n")
        for empty in ["{}", "null"] {
            #expect(
                stream.text(#"{"type":"put","path":"/","data":\#(empty)}"#)
                    == "event: put\ndata: {\"path\":\"/\",\"data\":null}\n\n")
        }
    }

    @Test func membersWithoutBracesAreTaken() throws {
        var stream = try Self.started()
        let actions = stream.machine.eventsArrived(
            Array(#""version":18,"events":[{"type":"put","path":"/","data":1}]"#.utf8))
        #expect(actions == [Self.send("event: put\ndata: {\"path\":\"/\",\"data\":1}\n\n")])
    }

    @Test func eventsThatAreNoneCloseTheStream() throws {
        for text in [
            "", "{}", #"{"events":1}"#, #"{"events":[1]}"#, #"{"events":[{"path":"/"}]}"#,
            #"{"events":[{"path":1,"data":1}]}"#,
            #"{"events":[{"type":"put","path":"/","data":}]}"#, #"{"events":[{"type":"patch","path":"/","data":1}]}"#,
            #"{"events":[{"type":"put","path":"","data":1}]}"#,
            #"{"events":[{"type":"put","path":"/","data":{"a":}}]}"#,
        ] {
            var stream = try Self.started()
            #expect(stream.machine.eventsArrived(Array(text.utf8)) == [.close], "\(text)")
            var opening = try Stream()
            _ = opening.open()
            #expect(opening.machine.eventsArrived(Array(text.utf8)) == [.answer(RESTErrors.internal.response())])
        }
    }

    // MARK: Time and ends

    @Test func keepAliveIsSentEachTime() throws {
        var stream = try Self.started()
        let expected = [Self.send("event: keep-alive\ndata: null\n\n"), .scheduleKeepAlive(milliseconds: 30_000)]
        #expect(stream.machine.keepAliveWasDue() == expected)
        #expect(stream.machine.keepAliveWasDue() == expected)
    }

    @Test func slowReaderPausesTheWire() throws {
        var stream = try Self.started()
        #expect(stream.machine.writabilityChanged(true) == [])
        #expect(stream.machine.writabilityChanged(false) == [.pauseReading])
        #expect(stream.machine.writabilityChanged(false) == [])
        // What was on its way is still sent; nothing is added to it.
        #expect(
            stream.text(#"{"type":"put","path":"/b","data":1}"#) == "event: put\ndata: {\"path\":\"/b\",\"data\":1}\n\n"
        )
        #expect(stream.machine.keepAliveWasDue() == [.scheduleKeepAlive(milliseconds: 30_000)])
        #expect(stream.machine.writabilityChanged(true) == [.resumeReading])
        // The service merged what the reader missed.
        #expect(
            stream.text(#"{"type":"patch","path":"/","data":{"b":2,"c":3}}"#)
                == "event: patch\ndata: {\"path\":\"/\",\"data\":{\"b\":2,\"c\":3}}\n\n")
    }

    @Test(
        arguments: [
            ("permission_denied", "event: cancel\ndata: null\n\n"),
            ("token_expired", "event: auth_revoked\ndata: credential is no longer valid\n\n"),
            ("token_revoked", "event: auth_revoked\ndata: credential is no longer valid\n\n"),
            ("too_big", nil), ("unavailable", nil), ("database_dropped", nil), ("stopping", nil), ("other", nil),
        ] as [(String, String?)])
    func endOfTheListenerClosesTheStream(reason: String, text: String?) throws {
        var stream = try Self.started()
        #expect(stream.machine.listenerWasCancelled(reason: reason) == (text.map { [Self.send($0)] } ?? []) + [.close])
        #expect(stream.events(#"{"type":"put","path":"/","data":1}"#) == [])
        #expect(stream.machine.keepAliveWasDue() == [])
        #expect(stream.machine.listenerWasCancelled(reason: reason) == [])
        #expect(stream.machine.writabilityChanged(false) == [])
        #expect(stream.machine.wireEnded() == [])
        #expect(stream.machine.clientLeft() == [])
    }

    @Test func wireAndClientEndTheStream() throws {
        var stream = try Self.started()
        #expect(stream.machine.wireEnded() == [.close])
        var other = try Self.started()
        #expect(other.machine.clientLeft() == [.close])
        #expect(other.machine.listenerWasCancelled(reason: "permission_denied") == [])
    }
}
