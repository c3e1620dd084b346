import HatoModel
import NIOCore
import NIOPosix
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// A socket that sends whatever bytes a test likes and hands back lines.
final class RawPeer: Sendable {
    static let deadline = TimeAmount.seconds(240)

    let channel: any Channel
    private let lines: AsyncThrowingStream<String, any Error>
    private let source: AsyncThrowingStream<String, any Error>.Continuation
    private let received: Shared<Int>

    init(
        port: Int, reads: Bool = true,
        prepare: @escaping @Sendable (any Channel) throws -> Void = { _ in }
    ) async throws {
        let (lines, source) = AsyncThrowingStream.makeStream(of: String.self)
        let received = Shared(0)
        self.lines = lines
        self.source = source
        self.received = received
        channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: reads)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.allowRemoteHalfClosure, value: false)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try prepare(channel)
                    try channel.pipeline.syncOperations.addHandler(LineCollector(source: source, received: received))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
    }

    var receivedBytes: Int { received.current }

    func send(_ text: String) async throws { try await send(bytes: Array(text.utf8)) }

    func send(bytes: [UInt8]) async throws {
        try await channel.writeAndFlush(ByteBuffer(bytes: bytes)).get()
    }

    /// Sends without waiting until the kernel took it.
    func sendLater(_ text: String) { channel.writeAndFlush(ByteBuffer(string: text), promise: nil) }

    func sendLine(_ text: String) async throws { try await send(text + "\n") }

    func startReading() async throws {
        try await channel.setOption(.autoRead, value: true).get()
        channel.read()
    }

    /// The next line; nil when the connection has closed. Fails after the deadline.
    func line() async throws -> String? {
        let source = source
        let watch = channel.eventLoop.scheduleTask(in: Self.deadline) {
            source.finish(throwing: Missing(what: "a line"))
        }
        defer { watch.cancel() }
        for try await line in lines { return line }
        return nil
    }

    func response() async throws -> JSONValue {
        let line = try #require(try await line(), "the connection closed")
        return try JSONParser.parse(line)
    }

    /// Sends a line and returns the next response.
    func ask(_ text: String) async throws -> JSONValue {
        try await sendLine(text)
        return try await response()
    }

    func call(_ method: String, _ params: String = "{}", id: Int = 1) async throws -> JSONValue {
        try await ask("{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"\(method)\",\"params\":\(params)}")
    }

    func expectClosed() async throws {
        let line = try await line()
        #expect(line == nil)
    }

    func close() async { try? await channel.close() }

    /// Closes with a reset: what is on its way in either direction is lost.
    func reset() async throws {
        let socket = try #require(channel as? any SocketOptionProvider)
        try await socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        await close()
    }
}

private final class LineCollector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let source: AsyncThrowingStream<String, any Error>.Continuation
    private let received: Shared<Int>
    private var rest = ByteBuffer()

    init(source: AsyncThrowingStream<String, any Error>.Continuation, received: Shared<Int>) {
        self.source = source
        self.received = received
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var chunk = unwrapInboundIn(data)
        let count = chunk.readableBytes
        received.change { $0 += count }
        rest.writeBuffer(&chunk)
        while let end = rest.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) {
            source.yield(rest.readString(length: end - rest.readerIndex) ?? "")
            rest.moveReaderIndex(forwardBy: 1)
        }
        rest.discardReadBytes()
    }

    func channelInactive(context: ChannelHandlerContext) { source.finish() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
