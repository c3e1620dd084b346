import HatoFollow
import HatoIdentity
import HatoModel
public import HatoPush
import HatoRPC
public import HatoStorage
public import Logging

/// The notifier while it listens: its server, and what it does by itself.
public final class NotifierServer: Sendable {
    /// The address it listens on.
    public let host: String
    /// The port it listens on.
    public let port: Int
    private let service: NotifierService
    private let server: RPCServer
    private let auth: RPCClient
    private let authenticator: ServiceAuthenticator
    private let dispatcher: Dispatcher
    private let dispatching: Task<Void, Never>
    private let upkeep: [Task<Void, Never>]

    /// Takes the outbox of `store` up where it was left, listens, then follows the feeds and delivers what waits. The
    /// server closes the store when it is shut down.
    ///
    /// - Throws: the errors of the store; `RPCServerError` when it cannot listen, `TLSFileError` for files of TLS.
    public static func start(
        _ configuration: NotifierConfiguration, store: any Store, logger: Logger
    ) async throws -> NotifierServer {
        var limits = configuration.webhooks
        // An attempt that has begun never waits for a connection of another.
        limits.connectionsPerHostMax = max(limits.connectionsPerHostMax, configuration.delivery.attemptsPerHostMax)
        let addresses = AddressGuard(
            configuration.addresses, resolver: SystemHostResolver(limits: configuration.lookUps))
        let webhooks = WebhookChannel(
            addresses, limits: limits, version: configuration.server.version,
            now: configuration.time.now)
        return try await start(configuration, store: store, channels: [webhooks], logger: logger)
    }

    /// The same with other ways to reach devices.
    ///
    /// - Throws: the errors of the store; `RPCServerError` when it cannot listen, `TLSFileError` for files of TLS.
    public static func start(
        _ configuration: NotifierConfiguration, store: any Store, channels: [any Channel], logger: Logger
    ) async throws -> NotifierServer {
        let outbox = try await Outbox.open(store, configuration, metrics: NotifierMetrics(), logger: logger)
        let service = NotifierService(configuration, outbox, channels: channels, logger: logger)
        let auth = RPCClient(configuration.auth)
        let authenticator = ServiceAuthenticator(
            configuration: configuration.identity, administratorKeys: configuration.administratorKeys,
            now: configuration.time.now, fetchKeys: { try await auth.call(Auth.Keys()).keys })
        var serving = configuration.server
        serving.methods = Notifier.methods
        serving.health = { await service.health(authenticator) }
        serving.now = configuration.time.now
        let server = RPCServer(serving, router: service.router, authenticator: authenticator, logger: logger)
        let (host, port) = try await server.start()
        let notifier = NotifierServer(
            Parts(service: service, server: server, auth: auth, authenticator: authenticator), host: host, port: port)
        try await service.feeds?.start()
        return notifier
    }

    private struct Parts {
        var service: NotifierService
        var server: RPCServer
        var auth: RPCClient
        var authenticator: ServiceAuthenticator
    }

    private init(_ parts: Parts, host: String, port: Int) {
        self.host = host
        self.port = port
        service = parts.service
        server = parts.server
        auth = parts.auth
        authenticator = parts.authenticator
        let dispatcher = Dispatcher(service.outbox, channels: service.channels, logger: service.logger)
        let sweeper = Sweeper(service.outbox, logger: service.logger)
        self.dispatcher = dispatcher
        // These live as long as the server: `shutdown` ends them and waits.
        dispatching = Task { await dispatcher.run() }
        upkeep = [
            Task { [authenticator = parts.authenticator] in await authenticator.run() }, Task { await sweeper.run() },
        ]
    }

    /// What triggers hold in memory.
    var budget: TriggerBudget { service.budget }

    /// Shows what is not counted as it happens: for a scraper that asks.
    public func refreshFigures() async { await service.refreshFigures(authenticator) }

    /// Stops accepting, finishes what was accepted and what is being attempted, closes the store. Attempts that are not
    /// done after `grace` are cut off; they are made again at the next start.
    public func shutdown(grace: Duration) async {
        let end = ContinuousClock.now + grace
        await service.followers.stop()
        await server.shutdown(grace: grace)
        await service.feeds?.stop()
        for task in upkeep { task.cancel() }
        for task in upkeep { await task.value }
        await dispatcher.stop()
        let cut = Task { [dispatching] in
            try await Task.sleep(until: end)
            dispatching.cancel()
        }
        await dispatching.value
        cut.cancel()
        for channel in service.channels { await channel.shutdown() }
        await auth.close()
        service.store.close()
    }
}
