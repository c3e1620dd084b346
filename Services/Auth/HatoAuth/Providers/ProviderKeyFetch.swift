/// Decides whether an unknown key id justifies a fetch of a provider's keys: at most one a minute, and one at a time,
/// so that callers without credentials cannot use auth to burden a provider.
struct ProviderKeyFetch: Sendable, Hashable {
    enum Decision: Sendable, Hashable {
        case fetch
        /// Wait for the fetch that is in progress.
        case wait
        /// The keys came a moment ago, without this one.
        case refuse
        /// The last fetch failed a moment ago.
        case unavailable(retryAfterMilliseconds: Int64)
    }

    /// Milliseconds from the beginning of one fetch to that of the next.
    static let pause: Int64 = 60_000

    private enum Outcome { case none, running, succeeded, failed }

    private var outcome = Outcome.none
    private var startedAt: Int64 = 0

    /// A token names a key that is not here. `now` in milliseconds, as all times here.
    func keyWasMissed(now: Int64) -> Decision {
        let age = now - startedAt
        // A clock that was set back must not stop fetching.
        let isRecent = (0..<Self.pause).contains(age)
        switch outcome {
        case .running: return .wait
        case .succeeded where isRecent: return .refuse
        case .failed where isRecent: return .unavailable(retryAfterMilliseconds: Self.pause - age)
        case .none, .succeeded, .failed: return .fetch
        }
    }

    mutating func started(now: Int64) {
        startedAt = now
        outcome = .running
    }

    mutating func ended(isSuccess: Bool) { outcome = isSuccess ? .succeeded : .failed }
}
