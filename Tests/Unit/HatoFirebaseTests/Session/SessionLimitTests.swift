import HatoModel
import Testing

@testable import HatoFirebase

/// Everything that a client can make a session hold is bounded.
@Suite struct SessionLimitTests {
    @Test func tooManyRequestsPauseTheInputAndThenCloseTheSession() {
        var limits = SessionLimits()
        limits.requestsInFlightMax = 3
        var session = SessionScript(limits: limits)
        for number in 1...6 {
            #expect(session.machine.wantsInput == (number <= 3))
            #expect(session.asks(number, "p", #"{"p":"/a","d":1}"#).count == 1)
        }
        #expect(session.asks(7, "p", #"{"p":"/a","d":1}"#) == ["close tooManyRequests"])
    }

    @Test func requestsWithoutACallCountToo() {
        var limits = SessionLimits()
        limits.requestsInFlightMax = 1
        for second in [#"{"t":"d","d":{"r":2,"a":"s","b":{}}}"#, #"{"t":"d","d":{"r":2,"a":"p","b":{}}}"#] {
            var session = SessionScript(limits: limits)
            _ = session.asks(1, "p", #"{"p":"/a","d":1}"#)
            #expect(session.says(second).isEmpty)
            #expect(session.says(second) == ["close tooManyRequests"])
        }
    }

    @Test func inputGoesOnWhenResponsesHaveCome() {
        var limits = SessionLimits()
        limits.requestsInFlightMax = 1
        var session = SessionScript(limits: limits)
        _ = session.asks(1, "p", #"{"p":"/a","d":1}"#)
        #expect(!session.machine.wantsInput)
        _ = session.succeeds(1, "{}")
        #expect(session.machine.wantsInput)
    }

    @Test func bytesOfRequestsPauseTheInput() {
        var limits = SessionLimits()
        limits.requestBytesInFlightMax = 100
        var session = SessionScript(limits: limits)
        _ = session.asks(1, "p", "{\"p\":\"/a\",\"d\":\"\(String(repeating: "x", count: 100))\"}")
        #expect(!session.machine.wantsInput)
        _ = session.succeeds(1, "{}")
        #expect(session.machine.wantsInput)
    }

    @Test func readsThatWaitForAnIndexCount() {
        var limits = SessionLimits()
        limits.requestsInFlightMax = 1
        var session = SessionScript(limits: limits)
        _ = session.asks(1, "g", #"{"p":"/a","q":{"i":"n","sp":1}}"#)
        _ = session.refuses(1, .failedPrecondition, "index_building")
        #expect(!session.machine.wantsInput)
    }

    @Test func tooManyListensAreRefused() {
        var limits = SessionLimits()
        limits.listensMax = 2
        var session = SessionScript(limits: limits)
        session.listens(1, "/a", "l1")
        session.listens(2, "/b", "l2")
        let text = "\"There are too many listens on this connection\""
        #expect(session.asks(3, "q", #"{"p":"/c","h":""}"#) == [response(3, "unavailable", text)])
        _ = session.asks(4, "n", #"{"p":"/a"}"#)
        #expect(session.asks(5, "q", #"{"p":"/c","h":""}"#) == [#"call 4 messages.listen {"path":"/c"}"#])
    }

    @Test func listensThatAreEndedWhileTheyOpenCountUntilTheyAreOpen() {
        var limits = SessionLimits()
        limits.listensMax = 1
        var session = SessionScript(limits: limits)
        _ = session.asks(1, "q", #"{"p":"/a","h":""}"#)
        _ = session.asks(2, "n", #"{"p":"/a"}"#)
        #expect(session.asks(3, "q", #"{"p":"/b","h":""}"#).isEmpty)
        _ = session.succeeds(1, #"{"subscription":"l1","version":1,"epoch":"e"}"#)
        #expect(session.asks(4, "q", #"{"p":"/b","h":""}"#) == [#"call 3 messages.listen {"path":"/b"}"#])
    }

    @Test func bytesOfListensAreBounded() {
        var limits = SessionLimits()
        limits.listenBytesMax = 3_000
        var session = SessionScript(limits: limits)
        let query = String(repeating: "x", count: 1_000)
        let body = "{\"p\":\"/a\",\"h\":\"\",\"q\":{\"i\":\".key\",\"sp\":\"\(query)\"},\"t\":1}"
        #expect(session.asks(1, "q", body).count == 1)
        #expect(session.asks(2, "q", body.replacing("\"t\":1", with: "\"t\":2")).isEmpty)
        #expect(session.asks(3, "q", body.replacing("/a", with: "/b")).isEmpty)
    }

    @Test func bytesOfAQueryAreBounded() {
        var session = SessionScript()
        let query = String(repeating: "x", count: SessionLimits().queryBytesMax)
        let lines = session.asks(1, "g", "{\"p\":\"/a\",\"q\":{\"i\":\".key\",\"sp\":\"\(query)\"}}")
        #expect(lines == [response(1, "failure", "\"A query has at most 65536 bytes\"")])
    }

    @Test func responsesThatWaitAreBounded() {
        var limits = SessionLimits()
        limits.heldResponseBytesMax = 300
        var session = SessionScript(limits: limits)
        _ = session.asks(1, "q", #"{"p":"/a","h":""}"#)
        for number in 2...4 { _ = session.asks(number, "g", #"{"p":"/a","q":{}}"#) }
        let value = "{\"value\":\"\(String(repeating: "x", count: 80))\"}"
        #expect(session.succeeds(2, value).isEmpty)
        #expect(session.succeeds(3, value).isEmpty)
        #expect(session.succeeds(4, value) == ["close tooManyResponses"])
    }

    @Test func queueOfResponsesKeepsNothingThatIsDone() {
        var queue = ResponseQueue()
        for round in 0..<1_000 {
            let tickets = (0..<3).map { _ in queue.reserve() }
            #expect(queue.respond(tickets[1], [1]).isEmpty)
            #expect(queue.heldBytes == 1)
            #expect(queue.respond(tickets[0], [0]) == [[0], [1]])
            #expect(queue.skip(tickets[2]).isEmpty)
            #expect(queue.respond(tickets[0], [9]).isEmpty, "\(round)")
            #expect(queue.count == 0 && queue.heldBytes == 0)
        }
    }
}
