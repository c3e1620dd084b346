import Testing

@testable import HatoFirebase

/// A socket takes a polling session over (spec realtime-database §8.9 e).
@Suite struct TransportSwitchTests {
    private struct Script {
        var machine = TransportSwitch(host: "h")

        mutating func handle(_ event: TransportSwitch.Event) -> [String] {
            machine.handle(event).map { action in
                switch action {
                case .deliver(.whole(let bytes)): "deliver \(String(decoding: bytes, as: UTF8.self))"
                case .deliver(.oversized): "deliver oversized"
                case .sendOnSocket(let socket, let bytes): "socket \(socket) \(String(decoding: bytes, as: UTF8.self))"
                case .sendOverPolls(let bytes): "polls \(String(decoding: bytes, as: UTF8.self))"
                case .handOver: "hand over"
                case .closeSocket(let socket): "close \(socket)"
                case .end(let end): "end \(end)"
                }
            }
        }

        mutating func polled(_ text: String) -> [String] { handle(.pollsReceived(.whole(Array(text.utf8)))) }
        mutating func onSocket(_ socket: Int, _ text: String) -> [String] {
            handle(.socketReceived(socket, .whole(Array(text.utf8))))
        }
        mutating func send(_ text: String) -> [String] { handle(.send(Array(text.utf8))) }
    }

    private let ping = #"{"t":"c","d":{"t":"p","d":{}}}"#
    private let pong = #"{"t":"c","d":{"t":"o","d":null}}"#
    private let switchTo = #"{"t":"c","d":{"t":"a","d":{}}}"#
    private let last = #"{"t":"c","d":{"t":"n","d":{}}}"#
    private let request = #"{"t":"d","d":{"r":1,"a":"s","b":{}}}"#

    @Test func pollsCarryBothDirectionsAtFirst() {
        var script = Script()
        #expect(script.polled(request) == ["deliver \(request)"])
        #expect(script.polled(ping) == ["deliver \(ping)"])
        #expect(script.send("x") == ["polls x"])
        #expect(script.handle(.pollsEnded) == ["end transportEnded"])
    }

    @Test func socketIsTriedAndTakesOver() {
        var script = Script()
        #expect(script.handle(.socketOpened(5)) == ["socket 5 \(switchTo)"])
        #expect(script.onSocket(5, ping) == ["socket 5 \(pong)"])
        #expect(script.send("x") == ["polls x"])
        #expect(script.onSocket(5, switchTo) == ["polls \(last)"])
        #expect(script.machine.socket == 5)
        #expect(script.send("y") == ["socket 5 y"])
        // What the client sends on the socket waits for its last message over polls.
        #expect(script.onSocket(5, "2").isEmpty)
        #expect(script.polled("1") == ["deliver 1"])
        #expect(script.polled(last) == ["deliver 2", "hand over"])
        #expect(script.onSocket(5, ping) == ["deliver \(ping)"])
        #expect(script.handle(.pollsEnded).isEmpty)
        #expect(script.handle(.socketEnded(5)) == ["end transportEnded"])
    }

    @Test func lastMessageOverPollsMayComeFirst() {
        var script = Script()
        _ = script.handle(.socketOpened(5))
        #expect(script.polled(last).isEmpty)
        #expect(script.send("x") == ["polls x"])
        #expect(script.onSocket(5, ping) == ["socket 5 \(pong)"])
        #expect(script.onSocket(5, switchTo) == ["polls \(last)", "hand over"])
        #expect(script.onSocket(5, "1") == ["deliver 1"])
    }

    @Test func socketThatClosesBeforeTheAcknowledgementChangesNothing() {
        var script = Script()
        _ = script.handle(.socketOpened(5))
        #expect(script.handle(.socketEnded(5)).isEmpty)
        #expect(script.polled(request) == ["deliver \(request)"])
        #expect(script.send("x") == ["polls x"])
        #expect(script.handle(.socketOpened(6)) == ["socket 6 \(switchTo)"])
    }

    @Test func newerSocketReplacesOneThatIsTried() {
        var script = Script()
        _ = script.handle(.socketOpened(5))
        #expect(script.handle(.socketOpened(6)) == ["close 5", "socket 6 \(switchTo)"])
        #expect(script.onSocket(5, switchTo).isEmpty)
        #expect(script.handle(.socketEnded(5)).isEmpty)
        #expect(script.onSocket(6, switchTo) == ["polls \(last)"])
    }

    @Test func secondSocketIsSentAway() {
        let reset = #"{"t":"c","d":{"t":"r","d":"h"}}"#
        var script = Script()
        _ = script.handle(.socketOpened(5))
        _ = script.onSocket(5, switchTo)
        #expect(script.handle(.socketOpened(6)) == ["socket 6 \(reset)", "close 6"])
        _ = script.polled(last)
        #expect(script.handle(.socketOpened(7)) == ["socket 7 \(reset)", "close 7"])
        _ = script.handle(.socketEnded(5))
        #expect(script.handle(.socketOpened(8)) == ["socket 8 \(reset)", "close 8"])
    }

    @Test func socketThatEndsDuringTheSwitchEndsTheSession() {
        var script = Script()
        _ = script.handle(.socketOpened(5))
        _ = script.onSocket(5, switchTo)
        #expect(script.handle(.socketEnded(5)) == ["end transportEnded"])
        var other = Script()
        _ = other.handle(.socketOpened(5))
        _ = other.polled(last)
        #expect(other.handle(.socketEnded(5)) == ["end transportEnded"])
    }

    @Test func pollsThatEndDuringTheSwitchEndTheSession() {
        var script = Script()
        _ = script.handle(.socketOpened(5))
        _ = script.onSocket(5, switchTo)
        #expect(script.handle(.pollsEnded) == ["close 5", "end transportEnded"])
        #expect(script.send("x").isEmpty)
    }

    @Test func pollsThatEndCloseASocketThatIsTried() {
        var script = Script()
        _ = script.handle(.socketOpened(5))
        #expect(script.handle(.pollsEnded) == ["close 5", "end transportEnded"])
    }

    @Test func requestOnASocketThatIsTriedDropsTheSocketOnly() {
        var script = Script()
        _ = script.handle(.socketOpened(5))
        #expect(script.onSocket(5, request) == ["close 5"])
        #expect(script.polled(request) == ["deliver \(request)"])
    }

    @Test func messagesOutOfOrderEndTheSession() {
        var script = Script()
        #expect(script.polled(last) == ["end outOfOrder"])
        var other = Script()
        _ = other.handle(.socketOpened(5))
        _ = other.polled(last)
        #expect(other.polled(request) == ["close 5", "end outOfOrder"])
    }

    @Test func whatWaitsOnTheSocketIsBounded() {
        var limits = PollLimits()
        (limits.switchBytesMax, limits.messageBytesMax) = (5, 10)
        var machine = TransportSwitch(host: "h", limits: limits)
        _ = machine.handle(.socketOpened(5))
        _ = machine.handle(.socketReceived(5, .whole(Array(switchTo.utf8))))
        #expect(machine.handle(.socketReceived(5, .whole([UInt8](repeating: 0x31, count: 10)))).isEmpty)
        #expect(!machine.wantsSocketInput)
        #expect(machine.handle(.socketReceived(5, .whole([UInt8](repeating: 0x31, count: 10)))).isEmpty)
        #expect(
            machine.handle(.socketReceived(5, .whole([UInt8](repeating: 0x31, count: 10))))
                == [.closeSocket(5), .end(.tooMuch)])
    }

    /// An empty message has no text, and takes memory.
    @Test func emptyMessagesAreBoundedToo() {
        var limits = PollLimits()
        (limits.switchBytesMax, limits.messageBytesMax) = (640, 0)
        var machine = TransportSwitch(host: "h", limits: limits)
        _ = machine.handle(.socketOpened(5))
        _ = machine.handle(.socketReceived(5, .whole(Array(switchTo.utf8))))
        var (count, actions) = (0, [TransportSwitch.Action]())
        var pausedAfter: Int?
        while actions.isEmpty, count < 1_000 {
            actions = machine.handle(.socketReceived(5, .whole([])))
            count += 1
            if pausedAfter == nil, !machine.wantsSocketInput { pausedAfter = count }
        }
        #expect(actions == [.closeSocket(5), .end(.tooMuch)])
        #expect(pausedAfter == 11 && count == 13)
    }

    /// What waited on the socket is delivered in one piece, behind a large message of the last poll.
    @Test func whatWaitedOnTheSocketIsNotTooMuchForTheSession() {
        var limits = PollLimits()
        (limits.segmentBytesMax, limits.switchBytesMax) = (1, 1_000)
        var machine = TransportSwitch(host: "h", limits: limits)
        _ = machine.handle(.socketOpened(5))
        _ = machine.handle(.socketReceived(5, .whole(Array(switchTo.utf8))))
        let large = [UInt8](repeating: 0x31, count: PollLimits().messageBytesMax)
        for text in [large, large, [0x31]] { #expect(machine.handle(.socketReceived(5, .whole(text))).isEmpty) }
        #expect(machine.heldBytes + ReceivedMessage.whole(large).bytes <= limits.untakenBytesMax)
    }
}
