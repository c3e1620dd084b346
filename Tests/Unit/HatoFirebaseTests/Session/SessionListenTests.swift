import HatoModel
import Testing

@testable import HatoFirebase

/// Listening (spec realtime-database §8.5, §8.8): order, contents, hashes and ends.
@Suite struct SessionListenTests {
    private let opened = #"{"subscription":"l1","version":1,"epoch":"e"}"#
    private let nothing = #"{"type":"put","path":"/","data":null}"#

    @Test func firstValueIsPushedBeforeTheResponse() {
        var session = SessionScript()
        #expect(session.asks(1, "q", #"{"p":"/a/b","h":""}"#) == [#"call 1 messages.listen {"path":"/a/b"}"#])
        #expect(session.succeeds(1, opened).isEmpty)
        #expect(
            session.notifies("l1", #"{"type":"put","path":"/","data":{"x":1}}"#) == [
                push("d", #""p":"a/b","d":{"x":1}"#), response(1, "ok", "{}"),
            ])
        #expect(
            session.notifies("l1", #"{"type":"put","path":"/x","data":2}"#) == [push("d", #""p":"a/b/x","d":2"#)])
    }

    @Test func emptyValueIsPushedAsNull() {
        var session = SessionScript()
        _ = session.asks(1, "q", #"{"p":"/a","h":""}"#)
        _ = session.succeeds(1, opened)
        #expect(session.notifies("l1", nothing) == [push("d", #""p":"a","d":null"#), response(1, "ok", "{}")])
    }

    @Test func rootHasAnEmptyPath() {
        var session = SessionScript()
        _ = session.asks(1, "q", #"{"p":"/","h":""}"#)
        _ = session.succeeds(1, opened)
        #expect(session.notifies("l1", nothing) == [push("d", #""p":"","d":null"#), response(1, "ok", "{}")])
        #expect(session.notifies("l1", #"{"type":"put","path":"/x/y","data":2}"#) == [push("d", #""p":"x/y","d":2"#)])
    }

    @Test func laterResponsesWaitForTheFirstValue() {
        var session = SessionScript()
        _ = session.asks(1, "q", #"{"p":"/a","h":""}"#)
        _ = session.asks(2, "p", #"{"p":"/a","d":1}"#)
        _ = session.succeeds(1, opened)
        #expect(session.succeeds(2, "{}").isEmpty)
        #expect(
            session.notifies("l1", #"{"type":"put","path":"/","data":1}"#) == [
                push("d", #""p":"a","d":1"#), response(1, "ok", "{}"), response(2, "ok"),
            ])
    }

    @Test func ownEventsArePushedBeforeTheResponseOfTheWrite() {
        var session = SessionScript()
        session.listens(1, "/a", "l1")
        _ = session.asks(2, "p", #"{"p":"/a","d":5}"#)
        #expect(session.notifies("l1", #"{"type":"put","path":"/","data":5}"#) == [push("d", #""p":"a","d":5"#)])
        #expect(session.succeeds(2, "{}") == [response(2, "ok")])
    }

    @Test func hashesOfListensBecomeEtags() {
        let hash = "YPVfR2bXt/lcDjiQZ8pOkAd3qkQ="
        let rows = [
            ("\"h\":\"\(hash)\"", ",\"etag\":\"\(hash)\""), ("\"h\":\"\"", ""), ("\"h\":\"nonsense\"", ""),
            ("\"ch\":{\"ps\":[],\"hs\":[\"\"]},\"h\":\"\(hash)\"", ",\"etag\":\"\(hash)\""), ("\"h\":null", ""),
        ]
        for (member, etag) in rows {
            var session = SessionScript()
            #expect(
                session.asks(1, "q", "{\"p\":\"/a\",\(member)}") == ["call 1 messages.listen {\"path\":\"/a\"\(etag)}"])
        }
    }

    @Test func unchangedValueIsNotPushed() {
        var session = SessionScript()
        _ = session.asks(1, "q", #"{"p":"/a","h":"YPVfR2bXt/lcDjiQZ8pOkAd3qkQ="}"#)
        #expect(
            session.succeeds(1, #"{"subscription":"l1","version":1,"epoch":"e","unchanged":true}"#)
                == [response(1, "ok", "{}")])
        #expect(session.notifies("l1", #"{"type":"put","path":"/","data":2}"#) == [push("d", #""p":"a","d":2"#)])
    }

    @Test func missingIndexIsAWarning() {
        var session = SessionScript()
        #expect(
            session.asks(1, "q", #"{"p":"/a","q":{"i":"n","l":2,"vf":"r"},"t":3,"h":""}"#)
                == [#"call 1 messages.listen {"path":"/a","query":{"orderBy":"n","limitToLast":2}}"#])
        _ = session.succeeds(1, #"{"subscription":"l1","version":1,"epoch":"e","warning":"no_index"}"#)
        #expect(
            session.notifies("l1", #"{"type":"put","path":"/","data":{}}"#) == [
                push("d", #""p":"a","d":{},"t":3"#), response(1, "ok", #"{"w":["no_index"]}"#),
            ])
    }

    @Test func pushesOfAQueryHaveItsTag() {
        var session = SessionScript()
        _ = session.asks(1, "q", #"{"p":"/a","q":{"i":".key","l":1,"vf":"r"},"t":12,"h":""}"#)
        _ = session.succeeds(1, opened)
        _ = session.notifies("l1", nothing)
        #expect(
            session.notifies(
                "l1",
                #"{"type":"patch","path":"/","data":{"k1":null,"k2":{"x":1}}},{"type":"put","path":"/k2/x","data":2}"#)
                == [
                    push("m", #""p":"a","d":{"k1":null,"k2":{"x":1}},"t":12"#),
                    push("d", #""p":"a/k2/x","d":2,"t":12"#),
                ])
    }

    @Test func patchesBecomeMerges() {
        var session = SessionScript()
        session.listens(1, "/a", "l1")
        #expect(
            session.notifies("l1", #"{"type":"patch","path":"/","data":{"x/y":1,".priority":2,"z/.priority":"p"}}"#)
                == [push("m", #""p":"a","d":{"x/y":1,".priority":2,"z/.priority":"p"}"#)])
        #expect(
            session.notifies("l1", #"{"type":"patch","path":"/b","data":{"c":1}}"#) == [
                push("m", #""p":"a/b","d":{"c":1}"#)
            ])
    }

    @Test func prioritiesAreInPaths() {
        var session = SessionScript()
        session.listens(1, "/a", "l1")
        #expect(
            session.notifies("l1", #"{"type":"put","path":"/x/.priority","data":7}"#)
                == [push("d", #""p":"a/x/.priority","d":7"#)])
        #expect(
            session.notifies("l1", #"{"type":"put","path":"/.priority","data":null}"#)
                == [push("d", #""p":"a/.priority","d":null"#)])
    }

    @Test func keysStayEscaped() {
        var session = SessionScript()
        session.listens(1, #"/a\"b"#, "l1")
        #expect(
            session.notifies("l1", #"{"type":"put","path":"/c\"\\d","data":"}]\"{"}"#)
                == [push("d", #""p":"a\"b/c\"\\d","d":"}]\"{""#)])
    }

    @Test func deniedListenGetsItsResponseOnly() {
        var session = SessionScript()
        _ = session.asks(1, "q", #"{"p":"/a","h":""}"#)
        #expect(
            session.refuses(1, .permissionDenied, "permission_denied")
                == [response(1, "permission_denied", "\"Permission denied\"")])
        #expect(session.asks(2, "n", #"{"p":"/a"}"#) == [response(2, "ok")])
    }

    @Test func listenEnds() {
        var session = SessionScript()
        session.listens(1, "/a", "l1")
        #expect(session.asks(2, "n", #"{"p":"a"}"#) == [#"call 2 messages.unlisten {"subscription":"l1"}"#])
        #expect(session.notifies("l1", nothing).isEmpty)
        #expect(session.succeeds(2, "{}") == [response(2, "ok")])
        #expect(session.asks(3, "n", #"{"p":"a"}"#) == [response(3, "ok")])
    }

    @Test func listenThatIsEndedWhileItOpensIsEndedBehind() {
        var session = SessionScript()
        _ = session.asks(1, "q", #"{"p":"/a","h":""}"#)
        #expect(session.asks(2, "n", #"{"p":"/a"}"#).isEmpty)
        #expect(
            session.succeeds(1, opened) == [
                #"call 2 messages.unlisten {"subscription":"l1"}"#, response(1, "ok", "{}"), response(2, "ok"),
            ])
        #expect(session.notifies("l1", nothing).isEmpty)
        #expect(session.succeeds(2, "{}").isEmpty)
    }

    @Test func listenThatIsEndedBeforeItsFirstValueGetsItsResponse() {
        var session = SessionScript()
        _ = session.asks(1, "q", #"{"p":"/a","h":""}"#)
        _ = session.succeeds(1, opened)
        #expect(
            session.asks(2, "n", #"{"p":"/a"}"#)
                == [response(1, "ok", "{}"), #"call 2 messages.unlisten {"subscription":"l1"}"#])
        #expect(session.succeeds(2, "{}") == [response(2, "ok")])
    }

    @Test func equalListenReplacesAnOlderOne() {
        var session = SessionScript()
        session.listens(1, "/a", "l1")
        #expect(
            session.asks(2, "q", #"{"p":"a","h":""}"#) == [
                #"call 2 messages.unlisten {"subscription":"l1"}"#, #"call 3 messages.listen {"path":"/a"}"#,
            ])
        _ = session.succeeds(2, "{}")
        _ = session.succeeds(3, #"{"subscription":"l2","version":1,"epoch":"e"}"#)
        #expect(session.notifies("l2", nothing) == [push("d", #""p":"a","d":null"#), response(2, "ok", "{}")])
    }

    @Test func listensAreTheSameWhateverTheOrderOfTheirQuery() {
        var session = SessionScript()
        _ = session.asks(1, "q", #"{"p":"/a","q":{"i":"n","l":2,"vf":"r","sp":1.0},"t":1,"h":""}"#)
        _ = session.succeeds(1, opened)
        _ = session.notifies("l1", nothing)
        #expect(
            session.asks(2, "n", #"{"p":"a","q":{"vf":"r","sp":1,"l":2,"i":"n"},"t":1}"#)
                == [#"call 2 messages.unlisten {"subscription":"l1"}"#])
    }

    @Test func defaultListenAndQueryAtOnePathAreTwo() {
        var session = SessionScript()
        session.listens(1, "/a", "l1")
        _ = session.asks(2, "q", #"{"p":"/a","q":{"i":".value","l":2,"vf":"r"},"t":1,"h":""}"#)
        _ = session.succeeds(2, #"{"subscription":"l2","version":1,"epoch":"e"}"#)
        _ = session.notifies("l2", nothing)
        #expect(session.asks(3, "n", #"{"p":"a"}"#) == [#"call 3 messages.unlisten {"subscription":"l1"}"#])
        #expect(session.notifies("l2", nothing) == [push("d", #""p":"a","d":null,"t":1"#)])
    }

    @Test func lostRightRevokesTheListen() {
        var session = SessionScript()
        session.listens(1, "/a/b", "l1")
        #expect(session.cancels("l1", "permission_denied") == [push("c", #""p":"a/b""#)])
        #expect(session.notifies("l1", nothing).isEmpty)
        #expect(session.cancels("l1", "permission_denied").isEmpty)
        #expect(session.asks(2, "n", #"{"p":"/a/b"}"#) == [response(2, "ok")])
    }

    @Test func lostRightToAQueryNamesItInAList() {
        var session = SessionScript()
        _ = session.asks(1, "q", #"{"p":"/a","q":{"vf":"r","l":2,"i":"n"},"t":1,"h":""}"#)
        _ = session.succeeds(1, opened)
        _ = session.notifies("l1", nothing)
        #expect(session.cancels("l1", "permission_denied") == [push("c", #""p":"a","q":[{"i":"n","l":2,"vf":"r"}]"#)])
    }

    @Test func rightThatIsLostBeforeTheFirstValueIsAResponse() {
        var session = SessionScript()
        _ = session.asks(1, "q", #"{"p":"/a","h":""}"#)
        _ = session.succeeds(1, opened)
        #expect(
            session.cancels("l1", "permission_denied")
                == [response(1, "permission_denied", "\"Permission denied\"")])
    }

    @Test func valueThatIsTooLargeIsAResponse() {
        let text = #""The specified payload is too large, please request a location with less data.""#
        var session = SessionScript()
        _ = session.asks(1, "q", #"{"p":"/a","h":""}"#)
        #expect(session.refuses(1, .resourceExhausted, "too_big") == [response(1, "too_big", text)])
        _ = session.asks(2, "q", #"{"p":"/a","h":""}"#)
        _ = session.succeeds(2, opened)
        #expect(session.cancels("l1", "too_big") == [response(2, "too_big", text)])
    }

    @Test func listenThatEndsLaterClosesSoThatTheClientHearsItAsAResponse() {
        for reason in ["too_big", "unavailable", "database_dropped", "stopping", "whatever comes later"] {
            var session = SessionScript()
            session.listens(1, "/a", "l1")
            #expect(session.cancels("l1", reason) == ["close outage(\"\(reason)\")"])
        }
    }

    @Test func unknownSubscriptionsAreIgnored() {
        var session = SessionScript()
        #expect(session.notifies("l9", nothing).isEmpty)
        #expect(session.cancels("l9", "permission_denied").isEmpty)
    }

    @Test func eventsThatCannotBeReadCloseTheSession() {
        for events in [
            #"{"type":"put","path":"/"}"#, #"{"type":"zzz","path":"/","data":1}"#, "7", #"{"type":"put","data":1}"#,
            #"{"type":"put","path":"/","data":"#,
        ] {
            var session = SessionScript()
            session.listens(1, "/a", "l1")
            #expect(session.notifies("l1", events) == ["close unreadableResult"], "\(events)")
        }
    }

    @Test func stateOfATransactionIsPushedBeforeItsRefusal() {
        var session = SessionScript()
        session.listens(1, "/a", "l1")
        _ = session.asks(2, "p", #"{"p":"/a","d":2,"h":""}"#)
        #expect(session.notifies("l1", #"{"type":"put","path":"/","data":1}"#) == [push("d", #""p":"a","d":1"#)])
        #expect(
            session.refuses(2, .failedPrecondition, "etag_mismatch")
                == [response(2, "datastale", "\"Transaction hash does not match\"")])
    }
}
