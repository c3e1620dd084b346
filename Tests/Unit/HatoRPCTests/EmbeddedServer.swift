import HatoModel
import Logging
import NIOCore
import NIOEmbedded

@testable import HatoRPC

/// Connections of one server on a loop whose clock the test turns.
final class EmbeddedServer {
    let loop = EmbeddedEventLoop()
    let state: ServerState
    let hub: LoopHub
    private var nextID: UInt64 = 1

    /// - Parameter turn: after which the mailbox waits for the sockets.
    init(
        turn: TimeAmount = .hours(1),
        runElsewhere: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() },
        _ change: (inout RPCLimits) -> Void
    ) {
        var configuration = RPCServerConfiguration(service: "check", version: "1")
        change(&configuration.limits)
        var router = RPCRouter()
        router.addServiceMethods(configuration, health: { [configuration] _ in await configuration.health() }) {
            LoopCounts()
        }
        router.handleInOrder(Check.Echo.self) { request, _, reply in reply.succeed(.init(value: request.value)) }
        router.handleInOrder(Check.Later.self) { [loop] request, _, reply in
            loop.execute { reply.succeed(.init(gate: request.gate)) }
        }
        state = ServerState(
            configuration, methods: router.methods, authenticator: TestAuthenticator(gates: Gates()),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, runElsewhere: runElsewhere)
        hub = LoopHub(loop: loop, server: state, emptyingTimeMax: turn)
    }

    func peer(_ uid: String? = nil, address: String = "127.0.0.1") throws -> EmbeddedPeer {
        let connection = RPCConnection(id: nextID, remoteAddress: address, hub: hub)
        nextID += 1
        let peer = try EmbeddedPeer(connection, hub, loop)
        if let uid {
            _ = try peer.ask(
                "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"session.authenticate\",\"params\":{\"auth\":\"user-\(uid)\"}}"
            )
        }
        return peer
    }
}

/// The peer of a connection of `EmbeddedServer`: hands it bytes as a socket would, only when it reads.
final class EmbeddedPeer {
    let connection: RPCConnection
    private let channel: EmbeddedChannel
    private let socket = ReadCounter()
    /// What the connection has not read yet.
    private var offered: [UInt8] = []

    init(_ connection: RPCConnection, _ hub: LoopHub, _ loop: EmbeddedEventLoop) throws {
        self.connection = connection
        channel = EmbeddedChannel(loop: loop)
        try channel.pipeline.syncOperations.addHandlers(
            socket, ConnectionHandler(connection: connection, hub: hub, usesTLS: false))
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        channel.read()
    }

    var isOpen: Bool { channel.isActive }
    var unreadCount: Int { offered.count }

    /// Hands over as much as the connection reads.
    func send(_ bytes: [UInt8] = []) throws {
        offered += bytes
        channel.embeddedEventLoop.run()
        while !offered.isEmpty, isOpen, socket.isAsked {
            let count = min(offered.count, 64 << 10)
            socket.isAsked = false
            try channel.writeInbound(ByteBuffer(bytes: offered[..<count]))
            offered.removeFirst(count)
            channel.embeddedEventLoop.run()
            if !socket.isAsked { channel.read() }
        }
    }

    /// As a socket does in one turn of the loop: what others have posted waits.
    func sendInThisTurn(_ line: String) throws { try channel.writeInbound(ByteBuffer(string: line + "\n")) }

    func closeInThisTurn() { channel.close(promise: nil) }

    /// From now on what is written fails, as it does when the peer has reset the connection.
    func lose() { socket.isLost = true }

    /// All responses since the last look.
    func received() throws -> String {
        var text = ""
        while let bytes = try channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: bytes) }
        return text
    }

    func ask(_ line: String) throws -> String {
        try send(Array(line.utf8) + [UInt8(ascii: "\n")])
        return try received()
    }

    /// Closes the direction of the peer; the connection can still respond.
    func closeInput() {
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        channel.embeddedEventLoop.run()
    }

    func close() {
        channel.close(promise: nil)
        channel.embeddedEventLoop.run()
    }
}

private final class ReadCounter: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    var isAsked = false

    var isLost = false

    func read(context: ChannelHandlerContext) { isAsked = true }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard isLost else { return context.write(data, promise: promise) }
        promise?.fail(ChannelError.ioOnClosedChannel)
    }
}

extension ProcessBudget {
    convenience init(limit: Int, clientMax: Int, readBytes: Int = 1) {
        var limits = RPCLimits()
        (limits.processBytesInFlightMax, limits.clientBytesInFlightMax) = (limit, clientMax)
        (limits.unreservedReadBytesMax, limits.responseBytesMax) = (readBytes, 0)
        self.init(limits)
    }
}
