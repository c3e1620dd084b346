import NIOCore
import NIOPosix
import NIOSSL

/// WebSockets over TLS that listen and do nothing else.
final class TLSListeners: Sendable {
    private let group: MultiThreadedEventLoopGroup
    private let channels: [any Channel]

    /// Returns when all listen. At most so many connect at a time.
    init(_ count: Int, port: Int, _ folder: PushFolder, _ token: String) async throws {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .file(folder.certificate)
        let context = try NIOSSLContext(configuration: configuration)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        var channels: [any Channel] = []
        for number in 0..<count {
            let begun = group.next().makePromise(of: Void.self)
            let channel = try await ClientBootstrap(group: group)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandlers(
                            NIOSSLClientHandler(context: context, serverHostname: nil),
                            TLSListener(token, room: "quiet\(number % 100)", begun))
                    }
                }
                .connect(host: "127.0.0.1", port: port).get()
            try await begun.futureResult.get()
            channels.append(channel)
        }
        (self.group, self.channels) = (group, channels)
    }

    func close() async {
        for channel in channels { try? await channel.close() }
        try? await group.shutdownGracefully()
    }
}

/// Sends the next request when the response to the one before has come.
private final class TLSListener: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var steps: [(waitsFor: String, sends: [UInt8])]
    private let begun: EventLoopPromise<Void>
    private var received = ""

    init(_ token: String, room: String, _ begun: EventLoopPromise<Void>) {
        self.begun = begun
        let listen = FirebaseRequests.listen("/chats/\(room)/messages")
        steps = [
            (#""t":"h""#, FirebaseRequests.frame(FirebaseRequests.authenticate(token))),
            (#""s":"ok""#, FirebaseRequests.frame(listen)), (#""r":2,"b":{"s":"ok""#, []),
        ]
    }

    func channelActive(context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: FirebaseRequests.upgrade)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        received += String(decoding: unwrapInboundIn(data).readableBytesView, as: UTF8.self)
        guard let step = steps.first, received.contains(step.waitsFor) else { return }
        received = ""
        steps.removeFirst()
        if steps.isEmpty { return begun.succeed() }
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: step.sends)), promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        begun.fail(BenchError("a WebSocket over TLS was closed"))
    }
}
