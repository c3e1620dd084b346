import HatoFollow
import HatoIdentity
import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import Logging
import Synchronization

/// Gets every notification to its devices at least once: what the methods of the model do.
///
/// Holds no state of its own: what lasts is in the store, what is in flight belongs to the actors.
final class NotifierService: Sendable {
    let configuration: NotifierConfiguration
    let store: any Store
    let logger: Logger
    /// Log entries that any client can cause, throttled.
    let notices: ThrottledNotices
    let outbox: Outbox
    let channels: [any Channel]
    let apps: AppRegistry
    /// Delivers to the providers.
    let providers: ProviderDispatcher
    /// Nil without a key for it: then there are no triggers.
    let messages: MessagesClient?
    let feeds: TriggerFeeds?
    /// What triggers hold in memory.
    let budget: TriggerBudget
    let followers: EventFollowers<OutboxEvent>
    let checks: RequestChecks
    let withdrawals: Withdrawals
    /// Why the store has ended; nil while it is open.
    private let storeEnd = Mutex<String?>(nil)
    /// When it was looked last how long deliveries wait.
    private let oldestLookAt = Mutex<Int64>(0)
    /// Milliseconds from one such look to the next.
    private static let oldestPause: Int64 = 5_000

    /// Authenticates callers with the keys of auth, which it fetches with `auth`.
    let authenticator: ServiceAuthenticator
    let auth: RPCClient
    /// Nil without a key for auth: then nothing is known of users and sessions that end.
    let accounts: FollowedAccounts?
    /// Nil without keys for auth and messages: then no action has an effect.
    let effects: EffectRunner?
    let responses = ResponseMetrics()
    let categories = CategoryList()
    let recipientScans = RecipientScans()

    /// Throws the errors of the store.
    init(
        _ configuration: NotifierConfiguration, _ outbox: Outbox, channels: [any Channel],
        _ providers: ProviderDispatcher, logger: Logger
    ) throws {
        self.configuration = configuration
        let auth = RPCClient(configuration.auth)
        self.auth = auth
        authenticator = ServiceAuthenticator(
            configuration: configuration.identity, administratorKeys: configuration.administratorKeys,
            now: configuration.time.now, fetchKeys: { try await auth.call(Auth.Keys()).keys })
        accounts = try configuration.authKey.map { [authenticator] key in
            try FollowedAccounts(configuration.auth.with(credential: key), outbox, authenticator, logger: logger)
        }
        self.outbox = outbox
        self.channels = channels
        self.providers = providers
        apps = AppRegistry(configuration.apps, channels: channels, logger: logger)
        self.logger = logger
        notices = ThrottledNotices(logger)
        store = outbox.store
        messages = configuration.messagesKey.map { MessagesClient(configuration.messages.with(credential: $0)) }
        budget = TriggerBudget(configuration.limits)
        feeds = messages.map { [budget] in TriggerFeeds($0, outbox, budget, logger: logger) }
        followers = EventFollowers(outbox.store, followersMax: configuration.limits.followersMax)
        checks = RequestChecks(limits: configuration.limits)
        effects = EffectRunner(
            configuration, outbox, accounts?.current, EffectReports(metrics: responses, notices: notices))
        withdrawals = Withdrawals(outbox, logger: logger)
        configuration.backupFolder?.removeLeftovers()
        store.observeCommits({ _ in }, ended: { [weak self] error in self?.storeEnd.withLock { $0 = "\(error)" } })
    }

    /// The methods of the service, all that `Notifier.methods` declares.
    var router: RPCRouter {
        var router = RPCRouter()
        let methods: [any NotifierMethods] = [
            DeviceMethods(service: self), TriggerMethods(service: self), SendMethods(service: self),
            SendToDeviceMethods(service: self), AppMethods(service: self), TypeMethods(service: self),
            PreferenceMethods(service: self),
            CategoryMethods(service: self), ResponseMethods(service: self), QuickReplyMethods(service: self),
            BadgeMethods(service: self),
            TopicMethods(service: self), OutboxMethods(service: self),
        ]
        for group in methods { group.add(to: &router) }
        return router
    }

    /// Shows what is not counted as it happens.
    func refreshFigures() async {
        var figures = NotifierMetrics.Figures()
        figures.deadLetters = outbox.deadCount
        figures.followers = followers.count
        let statuses = (try? await feeds?.statuses()) ?? []
        figures.feeds = statuses.count
        figures.feedsBroken = statuses.count { !$0.following }
        figures.areKeysReady = if case .ready = authenticator.health { true } else { false }
        figures.now = outbox.time.now()
        if mayLookForOldest(at: figures.now) {
            figures.oldest = try? await store.read { try OldestWaiting(in: $0) }
        }
        outbox.metrics.show(figures)
        let platforms = apps.apps.apps.map { (app: $0.key, platforms: $0.value.platforms) }
        outbox.metrics.providers.show(await providerStatuses.all(of: platforms))
        if let count = try? await store.read({ try $0.count(.effect, upTo: ResponseMetrics.waitingMax) }) {
            responses.effectsWait(count)
        }
    }

    /// Whatever asks for figures, rows that went are passed over every few seconds at most.
    private func mayLookForOldest(at now: Int64) -> Bool {
        oldestLookAt.withLock { last in
            guard now < last || now - last >= Self.oldestPause else { return false }
            last = now
            return true
        }
    }

    /// Ready when tokens can be verified and every feed with triggers is followed; not up any more once the store has
    /// ended: the supervisor must start the service anew.
    func health() async -> RPCHealth {
        if let end = storeEnd.withLock({ $0 }) { return RPCHealth(.stopping, checks: ["store": .string(end)]) }
        var checks: JSONObject = ["pending": .number(Double(outbox.pending))]
        if outbox.unreadableCount > 0 { checks["unreadable"] = .number(Double(outbox.unreadableCount)) }
        var isReady = true
        switch authenticator.health {
        case .ready: checks["keys"] = "ready"
        case .degraded(let why):
            checks["keys"] = .string(why)
            isReady = false
        }
        var shown = JSONObject()
        do {
            for feed in try await feeds?.statuses() ?? [] {
                shown[feed.database] = feed.shown
                if !feed.following { isReady = false }
            }
        } catch {
            checks["store"] = .string("\(error)")
            isReady = false
        }
        checks["feeds"] = .object(shown)
        let providers = await providerStatuses.entries.filter { $0.isWaiting || $0.provider.problem != nil }
        if !providers.isEmpty {
            var shown = JSONObject()
            for entry in providers { shown[entry.name] = .string(entry.shown) }
            checks["providers"] = .object(shown)
            if providers.contains(where: \.isWaiting) { isReady = false }
        }
        if feeds == nil, await (try? outbox.triggers().isEmpty) == false {
            checks["triggers"] = "setting outgoing-key-file is missing: no trigger fires"
            isReady = false
        }
        if let problem = await effectProblem() {
            checks["effects"] = .string(problem)
            isReady = false
        }
        var health = RPCHealth(isReady ? .ready : .degraded, checks: checks)
        health.add(accounts?.follower, as: "accounts")
        return health
    }
}

extension NotifierService {
    /// What deliveries have shown of providers.
    var providerStatuses: ProviderStatuses {
        get async { await ProviderStatuses(providers, outbox.signatures) }
    }

    /// Why effects of actions wait, as far as an operator can change it.
    private func effectProblem() async -> String? {
        guard let effects else {
            let isWaiting = (try? await store.read { try $0.count(.effect, upTo: 1) > 0 }) ?? false
            return isWaiting ? "setting outgoing-key-file is missing: effects of actions wait" : nil
        }
        return await effects.keyProblem.map { "auth or messages refuses the notifier's key: \($0)" }
    }
}

extension Notifier.CursorStatus {
    fileprivate var shown: JSONValue {
        var shown: JSONObject = [
            "status": .string(following ? "following" : error ?? "starting"), "version": .number(Double(version)),
        ]
        if gaps > 0 {
            shown["gaps"] = .number(Double(gaps))
            shown["gap"] = .string("changes were no longer kept when they were asked for; following went on after them")
        }
        return .object(shown)
    }
}
