import HatoRPC
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A request over plain HTTP with its complete body.
public struct HTTPRequest: Sendable {
    public var method: String
    /// Path and query.
    public var target: String
    /// Names in lower case, in the order of the request.
    public var headers: [(name: String, value: String)]
    /// The body of the request.
    public var body: [UInt8]

    /// The first header of this (lower-case) name.
    public func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}

/// The response to an `HTTPRequest`.
public struct HTTPResponse: Sendable {
    /// The HTTP status.
    public var status: Int
    /// Names and values of the header.
    public var headers: [(name: String, value: String)]
    /// The body of the response.
    public var body: [UInt8]

    public init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// The limits of an `HTTPListener`.
public struct HTTPLimits: Sendable, Hashable {
    /// Connections at a time; further ones are closed at once.
    public var connectionsMax = 64
    /// Seconds from the beginning of a connection, or from its last response, until its next request is complete; and
    /// until a response is received by the peer. Then the connection is closed.
    public var idleSecondsMax = 60
    /// A longer body is refused with 413 and the connection closed.
    public var bodyBytesMax = 1 << 20

    public init() {}
}

/// A small server of plain HTTP/1.1 on one thread, for auxiliary endpoints of a service: its metrics, and a receiver of
/// webhooks for trying them. One request at a time on a connection.
public final class HTTPListener: Sendable {
    private let group: MultiThreadedEventLoopGroup
    private let channel: any Channel
    private let load: HTTPLoad

    /// The port on which it listens.
    public var port: Int { channel.localAddress?.port ?? 0 }

    /// Starts listening. Throws `RPCServerError` when the address is in use or does not belong to this machine.
    public init(
        host: String, port: Int, limits: HTTPLimits = HTTPLimits(),
        answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
    ) async throws {
        let load = HTTPLoad(connectionsMax: limits.connectionsMax)
        self.load = load
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        do {
            channel = try await ServerBootstrap(group: group)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelInitializer { channel in
                    guard load.enter() else { return channel.close() }
                    channel.closeFuture.whenComplete { _ in load.leave() }
                    return channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                        try channel.pipeline.syncOperations.addHandler(
                            HTTPListenerHandler(limits, load, answer))
                    }
                }
                .bind(host: host, port: port).get()
        } catch {
            try? await group.shutdownGracefully()
            throw RPCServerError.cannotListen(host: host, port: port, reason: ConnectionProblem.words(error))
        }
    }

    /// Closes the port, lets pending responses be sent for at most `grace`, then closes every connection.
    public func stop(grace: Duration = .seconds(2)) async {
        try? await channel.close()
        await load.allSent(within: grace)
        try? await group.shutdownGracefully()
    }
}

/// Counts connections, and requests whose response is not sent yet.
private final class HTTPLoad: Sendable {
    private let connectionsMax: Int
    private let connections = Mutex(0)
    private let state = Mutex<(count: Int, sent: AsyncStream<Void>.Continuation?)>((0, nil))

    init(connectionsMax: Int) { self.connectionsMax = connectionsMax }

    /// Returns false, without counting, when there are too many.
    func enter() -> Bool {
        connections.withLock { count in
            guard count < connectionsMax else { return false }
            count += 1
            return true
        }
    }

    func leave() { connections.withLock { $0 -= 1 } }

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

/// Runs on its channel's event loop only; the response comes from a task and returns to the loop.
private final class HTTPListenerHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let limits: HTTPLimits
    private let load: HTTPLoad
    private let answer: @Sendable (HTTPRequest) async -> HTTPResponse
    /// Closes the connection unless a complete request arrives first.
    private var patience: Scheduled<Void>?
    private var head: HTTPRequestHead?
    private var body: [UInt8] = []
    private var isTooLong = false

    init(_ limits: HTTPLimits, _ load: HTTPLoad, _ answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse) {
        self.limits = limits
        self.load = load
        self.answer = answer
    }

    func channelActive(context: ChannelHandlerContext) {
        wait(on: context.channel)
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        patience?.cancel()
        context.fireChannelInactive()
    }

    private func wait(on channel: any Channel) {
        patience?.cancel()
        patience = channel.eventLoop.scheduleTask(in: .seconds(Int64(limits.idleSecondsMax))) {
            channel.close(promise: nil)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            body = []
            isTooLong = false
        case .body(let part):
            if body.count + part.readableBytes > limits.bodyBytesMax {
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
        patience?.cancel()
        let channel = context.channel
        let keepsAlive = head.isKeepAlive && !isTooLong
        if isTooLong {
            wait(on: channel)
            _ = HTTPListenerHandler.write(HTTPResponse(status: 413), to: channel, head.version, keepsAlive: false)
            return
        }
        let request = HTTPRequest(
            method: head.method.rawValue, target: head.uri,
            headers: head.headers.map { ($0.name.lowercased(), $0.value) }, body: body)
        let version = head.version
        load.begin()
        let bound = NIOLoopBound(self, eventLoop: channel.eventLoop)
        // The task ends with its response; when the connection has closed meanwhile, the write fails and is ignored.
        Task { [answer, load] in
            let response = await answer(request)
            channel.eventLoop.execute {
                if channel.isActive { bound.value.wait(on: channel) }
                HTTPListenerHandler.write(response, to: channel, version, keepsAlive: keepsAlive)
                    .whenComplete { _ in load.end() }
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
