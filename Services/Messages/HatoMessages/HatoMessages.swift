/// Serves the tree over JSON-RPC.
///
/// A write goes from an event loop straight into the store's queue (`CommitQueue`); the store's one writer plans and
/// commits it; the publisher's one thread (`Publisher`) turns commits into events and sends them before the responses.
/// Reads run on the store's reader threads. State is owned by: the store (the databases, with each snapshot), a session
/// for each connection (its pending writes), and the registry on the publisher's thread (everything that listens or
/// follows).
import HatoFollow
import HatoIdentity
public import HatoModel
import HatoRPC
public import HatoStorage
public import Logging
import Synchronization

/// The messages service: the tree, its listeners and followers, served over JSON-RPC.
public final class MessagesServer: Sendable {
    private let store: any Store
    let parts: ServiceParts
    private let publisher: Publisher
    private let queue: CommitQueue
    private let disconnects: DisconnectRuns
    private let server: RPCServer
    private let configuration: MessagesConfiguration
    private let builds: IndexBuilds
    private let exports: ExportSnapshots
    private let ended = StoreEnd()
    private let followers: AccountFollowers?
    /// Cancelled by `shutdown`.
    private let upkeep = Mutex<[Task<Void, Never>]>([])
    private let logger: Logger

    /// What the service calls of auth: the methods of its service key there.
    public static let methodsOfAuth: Set<String> = [
        Auth.Follow.method, Auth.Unfollow.method, Auth.Users.List.method,
    ]

    /// Takes over `store`: stopping closes it. Throws when the store holds what this version cannot read.
    public init(
        store: any Store, configuration: MessagesConfiguration, authenticator: any Authenticator, logger: Logger
    ) throws {
        self.store = store
        self.configuration = configuration
        configuration.backupFolder?.removeLeftovers()
        self.logger = logger
        var limits = configuration.limits
        limits.responseBytesMax = configuration.server.limits.responseBytesMax
        let parts = try ServiceParts(
            store, limits, SlowOperations(configuration.slowLog, logger: logger, clock: configuration.uptime),
            now: configuration.now)
        self.parts = parts
        let publisher = try Publisher { ListenerRegistry(parts, logger: logger, line: $0) }
        self.publisher = publisher
        queue = try CommitQueue(parts, publisher: publisher)
        disconnects = DisconnectRuns(parts, queue: queue, logger: logger)
        let sessions = ConnectionSessions()
        builds = IndexBuilds(parts, logger: logger)
        var router = RPCRouter()
        WritingMethods(queue: queue, sessions: sessions, parts: parts).add(to: &router)
        let reads = ReadOrder(parts: parts, sessions: sessions, publisher: publisher)
        ReadingMethods(parts: parts, reads: reads).add(to: &router)
        ListeningMethods(parts: parts, reads: reads).add(to: &router)
        DisconnectMethods(parts: parts, queue: queue, sessions: sessions, runs: disconnects).add(to: &router)
        DatabaseMethods(parts, queue: queue, reads: reads, builds: builds).add(to: &router)
        VerifyMethods(parts: parts, reads: reads).add(to: &router)
        exports = ExportSnapshots(limits: configuration.limits)
        MovingMethods(
            parts: parts, queue: queue, reads: reads, exports: exports,
            backupFolder: configuration.backupFolder
        ).add(to: &router)
        let followers = try configuration.auth.map { [queue] in try AccountFollowers($0, parts, queue, logger) }
        self.followers = followers
        var server = configuration.server
        server.methods = Messages.methods
        server.health = { [keys = configuration.keys, ended] in
            var health = Self.health(of: store, hasEnded: ended.hasEnded, keys: keys())
            health.add(followers?.refusals, as: "accounts")
            if let profiles = followers?.profiles { health.add(profiles, as: "profiles") }
            return health
        }
        server.metrics = configuration.metricsText
        self.server = RPCServer(server, router: router, authenticator: authenticator, logger: logger)
    }

    /// Ready when writes can be made durable and tokens verified.
    private static func health(
        of store: any Store, hasEnded: Bool, keys: ServiceAuthenticator.Health
    ) -> RPCHealth {
        var health = RPCHealth(.ready, checks: ["store": "open", "keys": "ready"])
        health.checks["waitingWrites"] = .number(store.statistics["store.waiting_writes"] ?? 0)
        if case .degraded(let problem) = keys {
            health.status = .degraded
            health.checks["keys"] = .string(problem)
        }
        if hasEnded {
            // Nothing can be served any more: the supervisor must start the service again.
            health.status = .stopping
            health.checks["store"] = "closed; the log says why"
        }
        return health
    }

    /// Makes the first database in a new store, writes what connections of the former run have left, then listens;
    /// returns the address it got.
    ///
    /// - Throws: the errors of the store; `RPCServerError` when it cannot listen, `TLSFileError` for files of TLS.
    public func start() async throws -> (host: String, port: Int) {
        let (queue, publisher) = (queue, publisher)
        store.observeCommits { group in
            queue.groupBecameDurable(group)
            publisher.groupBecameDurable(group)
        } ended: { [logger, ended] error in
            ended.note()
            if case .closed(cause: nil) = error { return }
            logger.critical("the store has failed", metadata: ["reason": "\(error)"])
        }
        if store.version == 0 { try await makeFirstDatabase() }
        try await disconnects.finishFormerRun()
        for name in parts.catalogue.newest.byName.keys { builds.resume(name) }
        let address = try await server.start()
        upkeep.withLock { upkeep in
            upkeep = [Task { [self] in await keepUp() }]
            if let followers { upkeep.append(Task { await followers.run() }) }
        }
        return address
    }

    private func keepUp() async {
        while (try? await Task.sleep(for: .seconds(parts.limits.upkeepSeconds))) != nil { await keepUpOnce() }
    }

    /// Once a minute by default: sends followers their positions, and deletes old change records and unused exports.
    func keepUpOnce() async {
        // First of all: what a follower keeps as its position is then younger than anything that is forgotten by its
        // age.
        publisher.run { $0.follows.notifySilentFollowers() }
        parts.slow.reportLeftOut()
        let (store, exports, now, logger) = (store, exports, parts.now, logger)
        let retention = ChangeRetention(parts.limits)
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            store.submitRead {
                exports.expire(now: now())
                do {
                    if let cut = try retention.cut(store, now: now()) { try store.compactCommits(through: cut) }
                } catch {
                    logger.error("old changes could not be removed", metadata: ["error": "\(error)"])
                }
                done.resume()
            }
        }
    }

    /// Shows what is not counted as it happens: for a scraper that asks.
    public func refreshFigures() async {
        var figures = MessagesMetrics.Figures()
        figures.databases = parts.catalogue.newest.byName.count
        figures.indexBuilds = builds.runningCount
        figures.exports = exports.count
        figures.areKeysReady = if case .ready = configuration.keys() { true } else { false }
        parts.metrics.show(figures)
        await publisher.showFigures()
    }

    private func makeFirstDatabase() async throws {
        let administration = DatabaseAdministration(parts)
        let rules = try administration.compile(configuration.firstRules)
        _ = try await store.write { try administration.create(.default, rules, in: $0) }
    }

    /// Stops accepting, responds to what was accepted, writes what the connections have left, closes the store.
    public func shutdown(grace: Duration) async {
        let tasks = upkeep.withLock { $0 }
        for task in tasks { task.cancel() }
        // A task that waits for an answer of auth gets none any more and ends.
        await followers?.close()
        for task in tasks { await task.value }
        await server.shutdown(grace: grace)
        await disconnects.finish()
        publisher.close()
        let store = store
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            let close: @Sendable () -> Void = {
                store.close()
                done.resume()
            }
            // Closing waits for the writer, which no thread of the cooperative pool may do.
            do { try startThread(close) } catch { close() }
        }
    }
}

/// Whether the store has ended.
private final class StoreEnd: Sendable {
    private let flag = Atomic<Bool>(false)

    var hasEnded: Bool { flag.load(ordering: .acquiring) }

    func note() { flag.store(true, ordering: .releasing) }
}
