import HatoRPC
import Synchronization

/// Counts attempts by address and by account, in memory and bounded. A restart clears the counts, except those of wrong
/// passwords, which `FailureKeeper` keeps in the store.
///
/// Wrong passwords for an account are counted by network: one that guesses does not keep its owner out. All of them
/// together are counted too, for guesses from many networks: of each network as many as cause no wait, so that no
/// network reaches the limit alone, however long it guesses. Networks from which the account has signed in before are
/// exempt from that count, and a right password from there does not clear it: each time the owner signs in at home,
/// others could guess again as often as at first. One from another network does, since the next of them would wait.
final class AttemptLedger: Sendable {
    /// The kinds of attempts by address, each with its own limit.
    enum Kind: Hashable {
        case signIn, signUp, anonymousSignUp, refresh, code
        /// Dry runs of sign-ups.
        case signUpCheck
        /// Wrong digits of codes.
        case guess
        /// People change their account: its names and password, or anything else.
        case credentialChange, profileChange
    }

    /// Whose password is checked, and for which client.
    struct Target: Hashable {
        /// The account, which need not exist.
        var account: String
        /// The network of the client: its `site`, or the `network` that is known; empty for a call without a socket.
        var network: String
        /// Whether the account has signed in from this network before.
        var isKnown = false
    }

    private struct Origin: Hashable {
        var kind: Kind
        /// Nil: all addresses.
        var network: String?
        /// The uid, where it counts and not the address.
        var user: String?
    }

    private struct State {
        var buckets = RecentEntries<Origin, TokenBucket>()
        var failures = RecentEntries<FailureKey, FailureCount>()
        /// What is not in the store as it is here. Each check of a password changes a few at most.
        var changed: Set<FailureKey> = []

        mutating func set(_ key: FailureKey, _ count: FailureCount) {
            let isOver = count.failures == 0 && count.pending == 0
            if (failures[key]?.failures ?? 0) != count.failures { changed.insert(key) }
            failures.set(key, isOver ? nil : count, isEvictable: count.pending == 0)
        }

        /// False when every entry is of a check in progress.
        mutating func evictFailures(for key: FailureKey, countMax: Int) -> Bool {
            guard let evicted = failures.evict(for: key, countMax: countMax) else { return false }
            changed.formUnion(evicted)
            return true
        }
    }

    private let limits: AuthLimits
    private let limitsLoopback: Bool
    private let limitsForwardedLoopback: Bool
    private let now: @Sendable () -> Int64
    /// Makes the marks of `FailureKey`.
    private let key: [UInt8]
    private let state = Mutex(State())

    /// - Parameter key: The secret of the service.
    init(_ configuration: AuthConfiguration, key: [UInt8], now: @escaping @Sendable () -> Int64) {
        self.key = key
        limits = configuration.limits
        limitsLoopback = configuration.limitsLoopback
        limitsForwardedLoopback = configuration.limitsForwardedLoopback
        self.now = now
    }

    /// Counts one attempt of this kind from an address, and a sign-up among those of all addresses. Throws
    /// `AuthError.tooManyAttempts`.
    func admit(_ kind: Kind, from address: ClientAddress?) throws {
        if let origin = origin(kind, address) { try take(origin, limit(ofAddress: kind)) }
        switch kind {
        case .signUp, .anonymousSignUp: try take(Origin(kind: .signUp), limits.signUps)
        case .signIn: try take(Origin(kind: .signIn), limits.signIns)
        case .signUpCheck, .refresh, .code, .guess, .credentialChange, .profileChange: break
        }
    }

    /// Counts a sign-in to one account from one address. Throws `AuthError.tooManyAttempts`.
    func admitSignIn(to account: String, from address: ClientAddress?) throws {
        guard var origin = origin(.signIn, address) else { return }
        origin.user = account
        try take(origin, limits.signInsPerAccountAndAddress)
    }

    /// Counts a code among those of all addresses. Throws `AuthError.tooManyAttempts`.
    func admitCodeOfAll() throws { try take(Origin(kind: .code), limits.codes) }

    /// Counts digits as wrong, until `endGuess`, for their e-mail address and for the client. Throws
    /// `AuthError.tooManyAttempts`; if it does not throw, the caller must call `endGuess` once.
    ///
    /// Those of all clients together have no limit: a few networks could take the digits away from all others. Each
    /// code takes a few, and codes are limited for all together.
    func beginGuess(_ target: Target, from address: ClientAddress?) throws {
        let origin = origin(.guess, address)
        if let origin { try take(origin, limits.wrongDigitsPerAddress) }
        do { try begin(target) } catch {
            if let origin { giveBack(origin, limits.wrongDigitsPerAddress) }
            throw error
        }
    }

    /// - Parameter isRight: nil when the digits were not compared.
    func endGuess(_ target: Target, from address: ClientAddress?, isRight: Bool?) {
        end(target, isRight: isRight)
        guard isRight != false, let origin = origin(.guess, address) else { return }
        giveBack(origin, limits.wrongDigitsPerAddress)
    }

    /// Nil where the address is not counted. A customer with very many networks counts as one for codes, which are
    /// limited for all addresses together, too, and for guesses.
    private func origin(_ kind: Kind, _ address: ClientAddress?) -> Origin? {
        guard let address, !address.isLoopback || (address.isForwarded ? limitsForwardedLoopback : limitsLoopback)
        else { return nil }
        return Origin(kind: kind, network: kind == .code || kind == .guess ? address.site : address.network)
    }

    private func giveBack(_ origin: Origin, _ limit: RateLimit) {
        state.withLock { state in
            guard var bucket = state.buckets[origin] else { return }
            bucket.tokens = min(Double(limit.burst), bucket.tokens + 1)
            state.buckets.set(origin, bucket)
        }
    }

    /// Counts one attempt of this kind of a user, and from an address. Throws `AuthError.tooManyAttempts`.
    func admit(_ kind: Kind, of uid: String, from address: ClientAddress?) throws {
        try take(Origin(kind: kind, user: uid), limit(of: kind))
        try admit(kind, from: address)
    }

    private func take(_ origin: Origin, _ limit: RateLimit) throws {
        guard limit.burst > 0 else { return }
        let now = now()
        let wait: Int64? = state.withLock { state in
            var bucket = state.buckets[origin] ?? TokenBucket(full: limit, now: now)
            let wait = bucket.take(limit, now: now)
            _ = state.buckets.evict(for: origin, countMax: limits.attemptEntriesMax)
            state.buckets.set(origin, bucket)
            return wait
        }
        if let wait { throw AuthError.tooManyAttempts(retryAfterMilliseconds: wait) }
    }

    /// Begins to check a password. Throws `AuthError.tooManyAttempts`; if it does not throw, the caller must call `end`
    /// once.
    func begin(_ target: Target) throws {
        let now = now()
        let wait: Int64? = state.withLock { state in
            let subjects = subjects(of: target)
            let counts = subjects.map { state.failures[$0] ?? FailureCount() }
            let waits = zip(subjects, counts).compactMap { policy(of: $0).wait($1, now: now) }
            if let wait = waits.max() { return wait }
            for (index, subject) in subjects.enumerated() {
                guard state.evictFailures(for: subject, countMax: limits.attemptEntriesMax) else {
                    // Every entry is of a check in progress.
                    for earlier in 0..<index { state.set(subjects[earlier], counts[earlier]) }
                    return 1000
                }
                var count = counts[index]
                count.pending += 1
                state.set(subject, count)
            }
            return nil
        }
        if let wait { throw AuthError.tooManyAttempts(retryAfterMilliseconds: wait) }
    }

    /// - Parameter isRight: nil when the password was not checked.
    func end(_ target: Target, isRight: Bool?) {
        let now = now()
        state.withLock { state in
            let subjects = subjects(of: target)
            let isCounted = isCountedForAll(subjects, state, now: now)
            for subject in subjects {
                guard var count = state.failures[subject] else { continue }
                count.pending = max(0, count.pending - 1)
                switch isRight {
                case true?: count.failures = 0
                case false?:
                    if !subject.isOfAllNetworks || isCounted { count = policy(of: subject).failed(count, now: now) }
                case nil: break
                }
                state.set(subject, count)
            }
        }
    }

    /// Whether a wrong password counts among those of all networks: while its own network may still guess freely, and
    /// once all together may not.
    private func isCountedForAll(_ subjects: [FailureKey], _ state: State, now: Int64) -> Bool {
        subjects.contains { subject in
            let count = state.failures[subject] ?? FailureCount()
            let policy = policy(of: subject)
            let isFree = policy.isExpired(count, now: now) || count.failures < policy.failuresFree
            return isFree == !subject.isOfAllNetworks
        }
    }

    private func subjects(of target: Target) -> [FailureKey] {
        let own = FailureKey(target.account, network: target.network, key: key)
        return target.isKnown ? [own] : [own, FailureKey(target.account, network: nil, key: key)]
    }

    private func policy(of subject: FailureKey) -> AttemptPolicy {
        AttemptPolicy(
            failuresFree: subject.isOfAllNetworks ? limits.failuresFreePerAccount : limits.failuresFree,
            waitMax: limits.lockMsMax, memory: limits.failureMemoryMs)
    }

    private func limit(of kind: Kind) -> RateLimit {
        switch kind {
        case .signIn: limits.signInsPerAddress
        case .signUp: limits.signUpsPerAddress
        case .anonymousSignUp: limits.anonymousSignUpsPerAddress
        case .signUpCheck: limits.signUpChecksPerAddress
        case .refresh: limits.refreshesPerAddress
        case .code: limits.codesPerAddress
        case .guess: limits.wrongDigitsPerAddress
        case .credentialChange: limits.credentialChanges
        case .profileChange: limits.profileChanges
        }
    }

    /// Many users may share an address.
    private func limit(ofAddress kind: Kind) -> RateLimit {
        switch kind {
        case .credentialChange, .profileChange: limit(of: kind).times(Self.usersOfAddress)
        case .signIn, .signUp, .anonymousSignUp, .signUpCheck, .refresh, .code, .guess: limit(of: kind)
        }
    }

    private static let usersOfAddress = 10

    // MARK: Store

    /// What is to be in the store; a nil count is to be deleted.
    struct Change: Sendable {
        var key: FailureKey
        var count: FailureCount?
    }

    /// Takes the counts of an earlier run over, the one of the oldest failure first. Returns the keys of those that
    /// count no longer, or are too many.
    func restore(_ counts: [(key: FailureKey, count: FailureCount)]) -> [FailureKey] {
        let now = now()
        return state.withLock { state in
            let living = counts.filter { !policy(of: $0.key).isExpired($0.count, now: now) && $0.count.failures > 0 }
            let kept = living.suffix(limits.attemptEntriesMax)
            for entry in kept { state.failures.set(entry.key, entry.count) }
            let keys = Set(kept.map(\.key))
            return counts.map(\.key).filter { !keys.contains($0) }
        }
    }

    /// At most `countMax` of the counts that the store has not as they are.
    func takeChanges(countMax: Int) -> [Change] {
        state.withLock { state in
            let keys = state.changed.prefix(countMax)
            state.changed.subtract(keys)
            return keys.map { key in
                let count = state.failures[key]
                return Change(key: key, count: (count?.failures ?? 0) > 0 ? count : nil)
            }
        }
    }

    /// What could not be written; some of it is left out while the store takes nothing for long.
    func putBack(_ keys: [FailureKey]) {
        state.withLock { state in
            let free = max(0, 2 * limits.attemptEntriesMax - state.changed.count)
            state.changed.formUnion(keys.prefix(free))
        }
    }

    /// Ends the counts that count no longer.
    func forgetExpired() {
        let now = now()
        state.withLock { state in
            for (key, count) in state.failures.all
            where count.pending == 0 && policy(of: key).isExpired(count, now: now) {
                state.set(key, FailureCount())
            }
        }
    }
}
