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
        var buckets: [Origin: TokenBucket] = [:]
        var accounts: [String: FailureCount] = [:]
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
            if state.buckets[origin] == nil { makeRoom(for: kind, in: &state, now: now) }
            return state.buckets[origin, default: TokenBucket(full: limit, now: now)].take(limit, now: now)
        }
        if let wait { throw AuthError.tooManyAttempts(retryAfterMilliseconds: wait) }
    }

    /// Begins to check a password for `account`, which need not exist. Throws `AuthError.tooManyAttempts`; if it does
    /// not throw, the caller must call `end` once.
    func begin(account: String) throws {
        let now = now()
        let wait: Int64? = state.withLock { state in
            if state.accounts[account] == nil { makeRoomForAccount(in: &state, now: now) }
            var count = state.accounts[account] ?? FailureCount()
            if let wait = policy.wait(count, now: now) { return wait }
            count.pending += 1
            state.accounts[account] = count
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
            state.accounts[account] = count.failures == 0 && count.pending == 0 ? nil : count
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

    /// At the limit, evicts entries without effect; if there are none, any entry.
    private func makeRoom(for kind: Kind, in state: inout State, now: Int64) {
        let countMax = policy.limits.attemptEntriesMax
        guard state.buckets.count >= countMax else { return }
        state.buckets = state.buckets.filter { !$0.value.isFull(limit(of: $0.key.kind), now: now) }
        while state.buckets.count >= countMax, let any = state.buckets.keys.first { state.buckets[any] = nil }
    }

    private func makeRoomForAccount(in state: inout State, now: Int64) {
        let countMax = policy.limits.attemptEntriesMax
        guard state.accounts.count >= countMax else { return }
        state.accounts = state.accounts.filter { $0.value.pending > 0 || !policy.isForgotten($0.value, now: now) }
        while state.accounts.count >= countMax, let any = state.accounts.keys.first { state.accounts[any] = nil }
    }
}
