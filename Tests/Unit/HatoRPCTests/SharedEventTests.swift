import HatoModel
import HatoTesting
import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import HatoRPC

/// A large event is in memory once, and counted once, however many peers have not taken it.
struct SharedEventTests {
    private static let limit = 1 << 20

    @Test func eventIsCountedOnceForAllItsReceivers() throws {
        let server = Server(limit: Self.limit)
        let peers = try (0..<50).map { _ in try server.peer() }
        do {
            let event = Self.event("a", 100_000)
            for peer in peers { #expect(peer.notify(event)) }
        }
        server.loop.run()
        #expect(peers.allSatisfy { $0.connection.unsentBytes > 100_000 })
        #expect(server.budget.usedBytes > 100_000)
        // Of each what stands around the event, and nothing else.
        #expect(server.budget.usedBytes < 100_000 + 50 * 1_000)
        for peer in peers {
            peer.drain()
            let text = String(decoding: peer.socket.taken, as: UTF8.self)
            #expect(
                text.hasPrefix(#"{"jsonrpc":"2.0","method":"check.event","params":{"subscription":"1","text":"aaaa"#))
            #expect(text.hasSuffix("aaaa\"}}\n"))
            #expect(text.utf8.count > 100_000)
        }
        #expect(server.budget.usedBytes == 0)
    }

    @Test func peerIsBehindWhileTheProcessHasNoMemoryAndDrainsWhenItHas() throws {
        let server = Server(limit: Self.limit)
        let (silent, reading) = (try server.peer(), try server.peer())
        #expect(silent.notify(Self.event("a", 400_000)))
        // Half of the limit is for events.
        #expect(!reading.notify(Self.event("b", 200_000)))
        let drained = Shared(0)
        reading.connection.onDrain { drained.change { $0 += 1 } }
        server.loop.run()
        #expect(drained.current == 0)
        // What is small is copied, and always fits.
        #expect(reading.notify(EncodedJSON("\"n\":1")))
        server.loop.run()
        reading.drain()
        #expect(drained.current == 0)
        silent.drain()
        #expect(drained.current == 1)
        #expect(reading.notify(Self.event("c", 200_000)))
        server.loop.run()
        reading.drain()
        #expect(server.budget.usedBytes == 0)
    }

    @Test func peerThatKeepsAnEventWhileOthersWaitIsCutOff() throws {
        let server = Server(limit: Self.limit) {
            ($0.stalledPeerBytesPerSecond, $0.stalledPeerSecondsMax) = (1_000, 10)
        }
        let (slow, other) = (try server.peer(), try server.peer())
        #expect(slow.notify(Self.event("a", 4 * Self.limit)))
        server.loop.run()
        // Faster than it must be, and no connection waits.
        for _ in 0..<4 {
            slow.socket.drain()
            server.loop.advanceTime(by: .seconds(10))
        }
        #expect(slow.isOpen)
        #expect(!other.notify(Self.event("b", 100_000)))
        let drained = Shared(0)
        other.connection.onDrain { drained.change { $0 += 1 } }
        for _ in 0..<6 {
            #expect(slow.isOpen && drained.current == 0)
            slow.socket.drain()
            server.loop.advanceTime(by: .seconds(10))
        }
        slow.socket.drain()
        server.loop.advanceTime(by: .seconds(10))
        #expect(String(decoding: slow.socket.taken.suffix(300), as: UTF8.self).contains("peer_stalled"))
        // Its socket takes the last line in time, or not.
        server.loop.advanceTime(by: .seconds(10))
        #expect(drained.current == 1)
        #expect(other.notify(Self.event("b", 100_000)))
    }

    @Test func eventsTakeWhatTheirOwnLimitSays() throws {
        let server = Server(limit: Self.limit) { $0.processEventBytesMax = 100_000 }
        let (one, other) = (try server.peer(), try server.peer())
        #expect(one.notify(Self.event("a", 60_000)))
        #expect(!other.notify(Self.event("b", 60_000)))
        #expect(other.notify(Self.event("c", 30_000)))
    }

    /// A peer that holds no events stays.
    @Test func peerThatReadsNoEventIsClosedWhenOthersWaitForItsMemory() throws {
        let server = Server(limit: Self.limit)
        let (silent, small, waiting) = (try server.peer(), try server.peer(), try server.peer())
        #expect(silent.notify(Self.event("a", 400_000)))
        #expect(small.notify(EncodedJSON("\"n\":1")))
        server.loop.run()
        server.loop.advanceTime(by: .seconds(60))
        #expect(silent.isOpen, "nobody waits")
        #expect(!waiting.notify(Self.event("b", 200_000)))
        let drained = Shared(0)
        waiting.connection.onDrain { drained.change { $0 += 1 } }
        server.loop.run()
        #expect(drained.current == 0)
        server.loop.advanceTime(by: .seconds(30))
        #expect(drained.current == 1)
        #expect(!silent.isOpen)
        #expect(small.isOpen)
        #expect(waiting.notify(Self.event("c", 200_000)))
    }

    @Test func oneEventIsSentHoweverLarge() throws {
        let server = Server(limit: Self.limit)
        let (one, other) = (try server.peer(), try server.peer())
        let event = Self.event("a", 2 * Self.limit)
        #expect(one.notify(event))
        #expect(other.notify(event))
        let third = try server.peer()
        #expect(!third.notify(Self.event("b", 5_000)))
    }

    @Test func whatClosedPeersHeldIsFreeAgain() throws {
        let server = Server(limit: Self.limit)
        let (silent, waiting, gone) = (try server.peer(), try server.peer(), try server.peer())
        #expect(silent.notify(Self.event("a", 400_000)))
        let drained = Shared(0)
        for peer in [gone, waiting] {
            #expect(!peer.notify(Self.event("b", 500_000)))
            peer.connection.onDrain { drained.change { $0 += 1 } }
        }
        server.loop.run()
        // One that waits and goes is not waited for.
        gone.close()
        #expect(drained.current == 0)
        silent.close()
        #expect(drained.current == 1)
        #expect(waiting.notify(Self.event("b", 500_000)))
        server.loop.run()
        waiting.close()
        #expect(server.budget.usedBytes == 0)
    }

    @Test func eventsWaitForTheResponseThatOpensTheirSubscription() {
        var opened = OpenedSubscriptions()
        func notification(_ subscription: String, _ text: String) -> OutgoingNotification {
            OutgoingNotification(method: "m", subscription: subscription, members: EncodedJSON(text))
        }
        func hold(_ subscription: String, _ text: String) -> Bool { opened.hold(notification(subscription, text)) }
        func responded(_ sequence: UInt64) -> [String] { opened.responded(sequence).map(\.members.text) }
        #expect(!hold("a", "1"))
        opened.open("a", by: 7)
        opened.open("b", by: 8)
        opened.open("c", by: 7)
        #expect(hold("a", "2"))
        #expect(hold("b", "3"))
        #expect(hold("c", "4"))
        #expect(!hold("d", "5"))
        #expect(responded(7) == ["2", "4"])
        #expect(!hold("a", "6"))
        #expect(responded(7).isEmpty)
        #expect(responded(8) == ["3"])
        #expect(opened.isEmpty)
    }

    // MARK: The queue of a connection

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func queueGivesItsBytesInOrderAndInPieces(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var queue = OutputQueue()
        var (expected, taken): ([UInt8], [UInt8]) = ([], [])
        var (appended, released, shared, releasedShared) = (0, 0, 0, 0)
        func take() {
            guard let write = queue.next() else { return #expect(queue.isEmpty) }
            let bytes = (write.buffers + [write.last]).flatMap { Array($0.readableBytesView) }
            #expect(bytes.count == write.count)
            #expect(write.count <= OutputQueue.writeBytesMax + OutputQueue.gatheredBytesMax)
            taken += bytes
            released += write.releasedBytes
            releasedShared += write.releasedSharedBytes
        }
        for _ in 0..<200 {
            let bytes = [UInt8](
                repeating: UInt8.random(in: 97...122, using: &random),
                count: Int.random(in: 1...(Bool.random(using: &random) ? 600_000 : 3_000), using: &random))
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                queue.append(line: bytes)
                expected += bytes + [UInt8(ascii: "\n")]
            case 1:
                let small = bytes.prefix(OutputQueue.gatheredBytesMax)
                queue.append(about: small.count) { $0.writeBytes(small) }
                expected += small
            case 2:
                queue.append(SharedBytes(bytes))
                expected += bytes
                shared += bytes.count
            default: take()
            }
            appended = expected.count
            #expect(queue.appendedBytes == appended)
        }
        while !queue.isEmpty { take() }
        let end = queue.next()
        #expect(end?.count == nil)
        #expect(taken == expected)
        #expect(released == appended)
        #expect(releasedShared == shared)
    }

    // MARK: Memory

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func noConnectionWaitsForMemoryThatIsFree(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var room = EventCapacity(bytesMax: 100)
        var charged: [Int] = []
        var turns: [UInt64] = []
        let resumed = Shared<[UInt64]>([])
        for step in 0..<2_000 {
            let free = Int.random(in: -20...200, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                let count = Int.random(in: 1...150, using: &random)
                let fits = charged.isEmpty || count <= free && charged.reduce(0, +) + count <= 100
                let isCharged = room.charge(count, free: free)
                #expect(isCharged == fits)
                if fits { charged.append(count) }
            case 1:
                guard let index = charged.indices.randomElement(using: &random) else { continue }
                room.endCharge(charged.remove(at: index))
            case 2:
                let connection = UInt64.random(in: 0..<20, using: &random)
                room.wait(connection, for: Int.random(in: 1...150, using: &random), of: UInt64(step / 40)) {
                    resumed.change { $0.append(connection) }
                }
                if !turns.contains(connection) { turns.append(connection) }
            default:
                let connection = UInt64.random(in: 0..<20, using: &random)
                room.stopWaiting(connection)
                turns.removeAll { $0 == connection }
            }
            resumed.change { $0 = [] }
            for resume in room.takeReady(free: free) { resume() }
            // In their turn, and with nothing in memory the first at least.
            #expect(resumed.current == Array(turns.prefix(resumed.current.count)))
            if charged.isEmpty, !turns.isEmpty { #expect(!resumed.current.isEmpty) }
            turns.removeFirst(resumed.current.count)
            #expect(room.isAwaited == !turns.isEmpty)
            #expect(room.bytes == charged.reduce(0, +))
        }
    }

    @Test func connectionsThatWereRefusedTheSameGoOnTogether() {
        var room = EventCapacity(bytesMax: 100)
        let isCharged = room.charge(90, free: 1_000)
        #expect(isCharged)
        let resumed = Shared<[UInt64]>([])
        for connection in 1...30 as ClosedRange<UInt64> {
            room.wait(connection, for: 60, of: connection <= 20 ? 1 : 2) { resumed.change { $0.append(connection) } }
        }
        let early = room.takeReady(free: 1_000)
        #expect(early.isEmpty)
        room.endCharge(90)
        for resume in room.takeReady(free: 1_000) { resume() }
        #expect(resumed.current == Array(1...20))
        #expect(room.isAwaited)
    }

    private static func event(_ letter: String, _ count: Int) -> EncodedJSON {
        EncodedJSON("\"text\":\"" + String(repeating: letter, count: count) + "\"").shared(from: 4_096)
    }
}

/// Connections whose sockets take nothing until the test drains them.
private final class Server {
    final class Peer {
        let connection: RPCConnection
        let socket = FullSocket()
        private let channel: EmbeddedChannel

        init(_ connection: RPCConnection, _ hub: LoopHub, _ loop: EmbeddedEventLoop) throws {
            self.connection = connection
            channel = EmbeddedChannel(loop: loop)
            try channel.pipeline.syncOperations.addHandlers(
                socket, ConnectionHandler(connection: connection, hub: hub, usesTLS: false))
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }

        func notify(_ members: EncodedJSON) -> Bool {
            connection.notify("check.event", subscription: "1", members: members)
        }

        var isOpen: Bool { !connection.isClosed }

        /// Takes everything.
        func drain() {
            while connection.unsentBytes > 0, !socket.writes.isEmpty {
                socket.drain()
                channel.embeddedEventLoop.run()
            }
        }

        func close() {
            channel.close(promise: nil)
            socket.fail()
            channel.embeddedEventLoop.run()
        }
    }

    let loop = EmbeddedEventLoop()
    private let state: ServerState
    private let hub: LoopHub
    private var lastID: UInt64 = 0

    var budget: ProcessBudget { state.budget }

    init(limit: Int, _ change: (inout RPCLimits) -> Void = { _ in }) {
        var configuration = RPCServerConfiguration(service: "check", version: "1")
        configuration.limits.processBytesInFlightMax = limit
        change(&configuration.limits)
        state = ServerState(
            configuration, methods: [:], authenticator: Nobody(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        hub = LoopHub(loop: loop, server: state, emptyingTimeMax: .hours(1))
    }

    func peer() throws -> Peer {
        lastID += 1
        return try Peer(RPCConnection(id: lastID, remoteAddress: "127.0.0.1", hub: hub), hub, loop)
    }
}
