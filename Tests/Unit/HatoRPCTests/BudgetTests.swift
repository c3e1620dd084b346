import Foundation
import HatoModel
import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import HatoRPC

/// What all connections of a process hold together.
struct BudgetTests {
    /// Connections of one server, on loops that the test runs.
    private final class World {
        let gates = Gates()
        let state: ServerState

        init(_ change: (inout RPCLimits) -> Void) {
            var configuration = RPCServerConfiguration(service: "check", version: "1")
            configuration.limits.unreservedReadBytesMax = 1
            change(&configuration.limits)
            configuration.limits.unauthenticatedLineBytesMax = 1 << 20
            var router = RPCRouter()
            router.handleInOrder(Check.Read.self) { [gates] request, _, reply in
                gates.whenOpen(String(request.gate.prefix(8))) { reply.succeed(.init(gate: request.gate)) }
            }
            state = ServerState(
                configuration, methods: router.methods, authenticator: TestAuthenticator(gates: gates),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        }

        func connect() throws -> EmbeddedChannel {
            let channel = EmbeddedChannel()
            let hub = LoopHub(loop: channel.eventLoop, server: state, emptyingTimeMax: .hours(1))
            let connection = RPCConnection(id: state.newConnectionID(), remoteAddress: "127.0.0.1", hub: hub)
            try channel.pipeline.syncOperations.addHandler(
                ConnectionHandler(connection: connection, hub: hub, usesTLS: false))
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
            return channel
        }

        func request(_ gate: String) -> String {
            #"{"jsonrpc":"2.0","id":1,"method":"check.read","params":{"gate":"\#(gate)"}}"#
        }

        func say(_ line: String, on channel: EmbeddedChannel) throws {
            try channel.writeInbound(ByteBuffer(string: line + "\n"))
            channel.embeddedEventLoop.run()
        }
    }

    @Test func entriesOfABatchThatWaitAreCharged() throws {
        let world = World { $0.readsInFlightMax = 1 }
        let channel = try world.connect()
        let large = world.request("later" + String(repeating: "x", count: 200_000))
        try world.say("[\(world.request("first")),\(large)]", on: channel)
        #expect(world.gates.arrived == ["first"])
        #expect(world.state.budget.usedBytes > 200_000)
        world.gates.open("first")
        channel.embeddedEventLoop.run()
        world.gates.open("laterxxx")
        channel.embeddedEventLoop.run()
        #expect(world.state.budget.usedBytes == 0)
        _ = try channel.finish()
    }

    @Test func readsOfOneClientLeaveAsManyToOthersAsTheyAre() throws {
        let world = World {
            $0.unreservedReadBytesMax = 1_000
            // A quarter of it is for 16 reads.
            $0.processBytesInFlightMax = 64_000
        }
        let channels = try (0..<12).map { _ in try world.connect() }
        for (number, channel) in channels.enumerated() { try world.say(world.request("r\(number)"), on: channel) }
        // One more has the exemption of the client.
        #expect(world.gates.arrived.count == 9)
        #expect(world.state.budget.smallReads.free == 7)
        for number in 0..<9 { world.gates.open("r\(number)") }
        for channel in channels { channel.embeddedEventLoop.run() }
        #expect(world.gates.arrived.count == 12)
        for number in 9..<12 { world.gates.open("r\(number)") }
        for channel in channels {
            channel.embeddedEventLoop.run()
            _ = try channel.finish()
        }
        #expect(world.state.budget.smallReads.free == 16)
    }

    @Test func readsOfAConnectionThatClosesAreGivenBack() throws {
        let world = World {
            $0.unreservedReadBytesMax = 1_000
            $0.processBytesInFlightMax = 64_000
        }
        let channel = try world.connect()
        try world.say(world.request("r"), on: channel)
        #expect(world.state.budget.smallReads.free == 15)
        _ = try channel.finish()
        channel.embeddedEventLoop.run()
        #expect(world.state.budget.smallReads.free == 16)
        world.gates.open("r")
    }

    @Test func responsesOfABatchThatIsNotDoneAreCharged() throws {
        let world = World { _ in }
        let channel = try world.connect()
        let large = world.request("early" + String(repeating: "x", count: 200_000))
        world.gates.open("earlyxxx")
        try world.say("[\(large),\(world.request("late"))]", on: channel)
        #expect(world.state.budget.usedBytes > 200_000)
        world.gates.open("late")
        channel.embeddedEventLoop.run()
        #expect(world.state.budget.usedBytes == 0)
        _ = try channel.finish()
    }

    @Test func longBatchesThatAreTakenAlthoughTooMuchIsHeldDoNotGather() throws {
        let world = World { $0.processBytesInFlightMax = 200_000 }
        let elsewhere = world.state.budget.clients.enter("elsewhere")
        world.state.budget.add(400_000, to: elsewhere)
        world.gates.open("early")
        let entries = [String](repeating: world.request("early"), count: 100).joined(separator: ",")
        let channels = try (0..<20).map { _ in try world.connect() }
        for channel in channels { try world.say("[\(entries)]", on: channel) }
        for channel in channels { channel.embeddedEventLoop.run() }
        for channel in channels {
            let line = try #require(try channel.readOutbound(as: ByteBuffer.self))
            // A read starts with one byte of memory here: one result at most fits.
            let refused = String(buffer: line).components(separatedBy: #""reason":"busy""#).count - 1
            #expect(refused >= 99, "\(String(buffer: line).prefix(300))")
        }
        #expect(world.state.budget.usedBytes == 400_000)
        for channel in channels { _ = try channel.finish() }
    }

    @Test func whatAClosingPeerHasSentIsRefusedWhereItMayNotBeHeld() throws {
        let world = World { $0.processBytesInFlightMax = 10_000 }
        let elsewhere = world.state.budget.clients.enter("elsewhere")
        world.state.budget.add(20_000, to: elsewhere)
        // The line of the first may grow although nothing fits.
        let channels = try (0..<3).map { _ in try world.connect() }
        for channel in channels {
            try channel.writeInbound(ByteBuffer(string: String(repeating: "x", count: 3_000)))
            channel.read()
        }
        for channel in channels.dropFirst() {
            try channel.writeInbound(ByteBuffer(string: String(repeating: "x", count: 30_000)))
            channel.embeddedEventLoop.run()
            let line = try #require(try channel.readOutbound(as: ByteBuffer.self))
            #expect(String(buffer: line).contains(#""reason":"busy""#))
        }
        for channel in channels { _ = try? channel.finish() }
        #expect(world.state.budget.usedBytes == 20_000)
    }

    @Test func onlyOneReadAtATimeStartsWhileTheProcessHoldsTooMuch() throws {
        let world = World { $0.processBytesInFlightMax = 10_000 }
        let (one, other) = (try world.connect(), try world.connect())
        let elsewhere = world.state.budget.clients.enter("elsewhere")
        world.state.budget.add(20_000, to: elsewhere)
        try world.say(world.request("one"), on: one)
        try world.say(world.request("other"), on: other)
        #expect(world.gates.arrived == ["one"])
        // When it ends, it makes way for the next.
        world.gates.open("one")
        one.embeddedEventLoop.run()
        other.embeddedEventLoop.run()
        #expect(world.gates.arrived == ["one", "other"])
        // With free memory again none waits.
        try world.say(world.request("third"), on: one)
        #expect(world.gates.arrived == ["one", "other"])
        world.state.budget.add(-20_000, to: elsewhere)
        one.embeddedEventLoop.run()
        #expect(world.gates.arrived == ["one", "other", "third"])
        for gate in ["other", "third"] { world.gates.open(gate) }
        for channel in [one, other] {
            channel.embeddedEventLoop.run()
            _ = try channel.finish()
        }
    }

    @Test func aConnectionThatClosesGivesTheOneReadBack() throws {
        let world = World { $0.processBytesInFlightMax = 10_000 }
        let (one, other) = (try world.connect(), try world.connect())
        let elsewhere = world.state.budget.clients.enter("elsewhere")
        world.state.budget.add(20_000, to: elsewhere)
        try world.say(world.request("one"), on: one)
        try world.say(world.request("other"), on: other)
        _ = try one.finish()
        other.embeddedEventLoop.run()
        #expect(world.gates.arrived == ["one", "other"])
        for gate in ["one", "other"] { world.gates.open(gate) }
        _ = try other.finish()
    }
}
