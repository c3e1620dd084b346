/// Decides whether an unknown key id is worth asking auth again: strangers must not be able to make us ask without end.
struct KeyFetchStateMachine {
    enum Decision: Hashable {
        case fetch
        /// The keys are fresh: the key does not exist.
        case refuse
        /// Asking failed a moment ago.
        case unavailable
    }

    private enum Outcome { case none, running, succeeded, failed }

    private var outcome = Outcome.none
    private var startedAt: Int64 = 0

    /// Times in milliseconds.
    func keyWasMissed(now: Int64, _ configuration: IdentityConfiguration) -> Decision {
        let age = now - startedAt
        // A clock that went back must not stop fetching.
        return switch outcome {
        case .none, .running: .fetch
        case .succeeded: (0..<configuration.refetchMillisecondsMin).contains(age) ? .refuse : .fetch
        case .failed: (0..<configuration.retryMillisecondsMin).contains(age) ? .unavailable : .fetch
        }
    }

    mutating func fetchStarted(now: Int64) {
        startedAt = now
        outcome = .running
    }

    mutating func fetchEnded(isSuccess: Bool) { outcome = isSuccess ? .succeeded : .failed }
}
