import HatoModel
import HatoPush
import Synchronization

/// Whether the push services of browsers are called: a circuit breaker for each app and service, as each app has one at
/// a provider. Pure: its driver says what time it is, in milliseconds.
///
/// An endpoint is what a user gave: a breaker concerns the subscriptions at its host and no others, and is shown when
/// several users have theirs there.
struct PushServices: Sendable {
    private struct Service {
        var breaker = CircuitBreaker()
        /// Some of the users whose attempts failed since the last one that did not.
        var users: Set<String> = []
        /// Whether they are so many that it is no server of one user.
        var isOfMany: Bool { users.count >= PushServices.usersMax }
    }

    /// Services that fail, which are remembered; anyone can name one.
    private static let servicesMax = 1_024
    /// So many users are a sign that the service fails, and not a server of one user.
    private static let usersMax = 5

    /// Those that failed last, by the hosts of their `AttemptGroup`.
    private var services: [String: Service] = [:]
    private var now: Int64 = 0
    /// How often a service was paused, or went on.
    private(set) var changes = 0

    /// Whether an attempt may begin at a host while `count` are under way there.
    func admits(_ host: String, beside count: Int) -> Bool {
        guard let breaker = services[host]?.breaker, breaker.open != nil else { return true }
        return breaker.room(beside: count, max: .max, at: now) > 0
    }

    /// When a pause ends that has not; nil: none has to.
    var nextProbe: Int64? { services.values.compactMap { $0.breaker.open?.until }.filter { $0 > now }.min() }

    mutating func timePassed(at now: Int64) { self.now = now }

    /// `random` is at least 0 and below 1.
    mutating func attemptEnded(
        _ outcome: DeliveryOutcome, of group: AttemptGroup, _ times: CircuitBreaker.Times, random: Double
    ) {
        now = max(now, times.ended)
        guard AttemptGroup.isPushService(group.host) else { return }
        var service = services[group.host] ?? Service()
        let (wasOpen, wasOfMany) = (service.breaker.open != nil, service.isOfMany)
        service.breaker.attemptEnded(outcome, times, random: random)
        if case .failed = outcome, !service.isOfMany { service.users.insert(group.uid) }
        if !service.breaker.isFresh, services[group.host] == nil { makeSpace() }
        services[group.host] = service.breaker.isFresh ? nil : service
        let isOpen = service.breaker.open != nil
        if wasOpen != isOpen || isOpen && wasOfMany != service.isOfMany { changes += 1 }
    }

    private mutating func makeSpace() {
        guard services.count >= Self.servicesMax else { return }
        services = services.filter { $0.value.breaker.open != nil }
        if services.count >= Self.servicesMax { services = [:] }
        changes += 1
    }

    /// Calls the services of an app again at once; nil: those of all apps.
    mutating func resume(_ app: String?) {
        services = services.filter { host, _ in app.map { AttemptGroup.app(ofPushService: host) != $0 } ?? false }
        changes += 1
    }

    /// A service that is not called.
    struct Paused: Sendable, Hashable {
        var app: String
        var host: String
        /// In milliseconds since 1970.
        var since: Int64
        /// Whether several users have their subscriptions there.
        var isOfMany: Bool
    }

    /// Those that are not called, the longest first.
    var paused: [Paused] {
        services.compactMap { host, service in
            guard let open = service.breaker.open, let app = AttemptGroup.app(ofPushService: host) else { return nil }
            return Paused(
                app: app, host: AttemptGroup.address(ofPushService: host), since: open.since,
                isOfMany: service.isOfMany)
        }.sorted { ($0.since, $0.host) < ($1.since, $1.host) }
    }
}

/// What operators see of push services, and let go on.
final class PausedPushServices: Sendable {
    private struct State {
        var paused: [PushServices.Paused] = []
        /// Apps that are to go on; nil: all.
        var resumed: [String?] = []
        var wake: @Sendable () -> Void = {}
    }

    private let state = Mutex(State())

    /// Those that are not called, the longest first.
    var paused: [PushServices.Paused] { state.withLock { $0.paused } }

    func show(_ paused: [PushServices.Paused]) { state.withLock { $0.paused = paused } }

    /// - Parameter wake: called when services are to be called again.
    func onResume(_ wake: @escaping @Sendable () -> Void) { state.withLock { $0.wake = wake } }

    /// Has the services of an app called again at once; nil: those of all apps.
    func resume(_ app: String?) {
        let wake = state.withLock { state in
            // More than a few are as good as all.
            state.resumed = state.resumed.count < 16 ? state.resumed + [app] : [nil]
            return state.wake
        }
        wake()
    }

    func takeResumed() -> [String?] {
        state.withLock { state in
            defer { state.resumed = [] }
            return state.resumed
        }
    }

    /// What is known of an app at push services, with the service that is not called.
    func shown(_ provider: Notifier.AppProvider, of app: String) -> Notifier.AppProvider {
        guard provider.problem == nil, let paused = paused.first(where: { $0.app == app && $0.isOfMany }) else {
            return provider
        }
        var shown = provider
        // Without the words of a receiver that a user named.
        shown.problem =
            "the push service \(paused.host) failed 20 times in a row; deliveries wait, one is tried after each pause"
        shown.since = Int(paused.since)
        return shown
    }
}
