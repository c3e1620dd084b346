import HatoFetch
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
    private let dispatcher: Dispatcher
    private let dispatching: Task<Void, Never>
    private let upkeep: [Task<Void, Never>]

    /// What the service calls of auth: the methods of its service key there.
    public static let methodsOfAuth: Set<String> = [
        Auth.Follow.method, Auth.Unfollow.method, Auth.Sessions.List.method, Auth.Users.Get.method,
    ]
    /// What the service calls of messages: the methods of its service key there, which also lets it speak as users.
    public static let methodsOfMessages: Set<String> = [
        Messages.Follow.method, Messages.Unfollow.method, Messages.Get.method, Messages.Push.method,
        Messages.Set.method, Messages.Update.method,
    ]

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
        let resolver = SystemHostResolver(limits: configuration.lookUps)
        let addresses = AddressGuard(configuration.addresses, resolver: resolver)
        let webhooks = WebhookChannel(
            addresses, limits: limits, version: configuration.server.version,
            now: configuration.time.now)
        var webpushLimits = WebPushChannel.Limits()
        webpushLimits.connectionsPerHostMax = configuration.delivery.attemptsPerPushServiceMax
        let webpush = WebPushChannel(
            WebPushChannel.Guards(configuration.addresses, resolver: resolver), limits: webpushLimits,
            version: configuration.server.version, now: configuration.time.now)
        let fcm = FCMChannel(version: configuration.server.version, now: configuration.time.now)
        let apns = APNsChannel(version: configuration.server.version, now: configuration.time.now)
        // Before its lease ends and another attempt is made beside it.
        var mailLimits = MailChannel.Limits()
        mailLimits.timeout = min(mailLimits.timeout, configuration.delivery.lease * 3 / 4)
        let mail = MailChannel(limits: mailLimits)
        return try await start(
            configuration, store: store, channels: [webhooks, webpush, fcm, apns, mail], logger: logger)
    }

    /// The same with other ways to reach devices.
    ///
    /// - Throws: the errors of the store; `RPCServerError` when it cannot listen, `TLSFileError` for files of TLS.
    public static func start(
        _ configuration: NotifierConfiguration, store: any Store, channels: [any Channel], logger: Logger
    ) async throws -> NotifierServer {
        var configuration = configuration
        configuration.apps = try await OwnWebPush.adding(to: configuration.apps, store)
        configuration.replyKey = try await ReplyKey.of(store)
        let outbox = try await Outbox.open(store, configuration, metrics: NotifierMetrics(), logger: logger)
        let results = ResultWriter(outbox)
        let providers = try await ProviderDispatcher(outbox, channels: channels, results, logger: logger)
        let service = try NotifierService(configuration, outbox, channels: channels, providers, logger: logger)
        var serving = configuration.server
        serving.methods = Notifier.methods
        serving.health = { await service.health() }
        serving.now = configuration.time.now
        let server = RPCServer(serving, router: service.router, authenticator: service.authenticator, logger: logger)
        let (host, port) = try await server.start()
        let notifier = NotifierServer(service, server, results, host: host, port: port)
        try await service.feeds?.start()
        return notifier
    }

    private init(_ service: NotifierService, _ server: RPCServer, _ results: ResultWriter, host: String, port: Int) {
        self.host = host
        self.port = port
        self.service = service
        self.server = server
        let dispatcher = Dispatcher(service.outbox, channels: service.channels, results, logger: service.logger)
        let sweeper = Sweeper(service.outbox, logger: service.logger)
        let fanOut = FanOut(service.outbox, logger: service.logger)
        self.dispatcher = dispatcher
        // These live as long as the server: `shutdown` ends them and waits.
        dispatching = Task {
            async let others: Void = service.providers.run()
            await dispatcher.run()
            await others
        }
        upkeep = [
            Task { await service.authenticator.run() }, Task { await sweeper.run() },
            Task { await service.accounts?.run() }, Task { await service.effects?.run() },
            Task { await service.withdrawals.run() }, Task { await fanOut.run() },
        ]
    }

    /// What triggers hold in memory.
    var budget: TriggerBudget { service.budget }

    /// Shows what is not counted as it happens: for a scraper that asks.
    public func refreshFigures() async { await service.refreshFigures() }

    /// Stops accepting, finishes what was accepted and what is being attempted, closes the store. Attempts that are not
    /// done after `grace` are cut off; they are made again at the next start.
    public func shutdown(grace: Duration) async {
        let end = ContinuousClock.now + grace
        await service.followers.stop()
        await server.shutdown(grace: grace)
        await service.feeds?.stop()
        for task in upkeep { task.cancel() }
        // A task that waits for an answer of auth gets none any more and ends.
        await service.accounts?.close()
        await service.effects?.close()
        for task in upkeep { await task.value }
        await dispatcher.stop()
        await service.providers.stop()
        let cut = Task { [dispatching] in
            try await Task.sleep(until: end)
            dispatching.cancel()
        }
        await dispatching.value
        cut.cancel()
        for channel in service.channels { await channel.shutdown() }
        await service.auth.close()
        service.store.close()
    }
}
