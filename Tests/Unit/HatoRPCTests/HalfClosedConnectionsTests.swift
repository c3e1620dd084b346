import HatoModel
import NIOCore
import NIOEmbedded
import Testing

@testable import HatoRPC

/// Peers that have closed their direction before they have all responses.
@Suite(.timeLimit(.minutes(10)))
struct HalfClosedConnectionsTests {
    private static let (one, other) = (ClientAddress("192.0.2.1"), ClientAddress("192.0.2.2"))

    private static func connections(_ max: Int) -> HalfClosedConnections {
        var limits = RPCLimits()
        limits.halfClosedConnectionsPerAddressMax = max
        return HalfClosedConnections(limits)
    }

    @Test func beyondTheLimitTheOldestOfTheAddressIsClosed() {
        var connections = Self.connections(2)
        #expect(connections.began(1, from: Self.one) == nil)
        #expect(connections.began(2, from: Self.one) == nil)
        #expect(connections.began(3, from: Self.other) == nil)
        #expect(connections.began(4, from: Self.one) == 1)
        #expect(connections.began(5, from: Self.one) == 2)
    }

    @Test func closedConnectionsCountNoMore() {
        var connections = Self.connections(2)
        _ = connections.began(1, from: Self.one)
        _ = connections.began(2, from: Self.one)
        connections.ended(1)
        #expect(connections.began(3, from: Self.one) == nil)
        // The one that was chosen ends, too, and others that never were half-closed.
        #expect(connections.began(4, from: Self.one) == 2)
        connections.ended(2)
        connections.ended(9)
        #expect(connections.began(5, from: Self.one) == 3)
    }

    @Test func connectionsThatForwardCountForTheAddressTheySpeakFor() {
        var connections = Self.connections(2)
        for id in 1...2 as ClosedRange<UInt64> { #expect(connections.began(id, from: Self.one) == nil) }
        #expect(connections.moved(1, to: Self.other) == nil)
        #expect(connections.began(3, from: Self.one) == nil, "one of its two is another client's now")
        #expect(connections.began(4, from: Self.other) == nil)
        #expect(connections.moved(2, to: Self.other) == 1)
        #expect(connections.moved(3, to: nil) == nil, "that of many clients does not count")
        for id in 5...6 as ClosedRange<UInt64> { #expect(connections.began(id, from: Self.one) == nil) }
        #expect(connections.moved(9, to: Self.one) == nil, "its peer has not closed its direction")
        connections.ended(4)
        #expect(connections.began(7, from: Self.other) == nil)
    }

    /// So long that another thread reads it: until then the response is to come.
    private static let line =
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"check.echo\",\"params\":{\"value\":\""
        + String(repeating: "v", count: 300_000) + "\"}}\n"

    @Test func responsesThatTakeTooLongAreNotWaitedFor() throws {
        let server = EmbeddedServer(runElsewhere: { _ in }) { $0.halfClosedSecondsMax = 30 }
        let (peer, other) = (try server.peer("anna"), try server.peer("anna"))
        for peer in [peer, other] { try peer.send(Array(Self.line.utf8)) }
        peer.closeInput()
        server.loop.advanceTime(by: .seconds(29))
        #expect(peer.isOpen)
        server.loop.advanceTime(by: .seconds(2))
        #expect(!peer.isOpen && other.isOpen, "one that has not closed its direction stays")
    }

    @Test func serverClosesTheOldestAndRespondsToTheOthers() throws {
        let lines = Shared<[@Sendable () -> Void]>([])
        let server = EmbeddedServer(runElsewhere: { line in lines.change { $0.append(line) } }) {
            $0.halfClosedConnectionsPerAddressMax = 2
        }
        let peers = try [1, 2, 1, 1].map { try server.peer("anna", address: "192.0.2.\($0)") }
        for peer in peers {
            #expect(server.state.admission.accepted(peer.connection) == nil)
            try peer.send(Array(Self.line.utf8))
            peer.closeInput()
        }
        server.loop.run()
        #expect(peers.map(\.isOpen) == [false, true, true, true])
        for line in lines.current { line() }
        lines.change { $0 = [] }
        server.loop.run()
        #expect(try peers.map { try $0.received().contains(#""id":7"#) } == [false, true, true, true])
        #expect(!peers.contains { $0.isOpen })
        #expect(server.state.budget.usedBytes == 0)
    }

    @Test func serverClosesTheOldestOfTheClientThatIsForwarded() throws {
        let lines = Shared<[@Sendable () -> Void]>([])
        let server = EmbeddedServer(runElsewhere: { line in lines.change { $0.append(line) } }) {
            $0.halfClosedConnectionsPerAddressMax = 1
        }
        let froms = [#""203.0.113.7""#, #""203.0.113.8""#, "null", "null", #""203.0.113.7""#]
        let peers = try froms.map { _ in try server.peer(address: "192.0.2.1") }
        for (peer, from) in zip(peers, froms) {
            #expect(server.state.admission.accepted(peer.connection) == nil)
            let params = "{\"auth\":\"gateway\",\"from\":\(from)}"
            let response = try peer.ask(
                "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"session.forward\",\"params\":\(params)}")
            #expect(response.contains(#""result":{}"#), "\(response)")
            try peer.send(Array(Self.line.utf8))
            peer.closeInput()
        }
        server.loop.run()
        #expect(peers.map(\.isOpen) == [false, true, true, true, true])
        for line in lines.current { line() }
        lines.change { $0 = [] }
        server.loop.run()
        #expect(try peers.map { try $0.received().contains(#""id":7"#) } == [false, true, true, true, true])
    }
}
