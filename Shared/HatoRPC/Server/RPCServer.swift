public import HatoModel
public import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// Serves a router over TCP (protocol §1, §2).
///
/// Every event loop has a `LoopHub`, every connection one `ConnectionHandler`; no actor and no task stands between a
/// line and an immediate method.
public final class RPCServer: Sendable {
    private struct Running {
        var group: MultiThreadedEventLoopGroup
        var channel: any Channel
        var hubs: [LoopHub]
    }

    private let configuration: RPCServerConfiguration
    private let router: RPCRouter
    private let authenticator: any Authenticator
    private let logger: Logger
    private let running = Mutex<Running?>(nil)
    private let isStopping = Atomic(false)

    public init(
        _ configuration: RPCServerConfiguration, router: RPCRouter, authenticator: any Authenticator, logger: Logger
    ) {
        self.configuration = configuration
        self.router = router
        self.authenticator = authenticator
        self.logger = logger
    }

    /// Listens; returns the address it got. Throws `RPCServerError`, or `TLSFileError` for files of TLS. Called once.
    public func start() async throws -> (host: String, port: Int) {
        var router = router
        let recent = RecentHealth(configuration.health)
        router.addServiceMethods(configuration) { [weak self, ask = configuration.health] caller in
            var health = caller.isAdministrator ? await ask() : await recent.health()
            // One that is stopping must get no more work, also when it is healthy.
            if self?.isStopping.load(ordering: .acquiring) ?? true { health.status = .stopping }
            return health
        } counts: { [weak self] in
            await self?.counts() ?? LoopCounts()
        }
        try router.verify(declared: configuration.methods)
        let tls = try configuration.tls.map { try ServerTLS.context($0) }
        let state = ServerState(
            configuration, methods: router.methods, authenticator: authenticator, logger: logger)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: max(1, configuration.loops))
        let hubs = Array(group.makeIterator()).map { LoopHub(loop: $0, server: state) }
        do {
            let channel = try await bootstrap(group, hubs, tls, state)
                .bind(host: configuration.host, port: configuration.port).get()
            running.withLock { $0 = Running(group: group, channel: channel, hubs: hubs) }
            authenticator.onEndings { [weak self] in self?.endIdentities() }
            return (channel.localAddress?.ipAddress ?? configuration.host, channel.localAddress?.port ?? 0)
        } catch {
            try? await group.shutdownGracefully()
            throw RPCServerError.cannotListen(
                host: configuration.host, port: configuration.port, reason: ConnectionProblem.words(error))
        }
    }

    private func bootstrap(
        _ group: MultiThreadedEventLoopGroup, _ hubs: [LoopHub], _ tls: NIOSSLContext?, _ state: ServerState
    ) -> ServerBootstrap {
        let limits = configuration.limits
        let acceptedMax = ConnectionAdmission.Limits(limits).acceptedMax
        let bootstrap = ServerBootstrap(group: group)
            // As many as Linux queues for one socket (somaxconn): beyond, a client tries again after seconds.
            .serverChannelOption(.backlog, value: 4_096)
            .serverChannelOption(.maxMessagesPerRead, value: 64)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers(
                        AcceptFailures.backoff(), AcceptFailures(state.notices), AcceptLimit(max: acceptedMax))
                }
            }
            .childChannelOption(.socketOption(.so_keepalive), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            // What one read brings is held without asking: not several.
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(
                .recvAllocator, value: ReadBufferAllocator(maximum: LineIntake.readBytesMax, state.budget)
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let hub = hubs.first(where: { $0.loop === channel.eventLoop }) else { return }
                    try Self.setUp(channel, hub, tls)
                }
            }
            .childChannelOption(.socketOption(.so_rcvbuf), value: SocketInput.option(limits))
        let options = KeepAlive.options(limits) + [SocketOutput.option(unsentBytesMax: limits.socketUnsentBytesMax)]
        return options.reduce(bootstrap) { $0.childChannelOption(.tcpOption($1.option), value: $1.value) }
    }

    private static func setUp(_ channel: any Channel, _ hub: LoopHub, _ tls: NIOSSLContext?) throws {
        let server = hub.server
        let address = channel.remoteAddress?.ipAddress ?? "unknown"
        let connection = RPCConnection(id: server.newConnectionID(), remoteAddress: address, hub: hub)
        if let refusal = server.admission.accepted(connection) {
            // Words in the clear would only confuse a peer that waits for TLS.
            guard tls == nil else { return channel.close(promise: nil) }
            return try channel.pipeline.syncOperations.addHandler(RefusedConnection(refusal))
        }
        do {
            if let tls {
                try channel.pipeline.syncOperations.addHandlers(
                    NIOSSLServerHandler(context: tls), TLSPieces(), HandshakeWatcher())
            }
            try channel.pipeline.syncOperations.addHandler(
                ConnectionHandler(connection: connection, hub: hub, usesTLS: tls != nil))
        } catch {
            server.admission.closed(connection)
            throw error
        }
    }

    /// Stops accepting, responds to what was accepted, closes; what is not done after `grace` is cut off.
    public func shutdown(grace: Duration) async {
        let taken = running.withLock { running in
            defer { running = nil }
            return running
        }
        guard let taken else { return }
        isStopping.store(true, ordering: .releasing)
        try? await taken.channel.close()
        let limit = TimeAmount(grace)
        let finished = taken.hubs.map { hub in hub.loop.flatSubmit { hub.finishAll(within: limit) } }
        for future in finished { try? await future.get() }
        for hub in taken.hubs { hub.stop() }
        try? await taken.group.shutdownGracefully()
    }

    /// Ends the listeners whose identity has ended before its token, on all connections.
    private func endIdentities() {
        for hub in running.withLock({ $0?.hubs ?? [] }) { hub.endIdentities() }
    }

    private func counts() async -> LoopCounts {
        let hubs = running.withLock { $0?.hubs ?? [] }
        var all = LoopCounts()
        for hub in hubs {
            all = all + ((try? await hub.loop.submit { hub.counts }.get()) ?? LoopCounts())
        }
        all.heldBytes = hubs.first?.server.budget.usedBytes ?? 0
        return all
    }
}
