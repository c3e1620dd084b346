import Testing

@testable import HatoFirebase

/// Which poll gets which response (spec realtime-database §8.9 b to d).
@Suite struct PollStateMachineTests {
    /// A session, with its actions as lines.
    private struct Polls {
        var machine: PollStateMachine

        init?(limits: PollLimits = PollLimits()) {
            guard let secrets = PollScript.Secrets(id: "id", password: "pw") else { return nil }
            machine = PollStateMachine(secrets, callback: 7, limits: limits)
        }

        /// A session whose start has its response.
        static func started(limits: PollLimits = PollLimits()) -> Polls? {
            guard var polls = Polls(limits: limits) else { return nil }
            _ = polls.handle(.started(request: 1))
            _ = polls.handle(.send(Array("{hello}".utf8)))
            _ = polls.handle(.timerFired(.flush))
            return polls
        }

        mutating func handle(_ event: PollStateMachine.Event) -> [String] {
            machine.handle(event).map { action in
                switch action {
                case .respond(let request, let script):
                    // The functions of the first response are the same each time.
                    "response \(request) "
                        + String(decoding: script, as: UTF8.self).split(separator: "\n")
                        .filter { !$0.hasPrefix("function") }.joined()
                case .received(.whole(let bytes)): "received \(String(decoding: bytes, as: UTF8.self))"
                case .received(.oversized): "received oversized"
                case .schedule(let timer, let delay): "schedule \(timer) \(delay)"
                case .cancel(let timer): "cancel \(timer)"
                case .end(let end): "end \(end)"
                }
            }
        }

        mutating func send(_ text: String) -> [String] { handle(.send(Array(text.utf8))) }

        mutating func poll(
            _ request: Int, _ segments: [SegmentAssembler.Segment] = [], serial: Int? = nil
        ) -> [String] {
            handle(.polled(request: request, PollRequest.Poll(serial: serial, segments: segments)))
        }
    }

    @Test func startWaitsForTheHello() throws {
        var polls = try #require(Polls())
        #expect(polls.handle(.started(request: 1)).isEmpty)
        #expect(polls.send("{hello}") == ["schedule flush 0"])
        #expect(
            polls.handle(.timerFired(.flush)) == [
                "cancel poll", "response 1 pLPCommand('start','id','pw');pRTLPCB(0,[{hello}]);", "schedule idle 60000",
            ])
    }

    @Test func pollWaitsUntilThereIsSomething() throws {
        var polls = try #require(Polls.started())
        #expect(polls.poll(2) == ["cancel idle", "schedule poll 20000"])
        #expect(polls.send("1") == ["schedule flush 0"])
        #expect(polls.send("2").isEmpty)
        #expect(
            polls.handle(.timerFired(.flush)) == ["cancel poll", "response 2 pRTLPCB(1,[1,2]);", "schedule idle 60000"])
    }

    @Test func pollGetsAnEmptyListInTheEnd() throws {
        var polls = try #require(Polls.started())
        _ = polls.poll(2)
        #expect(
            polls.handle(.timerFired(.poll)) == ["cancel poll", "response 2 pRTLPCB(1,[]);", "schedule idle 60000"])
    }

    @Test func olderPollGetsItsResponseWhenAnotherComes() throws {
        var polls = try #require(Polls.started())
        _ = polls.poll(2)
        #expect(
            polls.poll(3) == [
                "cancel poll", "response 2 pRTLPCB(1,[]);", "schedule idle 60000", "cancel idle", "schedule poll 20000",
            ])
    }

    @Test func messagesWaitForAPoll() throws {
        var polls = try #require(Polls.started())
        #expect(polls.send("1").isEmpty)
        #expect(polls.poll(2) == ["cancel idle", "schedule flush 0"])
        #expect(
            polls.handle(.timerFired(.flush)) == ["cancel poll", "response 2 pRTLPCB(1,[1]);", "schedule idle 60000"])
        #expect(polls.handle(.timerFired(.flush)).isEmpty)
    }

    @Test func segmentsBecomeMessagesOfTheClient() throws {
        var polls = try #require(Polls.started())
        let segment = SegmentAssembler.Segment(number: 0, count: 1, data: Array("e30.".utf8))
        #expect(polls.poll(2, [segment]) == ["cancel idle", "received {}", "schedule poll 20000"])
        #expect(polls.poll(3, [segment]).contains("received {}") == false)
    }

    @Test func wrongSegmentsEndIt() throws {
        var polls = try #require(Polls.started())
        let segment = SegmentAssembler.Segment(number: 0, count: 1, data: Array("!".utf8))
        #expect(
            polls.poll(2, [segment]) == [
                "cancel idle", "response 2 pLPCommand('close');", "cancel poll", "cancel idle",
                "end wrongSegments(HatoFirebase.SegmentAssembler.Failure.notBase64)",
            ])
        #expect(polls.poll(3) == ["response 3 pLPCommand('close');"])
    }

    @Test func responsesAreBoundedAndMessagesAreNotSplit() throws {
        var limits = PollLimits()
        limits.responseBytesMax = 10
        limits.unfetchedBytesMax = 20
        var polls = try #require(Polls.started(limits: limits))
        for text in ["12345", "12345", "123456789012345", "1"] { _ = polls.send(text) }
        #expect(!polls.machine.wantsOutput())
        var responses: [String] = []
        for request in 2...4 {
            _ = polls.poll(request)
            responses += polls.handle(.timerFired(.flush)).filter { $0.hasPrefix("response") }
        }
        #expect(
            responses == [
                "response 2 pRTLPCB(1,[12345,12345]);", "response 3 pRTLPCB(2,[123456789012345]);",
                "response 4 pRTLPCB(3,[1]);",
            ])
        #expect(polls.machine.wantsOutput(besides: 20) && polls.machine.heldBytes == 0)
        #expect(!polls.machine.wantsOutput(besides: 21))
    }

    @Test func silenceEndsIt() throws {
        var polls = try #require(Polls.started())
        #expect(polls.handle(.timerFired(.idle)) == ["cancel poll", "cancel idle", "end idle"])
        #expect(polls.poll(2) == ["response 2 pLPCommand('close');"])
        #expect(polls.send("1").isEmpty)
    }

    @Test func pollThatIsGoneCountsAsSilence() throws {
        var polls = try #require(Polls.started())
        _ = polls.poll(2)
        #expect(polls.handle(.requestEnded(2)) == ["cancel poll", "schedule idle 60000"])
        #expect(polls.handle(.requestEnded(2)).isEmpty)
        #expect(polls.send("1").isEmpty)
    }

    @Test func clientThatGivesUpAtTheStartEndsIt() throws {
        var polls = try #require(Polls())
        _ = polls.handle(.started(request: 1))
        #expect(polls.handle(.requestEnded(1)) == ["cancel poll", "cancel idle", "end left"])
    }

    @Test func leavingEndsIt() throws {
        var polls = try #require(Polls.started())
        _ = polls.poll(2)
        #expect(
            polls.handle(.left) == ["response 2 pLPCommand('close');", "cancel poll", "cancel idle", "end left"])
        #expect(polls.handle(.left).isEmpty)
    }

    @Test func closeComesWithWhatIsLeft() throws {
        var polls = try #require(Polls.started())
        _ = polls.poll(2)
        _ = polls.send("1")
        #expect(
            polls.handle(.closed) == [
                "cancel poll", "response 2 pRTLPCB(1,[1]);pLPCommand('close',1);", "schedule idle 60000", "cancel poll",
                "cancel idle", "end closed",
            ])
    }

    @Test func closeWithoutAWaitingPollComesWithTheNextOne() throws {
        var polls = try #require(Polls.started())
        _ = polls.send("1")
        #expect(polls.handle(.closed).isEmpty)
        _ = polls.poll(2)
        #expect(
            polls.handle(.timerFired(.flush)).first { $0.hasPrefix("response") }
                == "response 2 pRTLPCB(1,[1]);pLPCommand('close',1);")
        #expect(polls.poll(3) == ["response 3 pLPCommand('close');"])
    }

    @Test func closeAtTheStartIsAResponseToTheStart() throws {
        var polls = try #require(Polls())
        _ = polls.handle(.started(request: 1))
        _ = polls.send("{shutdown}")
        #expect(
            polls.handle(.closed)[1]
                == "response 1 pLPCommand('start','id','pw');pRTLPCB(0,[{shutdown}]);pLPCommand('close',0);")
    }

    @Test func pollsAreClosedBehindTheLastResponseWhenASocketHasTakenOver() throws {
        var polls = try #require(Polls.started())
        _ = polls.poll(2)
        _ = polls.send("{n}")
        #expect(polls.handle(.handedOver).isEmpty)
        #expect(polls.handle(.timerFired(.flush)).contains("response 2 pRTLPCB(1,[{n}]);"))
        #expect(polls.poll(3).contains("response 3 pLPCommand('close',1);"))
        #expect(polls.poll(4).contains("response 4 pLPCommand('close',1);"))
        #expect(polls.send("1").isEmpty)
        #expect(polls.handle(.closed).isEmpty)
        #expect(polls.handle(.timerFired(.idle)) == ["cancel poll", "cancel idle", "end idle"])
    }

    @Test func pollThatWaitsAtTheHandOverIsClosed() throws {
        var polls = try #require(Polls.started())
        _ = polls.poll(2)
        #expect(polls.handle(.handedOver).contains("response 2 pLPCommand('close',0);"))
    }

    // MARK: Lost responses

    private let lost = ["cancel poll", "cancel idle", "end responseLost"]

    @Test func repeatedPollWhoseResponseIsLostEndsIt() throws {
        var polls = try #require(Polls.started())
        _ = polls.poll(2, serial: 20)
        // The next one makes the response to the first, which is lost.
        #expect(polls.poll(3, serial: 21).contains("response 2 pRTLPCB(1,[]);"))
        #expect(
            polls.poll(4, serial: 20) == [
                "response 4 pLPCommand('close');", "response 3 pLPCommand('close');",
            ] + lost)
        #expect(polls.poll(5, serial: 21) == ["response 5 pLPCommand('close');"])
    }

    @Test func repeatedPollTakesThePlaceOfOneThatWaits() throws {
        var polls = try #require(Polls.started())
        let segment = SegmentAssembler.Segment(number: 0, count: 1, data: Array("e30.".utf8))
        #expect(polls.poll(2, [segment], serial: 20).contains("received {}"))
        #expect(polls.poll(3, [segment], serial: 20) == ["response 2 ", "cancel idle", "schedule poll 20000"])
        #expect(polls.handle(.requestEnded(2)).isEmpty)
        _ = polls.send("1")
        #expect(polls.handle(.timerFired(.flush)).contains("response 3 pRTLPCB(1,[1]);"))
    }

    @Test func repeatedPollThatHadNoResponseIsLikeANewOne() throws {
        var polls = try #require(Polls.started())
        _ = polls.poll(2, serial: 20)
        _ = polls.handle(.requestEnded(2))
        _ = polls.send("1")
        _ = polls.poll(3, serial: 20)
        #expect(polls.handle(.timerFired(.flush)).contains("response 3 pRTLPCB(1,[1]);"))
        // Without a serial, nothing is known to be repeated.
        for request in 4...20 { #expect(polls.poll(request).last == "schedule poll 20000") }
    }

    @Test func responseWithoutAClientEndsIt() throws {
        var polls = try #require(Polls.started())
        #expect(polls.handle(.responseLost(request: 9)).isEmpty)
        _ = polls.poll(2)
        _ = polls.poll(3)
        #expect(polls.handle(.responseLost(request: 2)) == ["response 3 pLPCommand('close');"] + lost)
        #expect(polls.handle(.responseLost(request: 2)).isEmpty)
        var start = try #require(Polls.started())
        #expect(start.handle(.responseLost(request: 1)) == lost)
    }

    /// A client that has the last message over polls needs no further response.
    @Test func emptyResponseBehindTheLastMessageCanBeLost() throws {
        var polls = try #require(Polls.started())
        _ = polls.poll(2)
        _ = polls.handle(.send(ServerText.endOfTransmission))
        _ = polls.handle(.timerFired(.flush))
        _ = polls.poll(3, serial: 21)
        #expect(polls.poll(4, serial: 22).contains("response 3 pRTLPCB(2,[]);"))
        #expect(polls.handle(.responseLost(request: 3)).isEmpty)
        #expect(polls.poll(5, serial: 21).last == "schedule poll 20000")
        #expect(polls.handle(.responseLost(request: 2)).last == "end responseLost")
    }

    /// The command to close has no number of its own: it can be sent again.
    @Test func lostCommandToCloseEndsNothing() throws {
        var polls = try #require(Polls.started())
        _ = polls.handle(.handedOver)
        for request in 2...3 {
            #expect(polls.poll(request, serial: 20).contains("response \(request) pLPCommand('close',0);"))
            #expect(polls.handle(.responseLost(request: request)).isEmpty)
        }
    }
}
