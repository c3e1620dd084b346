import HatoModel
import Logging
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import HatoRPC

/// Reads that outgrow what they may take without a reservation, and peers that do not take their results.
struct LargeReadTests {
    /// Connections of one server, on a loop whose clock the test turns; `check.read` outgrows its small reservation,
    /// and every other but the largest unless its gate begins with `medium`.
    final class World {
        let loop = EmbeddedEventLoop()
        let started = Shared<[String]>([])
        let stored = Shared<[RPCReply<Check.Store>]>([])
        let state: ServerState
        private let hub: LoopHub

        init(_ change: (inout RPCLimits) -> Void = { _ in }) {
            var configuration = RPCServerConfiguration(service: "check", version: "1")
            configuration.limits.responseBytesMax = 100_000
            configuration.limits.unsentResponseBytesMax = 10_000
            configuration.limits.stalledPeerSecondsMax = 5
            change(&configuration.limits)
            var router = RPCRouter()
            let (started, stored) = (started, stored)
            router.handleInOrder(Check.Read.self) { request, _, reply in
                if request.gate == "long" {
                    return reply.readAgain(needsLargest: true) { reservation in
                        started.change { $0.append("long in \(reservation.resultBytesMax)") }
                        reply.succeed(.init(gate: ""))
                        reservation.readEnded()
                    }
                }
                Self.readAgain(reply, request.gate.hasPrefix("medium") ? 9_000 : 90_000) {
                    started.change { $0.append(request.gate) }
                }
            }
            router.handleInOrder(Check.Small.self) { request, _, reply in
                started.change { $0.append(request.gate) }
                reply.succeed(.init(gate: String(repeating: "y", count: 9_000)))
            }
            router.handleInOrder(Check.Store.self) { _, _, reply in stored.change { $0.append(reply) } }
            router.handleInOrder(Check.Echo.self) { request, _, reply in reply.succeed(.init(value: request.value)) }
            state = ServerState(
                configuration, methods: router.methods, authenticator: TestAuthenticator(gates: Gates()),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            hub = LoopHub(loop: loop, server: state, emptyingTimeMax: .hours(1))
        }

        /// Begins again with each reservation that is too small for a result of `count` bytes.
        private static func readAgain(
            _ reply: RPCReply<Check.Read>, _ count: Int, started: @escaping @Sendable () -> Void
        ) {
            reply.readAgain { reservation in
                if count < reservation.resultBytesMax {
                    started()
                    reply.succeed(.init(gate: String(repeating: "x", count: count)))
                } else {
                    readAgain(reply, count, started: started)
                }
                reservation.readEnded()
            }
        }

        func connect(_ address: String) throws -> Peer {
            let connection = RPCConnection(id: state.newConnectionID(), remoteAddress: address, hub: hub)
            let handler = ConnectionHandler(connection: connection, hub: hub, usesTLS: false)
            return try Peer(connection, handler, loop)
        }
    }

    /// A peer that takes what is sent when the test says so.
    final class Peer {
        let socket = FullSocket()
        let channel: EmbeddedChannel
        let connection: RPCConnection

        init(_ connection: RPCConnection, _ handler: ConnectionHandler, _ loop: EmbeddedEventLoop) throws {
            self.connection = connection
            channel = EmbeddedChannel(loop: loop)
            try channel.pipeline.syncOperations.addHandlers(socket, handler)
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }

        func read(_ names: String...) throws {
            for name in names {
                let line =
                    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"check.read\",\"params\":{\"gate\":\"\(name)\"}}\n"
                try channel.writeInbound(ByteBuffer(string: line))
                channel.embeddedEventLoop.run()
            }
        }

        var lines: Int { socket.taken.filter { $0 == UInt8(ascii: "\n") }.count }

        func take() {
            while socket.drain() { channel.embeddedEventLoop.run() }
        }

        func close() {
            channel.close(promise: nil)
            channel.embeddedEventLoop.run()
        }
    }

    @Test func readsOfTwoClientsAlternateAndEachConnectionGoesOnWhenItsPeerTakes() throws {
        let world = World()
        let (one, other) = (try world.connect("192.0.2.1"), try world.connect("192.0.2.2"))
        try one.read("a1", "a2", "a3")
        try other.read("b1", "b2")
        #expect(world.started.current == ["a1", "b1"], "neither has taken its first result")
        one.take()
        other.take()
        #expect(Set(world.started.current) == ["a1", "a2", "a3", "b1", "b2"])
        #expect(one.lines == 3)
        #expect(world.state.budget.largeReadCounts == (0, 0))
        #expect(world.state.budget.usedBytes == 0)
    }

    @Test func unreadResultsStayWithinTheBudget() throws {
        let world = World {
            $0.processBytesInFlightMax = 1_000_000
            $0.clientBytesInFlightMax = 300_000
        }
        let hostile = try (0..<24).map { _ in try world.connect("192.0.2.1") }
        for peer in hostile { for number in 0..<16 { try peer.read("m\(number)") } }
        #expect(world.started.current.count <= 3)
        #expect(world.state.budget.usedBytes <= 500_000)
        let other = try world.connect("192.0.2.2")
        try other.read("anna")
        #expect(world.started.current.last == "anna")
        for peer in hostile + [other] { peer.close() }
        #expect(world.state.budget.largeReadCounts == (0, 0))
        #expect(world.state.budget.usedBytes == 0)
    }

    @Test func readsOfConnectionsThatCloseLeaveNothingBehind() throws {
        let world = World { $0.processBytesInFlightMax = 300_000 }
        let held = try world.connect("192.0.2.1")
        try held.read("held")
        for _ in 0..<100 {
            let peer = try world.connect("192.0.2.1")
            try peer.read("a", "b", "c")
            peer.close()
        }
        #expect(world.state.budget.largeReadCounts.waiting == 0)
        held.close()
        #expect(world.state.budget.largeReadCounts == (0, 0))
        #expect(world.state.budget.usedBytes == 0)
    }

    /// Of which 1,000 bytes are unreserved: a read may take 16,000 first.
    private func worldOfTwoSizes(processBytes: Int) -> World {
        World {
            $0.unreservedReadBytesMax = 1_000
            $0.processBytesInFlightMax = processBytes
            $0.stalledPeerSecondsMax = 10
        }
    }

    @Test func readThatTakesLongGetsTheLargestReservationAtOnce() throws {
        let world = worldOfTwoSizes(processBytes: 1_000_000)
        let peer = try world.connect("192.0.2.1")
        try peer.read("long")
        #expect(world.started.current == ["long in 100000"])
        peer.close()
    }

    @Test func smallerLargeReadsDoNotWaitForThoseOfTheLargestSize() throws {
        let world = worldOfTwoSizes(processBytes: 130_000)
        let holders = try (1...4).map { try world.connect("192.0.2.\($0)") }
        for holder in holders { for name in ["a", "b"] { try holder.read(name) } }
        #expect(world.started.current == ["a"], "one goes beyond the limit")
        for number in 5...9 {
            let peer = try world.connect("192.0.2.\(number)")
            try peer.read("medium\(number)")
            peer.take()
            #expect(peer.lines == 1)
            #expect(world.started.current.last == "medium\(number)")
            peer.close()
        }
        for _ in 0..<8 { for holder in holders { holder.take() } }
        #expect(world.started.current.count == 5 + 8)
        #expect(holders.allSatisfy { $0.lines == 2 })
        #expect(world.state.budget.largeReadCounts == (0, 0))
        #expect(world.state.budget.usedBytes == 0)
    }

    @Test func readsOfOneConnectionOutgrowEachSizeInTheirOrder() throws {
        let world = worldOfTwoSizes(processBytes: 1_000_000)
        let peer = try world.connect("192.0.2.1")
        try peer.read("a", "medium1", "b", "medium2", "medium3")
        peer.take()
        #expect(world.started.current == ["a", "medium1", "b", "medium2", "medium3"])
        #expect(peer.lines == 5)
        #expect(world.state.budget.largeReadCounts == (0, 0))
        #expect(world.state.budget.usedBytes == 0)
    }

    @Test func readThatOutgrowsTheSmallerSizeEndsWithItsConnection() throws {
        let world = worldOfTwoSizes(processBytes: 130_000)
        let (holder, peer) = (try world.connect("192.0.2.1"), try world.connect("192.0.2.2"))
        try holder.read("held")
        try peer.read("a", "medium")
        peer.close()
        #expect(world.state.budget.largeReadCounts == (0, 1))
        holder.take()
        #expect(world.started.current == ["held"])
        #expect(world.state.budget.largeReadCounts == (0, 0))
        #expect(world.state.budget.usedBytes == 0)
    }

    @Test func peerThatKeepsALargeResultThatOthersWaitForIsCutOffSoon() throws {
        let world = worldOfTwoSizes(processBytes: 130_000)
        let (silent, next) = (try world.connect("192.0.2.1"), try world.connect("192.0.2.2"))
        try silent.read("silent")
        try next.read("next")
        #expect(world.started.current == ["silent"])
        world.loop.advanceTime(by: .seconds(3))
        #expect(world.started.current == ["silent"], "a phone may take so long to begin")
        world.loop.advanceTime(by: .seconds(1))
        #expect(String(decoding: silent.socket.taken, as: UTF8.self).contains("peer_stalled"))
        #expect(world.started.current == ["silent", "next"])
    }

    /// Two reads on their way, the first of which waits for memory that another peer holds.
    private func waiting(in world: World) throws -> (holder: Peer, peer: Peer) {
        let (holder, peer) = (try world.connect("192.0.2.1"), try world.connect("192.0.2.2"))
        try holder.read("held")
        try peer.read("a", "b")
        #expect(world.started.current == ["held"])
        return (holder, peer)
    }

    @Test func readGoesOnBesideNotificationsThatWaitForItsResponse() throws {
        let world = World { $0.processBytesInFlightMax = 130_000 }
        let (holder, peer) = try waiting(in: world)
        // Behind the response of the second read: it cannot leave before that one.
        let subscription = peer.connection.openSubscription(by: 1)
        let members = EncodedJSON("\"n\":\"\(String(repeating: "x", count: 20_000))\"")
        #expect(peer.connection.notify("check.event", subscription: subscription, members: members))
        world.loop.run()
        holder.take()
        #expect(world.started.current == ["held", "a"])
        peer.take()
        #expect(world.started.current == ["held", "a", "b"])
        #expect(peer.lines == 3)
        #expect(world.state.budget.usedBytes == 0)
    }

    @Test func readsThatWaitEndWithTheirConnection() throws {
        let world = World { $0.processBytesInFlightMax = 130_000 }
        let (holder, peer) = try waiting(in: world)
        try peer.channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\n"))
        world.loop.run()
        #expect(!peer.channel.isActive)
        holder.take()
        #expect(world.started.current == ["held"])
        #expect(world.state.budget.largeReadCounts == (0, 0))
        #expect(world.state.budget.usedBytes == 0)
    }

    @Test func peerThatLetsItsOwnReadsWaitForTooLongIsCutOff() throws {
        let world = World { $0.processBytesInFlightMax = 130_000 }
        let (holder, peer) = try waiting(in: world)
        holder.take()
        #expect(world.started.current == ["held", "a"], "the second one waits for the first to be taken")
        world.loop.advanceTime(by: .seconds(60))
        #expect(peer.channel.isActive)
        world.loop.advanceTime(by: .seconds(10))
        #expect(String(decoding: peer.socket.taken, as: UTF8.self).contains("peer_stalled"))
        #expect(holder.channel.isActive)
        #expect(world.started.current == ["held", "a"])
        #expect(world.state.budget.largeReadCounts == (0, 0))
    }

    @Test func slowResponsesLeaveAsSoonAsTheyAreComplete() {
        var responses = ResponseQueue()
        let (first, slow) = (responses.open(isSlow: false), responses.open(isSlow: true))
        let last = responses.open(isSlow: false)
        #expect([first, slow, last].map { responses.leavesNext($0) } == [true, true, false])
        _ = responses.respond(first, nil)
        while responses.next() != nil {}
        #expect([first, slow, last].map { responses.leavesNext($0) } == [false, true, true])
    }

    @Test func peerThatTakesNothingIsCutOffWhenOthersWaitForItsMemory() throws {
        let world = World { $0.processBytesInFlightMax = 130_000 }
        let stalled = try world.connect("192.0.2.1")
        try stalled.read("stalled")
        world.loop.advanceTime(by: .seconds(60))
        #expect(stalled.channel.isActive, "no other waits")
        let next = try world.connect("192.0.2.2")
        try next.read("next")
        #expect(world.started.current == ["stalled"])
        world.loop.advanceTime(by: .seconds(5))
        #expect(String(decoding: stalled.socket.taken, as: UTF8.self).hasSuffix("\n"))
        #expect(String(decoding: stalled.socket.taken, as: UTF8.self).contains("peer_stalled"))
        #expect(world.started.current == ["stalled", "next"])
        // Its socket takes the last line in time, or not.
        world.loop.advanceTime(by: .seconds(5))
        #expect(!stalled.channel.isActive)
        next.close()
        #expect(world.state.budget.usedBytes == 0)
    }
}
