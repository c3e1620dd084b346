import Foundation
import NIOCore
import NIOEmbedded
import Testing

@testable import HatoRPC

/// What batches whose responses no peer takes make the server hold and do.
struct BatchMemoryTests {
    private typealias World = LargeReadTests.World
    private typealias Peer = LargeReadTests.Peer

    private func send(_ count: Int, _ method: String, _ name: String, to peer: Peer) throws {
        let entries = (0..<count).map {
            "{\"jsonrpc\":\"2.0\",\"id\":\($0),\"method\":\"\(method)\",\"params\":{\"gate\":\"\(name)\"}}"
        }
        try peer.channel.writeInbound(ByteBuffer(string: "[\(entries.joined(separator: ","))]\n"))
        peer.channel.embeddedEventLoop.run()
    }

    private func count(_ text: String, in peer: Peer) -> Int {
        String(decoding: peer.socket.taken, as: UTF8.self).components(separatedBy: text).count - 1
    }

    @Test func batchesOfSmallReadsStayWithinTheBudget() throws {
        let world = World {
            $0.processBytesInFlightMax = 1_000_000
            $0.clientBytesInFlightMax = 300_000
            $0.unreservedReadBytesMax = 1_000
        }
        let hostile = try (0..<50).map { _ in try world.connect("192.0.2.1") }
        for peer in hostile { try send(20, "check.small", "m", to: peer) }
        // One result each, and the reservations that fit.
        #expect(world.started.current.count < 50 + 3 * 12)
        #expect(world.state.budget.usedBytes <= 1_000_000)
        let other = try world.connect("192.0.2.2")
        try send(10, "check.small", "anna", to: other)
        #expect(world.started.current.count { $0 == "anna" } == 10)
        for peer in hostile + [other] { peer.close() }
        #expect(world.state.budget.largeReadCounts == (0, 0))
        #expect(world.state.budget.usedBytes == 0)
    }

    @Test func everyBatchGetsItsResponseWhenThePeerReadsTheEarlierOnes() throws {
        let world = World {
            $0.processBytesInFlightMax = 400_000
            $0.clientBytesInFlightMax = 200_000
            $0.unreservedReadBytesMax = 1_000
        }
        let peers = try (0..<8).map { _ in try world.connect("192.0.2.1") }
        for peer in peers { for _ in 0..<3 { try send(8, "check.small", "m", to: peer) } }
        #expect(world.started.current.count < 8 * 3 * 8)
        for _ in 0..<24 { for peer in peers { peer.take() } }
        #expect(world.started.current.count == 8 * 3 * 8)
        #expect(peers.allSatisfy { $0.lines == 3 && count("result", in: $0) == 24 })
        #expect(world.state.budget.largeReadCounts == (0, 0))
        #expect(world.state.budget.usedBytes == 0)
    }

    @Test func largeReadsOfABatchShareOneReservationAndEndWhenItIsFull() throws {
        let world = World { $0.processBytesInFlightMax = 400_000 }
        let peer = try world.connect("192.0.2.1")
        try send(200, "check.read", "a", to: peer)
        peer.take()
        #expect(world.started.current.count == 2, "the first fills the response, the second does not fit")
        #expect(peer.lines == 1)
        #expect(count("result", in: peer) == 1)
        #expect(count("too_big", in: peer) == 199)
        try send(1, "check.read", "b", to: peer)
        peer.take()
        #expect(world.started.current.last == "b")
        #expect(world.state.budget.largeReadCounts == (0, 0))
        #expect(world.state.budget.usedBytes == 0)
    }

    @Test func largeBatchIsDroppedWithItsConnection() throws {
        let world = World { $0.processBytesInFlightMax = 130_000 }
        let holder = try world.connect("192.0.2.1")
        try holder.read("held")
        for _ in 0..<20 {
            let peer = try world.connect("192.0.2.2")
            try send(100, "check.read", "a", to: peer)
            try send(100, "check.small", "b", to: peer)
            peer.close()
        }
        holder.take()
        #expect(world.started.current == ["held"])
        #expect(world.state.budget.largeReadCounts == (0, 0))
        #expect(world.state.budget.usedBytes == 0)
    }
}
