import HatoModel
import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import HatoRPC

/// How bytes leave a connection whose peer does not take them.
struct OutputTests {
    @Test func whatPeerDoesNotTakeGathersInOneBuffer() throws {
        let socket = FullSocket()
        let (channel, connection) = try connected(socket)
        notify(connection, channel, count: 1_000)
        #expect(socket.writes.count == 1)
        socket.drain()
        #expect(socket.writes.count == 1)
        #expect(socket.taken.filter { $0 == UInt8(ascii: "\n") }.count == 1_000)
        #expect(connection.unsentBytes > 0)
        socket.drain()
        #expect(connection.unsentBytes == 0)
        _ = try channel.finish()
    }

    @Test func whatHasGatheredIsSentBeforeConnectionCloses() throws {
        let socket = FullSocket()
        let (channel, connection) = try connected(socket)
        notify(connection, channel, count: 10)
        connection.close()
        channel.embeddedEventLoop.run()
        socket.drain()
        socket.drain()
        #expect(socket.taken.filter { $0 == UInt8(ascii: "\n") }.count == 10)
    }

    private func notify(_ connection: RPCConnection, _ channel: EmbeddedChannel, count: Int) {
        for number in 0..<count {
            #expect(connection.notify("check.event", subscription: "1", members: EncodedJSON("\"n\":\(number)")))
            channel.embeddedEventLoop.run()
        }
    }

    private func connected(_ socket: FullSocket) throws -> (EmbeddedChannel, RPCConnection) {
        let state = ServerState(
            RPCServerConfiguration(service: "check", version: "1"), methods: [:], authenticator: Nobody(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let channel = EmbeddedChannel()
        let hub = LoopHub(loop: channel.eventLoop, server: state, emptyingTimeMax: .hours(1))
        let connection = RPCConnection(id: 1, remoteAddress: "127.0.0.1", hub: hub)
        try channel.pipeline.syncOperations.addHandlers(
            socket, ConnectionHandler(connection: connection, hub: hub, usesTLS: false))
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        return (channel, connection)
    }
}

/// Keeps what is written until the test drains it.
final class FullSocket: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private(set) var writes: [EventLoopPromise<Void>?] = []
    private(set) var taken: [UInt8] = []

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        taken += unwrapOutboundIn(data).readableBytesView
        writes.append(promise)
    }

    /// False when there was nothing.
    @discardableResult
    func drain() -> Bool {
        let drained = writes
        writes = []
        for promise in drained { promise?.succeed(()) }
        return !drained.isEmpty
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        context.close(mode: mode, promise: promise)
        if mode == .all { fail() }
    }

    /// The socket has closed.
    func fail() {
        let failed = writes
        writes = []
        for promise in failed { promise?.fail(ChannelError.ioOnClosedChannel) }
    }
}

struct Nobody: Authenticator {
    func remembered(_ credential: String) -> Caller? { nil }

    func authenticate(_ credential: String) async throws -> Caller {
        throw RPCError.unauthenticated(reason: "INVALID_ID_TOKEN", "This server knows nobody")
    }
}
