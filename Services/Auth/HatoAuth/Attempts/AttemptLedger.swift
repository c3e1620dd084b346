import HatoRPC
import Synchronization

/// Counts attempts by address and by account, in memory and bounded; a restart clears the counts.
final class AttemptLedger: Sendable {
    /// The kinds of attempts by address, each with its own limit.
    enum Kind: Hashable {
        case signIn, signUp, anonymousSignUp, refresh
    }

    private struct Origin: Hashable {
        var kind: Kind
        var address: String
    }

    private struct State {
        var buckets = RecentEntries<Origin, TokenBucket>()
        var accounts = RecentEntries<String, FailureCount>()
    }

    private let policy: AttemptPolicy
    private let limitsLoopback: Bool
    private let now: @Sendable () -> Int64
    private let state = Mutex(State())

    init(_ configuration: AuthConfiguration, now: @escaping @Sendable () -> Int64) {
        policy = AttemptPolicy(limits: configuration.limits)
        limitsLoopback = configuration.limitsLoopback
        self.now = now
    }

    /// Counts one attempt of this kind from an address. Throws `AuthError.tooManyAttempts`.
    func admit(_ kind: Kind, from address: ClientAddress?) throws {
        let limit = limit(of: kind)
        guard limit.burst > 0, let address, limitsLoopback || !address.isLoopback else { return }
        let now = now()
        let origin = Origin(kind: kind, address: address.network)
        let wait: Int64? = state.withLock { state in
            var bucket = state.buckets[origin] ?? TokenBucket(full: limit, now: now)
            let wait = bucket.take(limit, now: now)
            _ = state.buckets.evict(for: origin, countMax: policy.limits.attemptEntriesMax)
            state.buckets.set(origin, bucket)
            return wait
        }
        if let wait { throw AuthError.tooManyAttempts(retryAfterMilliseconds: wait) }
    }

    /// Begins to check a password for `account`, which need not exist. Throws `AuthError.tooManyAttempts`; if it does
    /// not throw, the caller must call `end` once.
    func begin(account: String) throws {
        let now = now()
        let wait: Int64? = state.withLock { state in
            var count = state.accounts[account] ?? FailureCount()
            if let wait = policy.wait(count, now: now) { return wait }
            // Every entry is of a check in progress.
            guard state.accounts.evict(for: account, countMax: policy.limits.attemptEntriesMax) else { return 1000 }
            count.pending += 1
            state.accounts.set(account, count, isEvictable: false)
            return nil
        }
        if let wait { throw AuthError.tooManyAttempts(retryAfterMilliseconds: wait) }
    }

    /// - Parameter isRight: nil when the password was not checked.
    func end(account: String, isRight: Bool?) {
        let now = now()
        state.withLock { state in
            guard var count = state.accounts[account] else { return }
            count.pending = max(0, count.pending - 1)
            switch isRight {
            case true?: count.failures = 0
            case false?: count = policy.failed(count, now: now)
            case nil: break
            }
            let isOver = count.failures == 0 && count.pending == 0
            state.accounts.set(account, isOver ? nil : count, isEvictable: count.pending == 0)
        }
    }

    private func limit(of kind: Kind) -> RateLimit {
        switch kind {
        case .signIn: policy.limits.signInsPerAddress
        case .signUp: policy.limits.signUpsPerAddress
        case .anonymousSignUp: policy.limits.anonymousSignUpsPerAddress
        case .refresh: policy.limits.refreshesPerAddress
        }
    }
}
