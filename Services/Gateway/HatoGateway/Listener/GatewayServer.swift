import HatoFirebase
import HatoModel
import HatoRPC
public import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOHTTPCompression
import NIOPosix
import NIOSSL
import NIOWebSocket
import Synchronization

/// A gateway that listens.
public final class GatewayServer: Sendable {
    /// The address it listens on.
    public let host: String
    /// The port it listens on.
    public let port: Int
    /// The settings of an emulator that auth does not take, because it was started with others.
    public let fixedSettings: [String]
    private let group: MultiThreadedEventLoopGroup
    private let channel: any Channel
    private let loops: [NIOLoopBound<LoopState>]
    private let shared: SharedParts

    /// Listens.
    ///
    /// - Throws: `RPCServerError` when it cannot listen, `TLSFileError` for files of TLS, `GatewayStartError` for an
    ///   emulator.
    public static func start(_ configuration: GatewayConfiguration, logger: Logger) async throws -> GatewayServer {
        let configuration = try await configuration.prepared()
        if let emulator = configuration.emulator {
            logger.warning(
                "this is an emulator: every client may be an administrator",
                metadata: ["settings-that-auth-was-started-with": "\(emulator.fixedSettings)"])
        }
        let links = try ServiceLinks(configuration, logger)
        let tls = try configuration.tls.map { try ServerTLS.context($0, protocols: ["http/1.1"]) }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: max(1, configuration.loops))
        let logsRequests = configuration.logsRequests && logger.logLevel <= .info
        let shared = SharedParts(
            gate: ClientGate(configuration, logger), metrics: GatewayMetrics(),
            untaken: UntakenBytes(configuration.limits),
            accessLog: logsRequests ? AccessLog(logger) : nil, logger: logger)
        var loops: [NIOLoopBound<LoopState>] = []
        for loop in group.makeIterator() {
            let state = try await loop.submit {
                NIOLoopBound(LoopState(configuration, links, on: loop, shared), eventLoop: loop)
            }.get()
            loops.append(state)
        }
        let states = loops
        for state in states {
            try await state.eventLoop.submit { state.value.join(LoopPeers(states, of: state.eventLoop)) }.get()
        }
        do {
            let channel = try await bootstrap(group, loops, configuration.limits, tls)
                .bind(host: configuration.host, port: configuration.port).get()
            return GatewayServer(
                group, channel, loops, shared, fixedSettings: configuration.emulator?.fixedSettings ?? [])
        } catch {
            try? await group.shutdownGracefully()
            await shared.accessLog?.stop()
            throw RPCServerError.cannotListen(
                host: configuration.host, port: configuration.port, reason: "\(error)")
        }
    }

    private init(
        _ group: MultiThreadedEventLoopGroup, _ channel: any Channel, _ loops: [NIOLoopBound<LoopState>],
        _ shared: SharedParts, fixedSettings: [String]
    ) {
        (self.group, self.channel, self.loops, self.shared) = (group, channel, loops, shared)
        host = channel.localAddress?.ipAddress ?? ""
        port = channel.localAddress?.port ?? 0
        self.fixedSettings = fixedSettings
    }

    private static func bootstrap(
        _ group: MultiThreadedEventLoopGroup, _ loops: [NIOLoopBound<LoopState>], _ limits: GatewayLimits,
        _ tls: NIOSSLContext?
    ) -> ServerBootstrap {
        let room = ConnectionRoom(max: limits.connectionsMax)
        return ServerBootstrap(group: group)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    // Without a pause after a failed accept, the loop would try again at once, for ever.
                    try channel.pipeline.syncOperations.addHandler(AcceptBackoffHandler())
                }
            }
            .serverChannelOption(.backlog, value: 4_096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.socketOption(.so_keepalive), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            // Small requests of one read are all handled: not thousands.
            .childChannelOption(
                .recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 1_024, initial: 4_096, maximum: 16_384)
            )
            .childChannelOption(
                .writeBufferWaterMark, value: ChannelOptions.Types.WriteBufferWaterMark(low: 64 << 10, high: 256 << 10)
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let state = loops.first(where: { $0.eventLoop === channel.eventLoop })?.value else { return }
                    guard room.take() else { return channel.close(promise: nil) }
                    channel.closeFuture.whenComplete { _ in room.leave() }
                    let address = channel.remoteAddress?.ipAddress ?? "0.0.0.0"
                    guard let peer = state.gate.connected(address) else { return channel.close(promise: nil) }
                    channel.closeFuture.whenComplete { [gate = state.gate] _ in gate.left(peer) }
                    let output = UntakenOutput(state.output, from: address)
                    try channel.pipeline.syncOperations.addHandler(output)
                    if let tls {
                        try channel.pipeline.syncOperations.addHandlers(NIOSSLServerHandler(context: tls), TLSPieces())
                    }
                    try setUp(channel, state, peer, output)
                }
            }
    }

    private static func setUp(
        _ channel: any Channel, _ state: LoopState, _ peer: Peer, _ output: UntakenOutput
    ) throws {
        let limits = state.configuration.limits
        let compression = ResponseCompression(bytesMin: limits.compressedBytesMin)
        let http = HTTPConnection(state, from: peer, compression, output)
        let sockets = SocketUpgrade(state, from: peer, output)
        var decoding = NIOHTTPDecoderLimitConfiguration()
        decoding.maxHeaderFieldSize = limits.headBytesMax
        decoding.maxHeaderListSize = limits.headBytesMax
        decoding.maxHeaderFieldCount = limits.headersMax
        let decoder = ByteToMessageHandler(
            HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: decoding),
            maximumBufferSize: 2 * limits.headBytesMax + decoderBytesMax)
        let others: [any RemovableChannelHandler] = [
            HTTPResponseEncoder(), NIOHTTPResponseHeadersValidator(), compression.handler(),
        ]
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandlers([HeadPulse(http), others[0], decoder])
        for handler in others.dropFirst() { try pipeline.addHandler(handler) }
        try pipeline.addHandler(http)
        http.mayBecomeSocket(by: ProtocolSwitch(sockets.upgrader, decoder, others))
    }

    /// Bytes that the decoder may keep beside heads: it takes all that one read gives, so this is no setting.
    private static let decoderBytesMax = 64 << 10

    /// Records the figures that are read when metrics are requested.
    public func refreshFigures() async {
        var (heldBytes, wires) = (0, 0)
        for loop in loops {
            let figures = try? await loop.eventLoop.submit {
                (held: loop.value.held.count, wires: loop.value.upstream.openWires)
            }.get()
            heldBytes += figures?.held ?? 0
            // Those of all event loops.
            wires = figures?.wires ?? wires
        }
        shared.metrics.show(heldBytes: heldBytes, untakenBytes: shared.untaken.count, wires: wires)
    }

    /// Stops accepting, answers what is under way, sends clients of sockets away; what is not done after `grace` is cut
    /// off.
    public func shutdown(grace: Duration) async {
        try? await channel.close()
        let end = ContinuousClock.now + grace
        // Half of the grace: the last ones need some time too.
        let time = TimeAmount(grace / 2)
        for loop in loops { try? await loop.eventLoop.submit { loop.value.leave(within: time) }.get() }
        for loop in loops {
            while ContinuousClock.now < end {
                guard (try? await loop.eventLoop.submit({ loop.value.isIdle }).get()) == false else { break }
                try? await Task.sleep(for: .milliseconds(10))
            }
        }
        for loop in loops {
            try? await loop.eventLoop.submit {
                loop.value.upstream.close()
                loop.value.join(LoopPeers())
            }.get()
        }
        try? await group.shutdownGracefully()
        await shared.accessLog?.stop()
    }
}
