import Synchronization

/// The health that callers without administrator access get: at most a second old, so that a flood of requests costs no
/// more than one a second. Any thread calls.
final class RecentHealth: Sendable {
    private struct State {
        var health: RPCHealth?
        var since: ContinuousClock.Instant?
    }

    private let ask: @Sendable () async -> RPCHealth
    private let now: @Sendable () -> ContinuousClock.Instant
    private let state = Mutex(State())

    private static let ageMax = Duration.seconds(1)

    /// - Parameter ask: finds out the health.
    init(
        now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now },
        _ ask: @escaping @Sendable () async -> RPCHealth
    ) {
        self.ask = ask
        self.now = now
    }

    /// The newest known health; the first caller after a second finds out the next one, the others do not wait for it.
    func health() async -> RPCHealth {
        let now = now()
        let recent = state.withLock { state -> RPCHealth? in
            guard let since = state.since, now - since < Self.ageMax else {
                state.since = now
                return nil
            }
            return state.health
        }
        if let recent { return recent }
        let health = await ask()
        state.withLock { $0.health = health }
        return health
    }
}
