import HatoRPC
import NIOCore
import NIOHTTP1
import NIOPosix

/// Answers `GET /metrics` over plain HTTP for scrapers.
final class MetricsEndpoint: Sendable {
    private let group: MultiThreadedEventLoopGroup
    private let channel: any Channel

    var port: Int { channel.localAddress?.port ?? 0 }

    /// Starts listening. Throws `RPCServerError` when the address is taken or not ours.
    init(host: String, port: Int, text: @escaping @Sendable () -> String) async throws {
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        do {
            channel = try await ServerBootstrap(group: group)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                        try channel.pipeline.syncOperations.addHandler(MetricsHandler(text: text))
                    }
                }
                .bind(host: host, port: port).get()
        } catch {
            try? await group.shutdownGracefully()
            throw RPCServerError.cannotListen(host: host, port: port, reason: ConnectionProblem.words(error))
        }
    }

    func stop() async {
        try? await channel.close()
        try? await group.shutdownGracefully()
    }
}

private final class MetricsHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let text: @Sendable () -> String
    private var head: HTTPRequestHead?

    init(text: @escaping @Sendable () -> String) { self.text = text }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): self.head = head
        case .body: break
        case .end: answer(context)
        }
    }

    private func answer(_ context: ChannelHandlerContext) {
        guard let head else { return }
        let isFound = head.method == .GET && head.uri.prefix { $0 != "?" } == "/metrics"
        let body = ByteBuffer(string: isFound ? text() : "GET /metrics\n")
        var headers = HTTPHeaders()
        headers.add(name: "content-type", value: "text/plain; version=0.0.4; charset=utf-8")
        headers.add(name: "content-length", value: String(body.readableBytes))
        headers.add(name: "connection", value: "close")
        let response = HTTPResponseHead(version: head.version, status: isFound ? .ok : .notFound, headers: headers)
        context.write(wrapOutboundOut(.head(response)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in channel.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
