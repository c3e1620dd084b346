import HatoModel
import NIOCore
import NIOSSL
import Testing

@testable import HatoRPC

/// What goes out and when, pausing, and the end.
@Suite struct WireFlowTests {
    private let line = #"{"id":1,"result":1}"# + "\n"

    private func event(_ number: Int) -> WireEvent { .notification("e", "s", ["\"n\":\(number)"]) }

    private func events(_ numbers: Range<Int>) -> String {
        numbers.map { #"{"method":"e","params":{"subscription":"s","n":\#($0)}}"# + "\n" }.joined()
    }

    // MARK: Output

    @Test func requestsAreLinesAndGoOutTogether() throws {
        let peer = try EmbeddedWire(isConnected: false)
        #expect(peer.wire.send("check.echo") == 1)
        #expect(peer.wire.send("check.who", #"{"value":"鳩"}"#) == 2)
        #expect(peer.wire.queuedBytes == 130 && peer.wire.requestsInFlight == 2)
        peer.run()
        #expect(try peer.written() == [] && peer.log.events == [])
        try peer.connect()
        #expect(peer.log.events == [.connected])
        let first = #"{"jsonrpc":"2.0","id":1,"method":"check.echo","params":{}}"# + "\n"
        #expect(
            try peer.written()
                == [first + #"{"jsonrpc":"2.0","id":2,"method":"check.who","params":{"value":"鳩"}}"# + "\n"])
        #expect(peer.wire.queuedBytes == 0 && peer.wire.oldestRequest == 1)
        #expect(peer.wire.send("check.echo") == 3)
        #expect(try peer.written() == [], "before the turn is over")
        peer.run()
        #expect(try peer.written().count == 1)
    }

    /// Otherwise a text of a client would bring lines of its own.
    @Test func lineEndsBecomeBlanks() throws {
        let peer = try EmbeddedWire()
        _ = peer.wire.send("check.echo", "{\n\"value\":\r\n1}\n{\"id\":2,\r\"method\":\"x\"}\n")
        _ = peer.wire.send("check\n\"x\"", "\n\n")
        peer.run()
        let first = #"{"jsonrpc":"2.0","id":1,"method":"check.echo","params":{ "value":  1} {"id":2, "method":"x"} }"#
        let second = #"{"jsonrpc":"2.0","id":2,"method":"check\n\"x\"","params":  }"#
        #expect(try peer.written() == [first + "\n" + second + "\n"])
    }

    @Test func whileTheSocketIsFullRequestsGather() throws {
        let peer = try EmbeddedWire {
            $0.queuedBytesHigh = 1_000
            $0.queuedBytesLow = 100
        }
        let params = "{\"value\":\"\(String(repeating: "x", count: 300))\"}"
        peer.isFull = true
        _ = peer.wire.send("check.echo", params)
        peer.run()
        let one = peer.wire.queuedBytes
        #expect(one > 300 && peer.wire.isWritable)
        for count in 2...5 {
            _ = peer.wire.send("check.echo", params)
            #expect(peer.wire.queuedBytes == count * one)
            #expect(peer.wire.isWritable == (count * one <= 1_000))
            peer.run()
        }
        #expect(try peer.written() == [])
        peer.log.react = { wire, event in
            if event == .writable { #expect(wire.isWritable && wire.queuedBytes == 0) }
        }
        peer.isFull = false
        #expect(try peer.written().map { $0.utf8.count } == [one, 4 * one])
        #expect(peer.log.events == [.connected, .writable])
    }

    // MARK: Pausing

    @Test func aPausedWireDeliversAndReadsNothing() throws {
        let peer = try EmbeddedWire()
        peer.log.react = { wire, event in if event == self.event(2) { peer.log.call { wire.pause() } } }
        try peer.receive(Array(events(0..<5).utf8), by: 100_000)
        #expect(peer.log.messages == (0..<3).map(event) && peer.log.events.last == .delivered)
        try peer.receive(events(5..<8))
        #expect(!peer.isReading && peer.unreadCount > 0)
        #expect(peer.log.messages.count == 3)
        peer.log.call { peer.wire.resume() }
        #expect(peer.log.messages.count == 3, "not inside the call")
        peer.run()
        #expect(peer.log.messages == (0..<5).map(event))
        try peer.receive()
        #expect(peer.log.messages == (0..<8).map(event) && peer.log.inside == [])
    }

    @Test func aWireMayPauseAtEachMessage() throws {
        let peer = try EmbeddedWire()
        peer.log.react = { wire, event in if event.isMessage { wire.pause() } }
        try peer.receive(events(0..<20))
        for count in 1...20 {
            #expect(peer.log.messages.count == count)
            peer.wire.resume()
            peer.run()
        }
        try peer.receive(events(20..<21))
        #expect(peer.log.messages == (0..<21).map(event))
    }

    @Test func resumingWithinADeliveryGoesOn() throws {
        let peer = try EmbeddedWire()
        peer.log.react = { wire, event in
            guard event.isMessage else { return }
            wire.pause()
            wire.resume()
        }
        try peer.receive(events(0..<20))
        #expect(peer.log.messages == (0..<20).map(event) && peer.isReading)
    }

    @Test func pausingAgainBeforeTheNextTurnDeliversNothing() throws {
        let peer = try EmbeddedWire()
        peer.wire.pause()
        try peer.push(events(0..<2))
        peer.wire.resume()
        peer.wire.pause()
        peer.run()
        #expect(peer.log.messages == [])
        peer.wire.resume()
        peer.run()
        #expect(peer.log.messages == (0..<2).map(event))
    }

    @Test func theEndWaitsForWhatCameBefore() throws {
        let peer = try EmbeddedWire()
        _ = peer.wire.send("check.echo")
        peer.wire.pause()
        try peer.push(events(0..<3))
        // The rest of what the system has received comes, asked or not; a line without an end is none.
        try peer.push(events(3..<4) + "{")
        peer.closeByPeer()
        #expect(peer.log.events == [.connected])
        peer.log.react = { wire, event in if event == self.event(1) { wire.pause() } }
        peer.wire.resume()
        peer.run()
        #expect(peer.log.messages == (0..<2).map(event) && peer.log.end == nil)
        peer.wire.resume()
        peer.run()
        #expect(peer.log.messages == (0..<4).map(event))
        #expect(peer.log.events.suffix(2) == [.delivered, .ended(.lost(nil), [1])])
    }

    // MARK: The end

    @Test func aClosedWireDeliversTheEndOnlyAndLater() throws {
        let peer = try EmbeddedWire()
        _ = peer.wire.send("check.echo")
        peer.run()
        _ = try peer.written()
        _ = peer.wire.send("check.who")
        peer.log.react = { wire, event in if event.isMessage { peer.log.call { wire.close() } } }
        try peer.push(events(0..<5))
        #expect(peer.log.events == [.connected, event(0)])
        #expect(peer.wire.send("check.echo") == nil)
        peer.log.call { peer.wire.close() }
        peer.run()
        #expect(peer.log.events == [.connected, event(0), .ended(.closed, [1, 2])])
        // What the socket takes at once.
        #expect(try peer.written().joined().contains("check.who"))
        #expect(!peer.isOpen && peer.log.inside == [])
        #expect(peer.wire.queuedBytes == 0 && peer.wire.requestsInFlight == 0)
    }

    @Test func whatAFullSocketDoesNotTakeIsDropped() throws {
        let peer = try EmbeddedWire()
        peer.isFull = true
        _ = peer.wire.send("check.echo")
        peer.run()
        _ = peer.wire.send("check.who")
        peer.log.call { peer.wire.close() }
        peer.run()
        #expect(peer.log.events == [.connected, .ended(.closed, [1, 2])])
        #expect(try peer.written() == [] && peer.log.inside == [])
    }

    @Test func aWireMayCloseBeforeItStands() throws {
        let peer = try EmbeddedWire(isConnected: false)
        _ = peer.wire.send("check.echo")
        peer.wire.close()
        #expect(peer.log.events == [])
        peer.run()
        #expect(peer.log.events == [.ended(.closed, [1])])
    }

    @Test func lostConnectionsEndTheWire() throws {
        for (error, words) in [
            (nil, nil), (IOError(errnoCode: 104, reason: "read"), "connection reset by peer"),
            (NIOSSLError.uncleanShutdown, "the server closed the connection"),
        ] as [((any Error)?, String?)] {
            let peer = try EmbeddedWire()
            for _ in 0..<3 { _ = peer.wire.send("check.echo") }
            try peer.receive(#"{"id":2,"result":1}"# + "\n")
            peer.closeByPeer(error)
            #expect(peer.log.events.last == .ended(.lost(words), [1, 3]))
            #expect(peer.log.end?.error.reason == "connection_lost" && peer.log.end?.isBeforeSending == false)
        }
    }

    @Test func aDelegateIsKeptUpToTheEndOnly() throws {
        weak var kept: EmbeddedDelegate?
        let other = try EmbeddedWire()
        do {
            let delegate = EmbeddedDelegate()
            kept = delegate
            let connector = try RPCWireConnector(RPCWireConfiguration(host: "127.0.0.1", port: 1))
            delegate.wire = RPCWire(connector, on: other.loop, delegate)
            #expect(delegate.wire?.isWritable == true)
        }
        #expect(kept != nil)
        kept?.wire?.close()
        other.run()
        #expect(kept == nil)
    }
}

private final class EmbeddedDelegate: RPCWireDelegate {
    var wire: RPCWire?

    func wireConnected(_ wire: RPCWire) {}
    func wire(_ wire: RPCWire, received response: RPCWireResponse) {}
    func wire(_ wire: RPCWire, received notification: RPCWireNotification) {}
    func wireDelivered(_ wire: RPCWire) {}
    func wireBecameWritable(_ wire: RPCWire) {}
    func wireEnded(_ wire: RPCWire, _ end: RPCWireEnd, unanswered: [UInt64]) { self.wire = nil }
}
