import HatoRPC
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A request as it came over plain HTTP, its body complete.
public struct HTTPRequest: Sendable {
    public var method: String
    /// Path and query.
    public var target: String
    /// Names in lower case, in the order they came.
    public var headers: [(name: String, value: String)]
    public var body: [UInt8]

    /// The first header of this (lower-case) name.
    public func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}

/// What is answered.
public struct HTTPResponse: Sendable {
    public var status: Int
    public var headers: [(name: String, value: String)]
    public var body: [UInt8]

    public init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// A small server of plain HTTP/1.1 on one thread, for what stands beside a service: a receiver of webhooks to try them
/// with. One request at a time on a connection; a body over the limit answers 413 and closes.
public final class HTTPListener: Sendable {
    private let group: MultiThreadedEventLoopGroup
    private let channel: any Channel
    private let answers: OpenAnswers

    /// The port it got.
    public var port: Int { channel.localAddress?.port ?? 0 }

    /// Starts listening. Throws `RPCServerError` when the address is taken or not ours.
    public init(
        host: String, port: Int, bodyBytesMax: Int = 1 << 20,
        answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
    ) async throws {
        let answers = OpenAnswers()
        self.answers = answers
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        do {
            channel = try await ServerBootstrap(group: group)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                        try channel.pipeline.syncOperations.addHandler(
                            HTTPListenerHandler(bodyBytesMax: bodyBytesMax, answers: answers, answer: answer))
                    }
                }
                .bind(host: host, port: port).get()
        } catch {
            try? await group.shutdownGracefully()
            throw RPCServerError.cannotListen(host: host, port: port, reason: ConnectionProblem.words(error))
        }
    }

    /// Closes the port, lets answers that are under way be sent for at most `grace`, then closes every connection.
    public func stop(grace: Duration = .seconds(2)) async {
        try? await channel.close()
        await answers.allSent(within: grace)
        try? await group.shutdownGracefully()
    }
}

/// Counts requests whose answer is not sent yet.
private final class OpenAnswers: Sendable {
    private let state = Mutex<(count: Int, sent: AsyncStream<Void>.Continuation?)>((0, nil))

    func begin() { state.withLock { $0.count += 1 } }

    func end() {
        state.withLock { state in
            state.count -= 1
            if state.count == 0 { state.sent?.finish() }
        }
    }

    func allSent(within grace: Duration) async {
        let (stream, sent) = AsyncStream.makeStream(of: Void.self)
        state.withLock { state in
            state.sent = sent
            if state.count == 0 { sent.finish() }
        }
        let limit = Task {
            try await Task.sleep(for: grace)
            sent.finish()
        }
        for await _ in stream {}
        limit.cancel()
    }
}

/// On its channel's event loop only; the answer comes from a task and returns to the loop.
private final class HTTPListenerHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let bodyBytesMax: Int
    private let answers: OpenAnswers
    private let answer: @Sendable (HTTPRequest) async -> HTTPResponse
    private var head: HTTPRequestHead?
    private var body: [UInt8] = []
    private var isTooLong = false

    init(
        bodyBytesMax: Int, answers: OpenAnswers, answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
    ) {
        self.bodyBytesMax = bodyBytesMax
        self.answers = answers
        self.answer = answer
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            body = []
            isTooLong = false
        case .body(let part):
            if body.count + part.readableBytes > bodyBytesMax {
                isTooLong = true
                body = []
            } else if !isTooLong {
                body.append(contentsOf: part.readableBytesView)
            }
        case .end: finish(context)
        }
    }

    private func finish(_ context: ChannelHandlerContext) {
        guard let head else { return }
        self.head = nil
        let channel = context.channel
        let keepsAlive = head.isKeepAlive && !isTooLong
        if isTooLong {
            _ = HTTPListenerHandler.write(HTTPResponse(status: 413), to: channel, head.version, keepsAlive: false)
            return
        }
        let request = HTTPRequest(
            method: head.method.rawValue, target: head.uri,
            headers: head.headers.map { ($0.name.lowercased(), $0.value) }, body: body)
        let version = head.version
        answers.begin()
        // Ends with its answer; when the connection is gone meanwhile, the write fails and nobody waits for it.
        Task { [answer, answers] in
            let response = await answer(request)
            channel.eventLoop.execute {
                HTTPListenerHandler.write(response, to: channel, version, keepsAlive: keepsAlive)
                    .whenComplete { _ in answers.end() }
            }
        }
    }

    private static func write(
        _ response: HTTPResponse, to channel: any Channel, _ version: HTTPVersion, keepsAlive: Bool
    ) -> EventLoopFuture<Void> {
        var headers = HTTPHeaders(response.headers.map { ($0.name, $0.value) })
        headers.replaceOrAdd(name: "content-length", value: String(response.body.count))
        if !keepsAlive { headers.replaceOrAdd(name: "connection", value: "close") }
        let head = HTTPResponseHead(
            version: version, status: HTTPResponseStatus(statusCode: response.status), headers: headers)
        channel.write(HTTPServerResponsePart.head(head), promise: nil)
        channel.write(HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(bytes: response.body))), promise: nil)
        let sent = channel.writeAndFlush(HTTPServerResponsePart.end(nil))
        sent.whenComplete { _ in
            if !keepsAlive { channel.close(promise: nil) }
        }
        return sent
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
