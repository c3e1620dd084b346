import HatoRPC
import Synchronization

/// Counts attempts by address and by account, in memory and bounded; a restart clears the counts.
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

    /// What failures are counted for.
    private struct Subject: Hashable {
        var account: String
        /// Nil: all networks.
        var network: String?
    }

    private struct State {
        var buckets = RecentEntries<Origin, TokenBucket>()
        var failures = RecentEntries<Subject, FailureCount>()

        mutating func set(_ subject: Subject, _ count: FailureCount) {
            let isOver = count.failures == 0 && count.pending == 0
            failures.set(subject, isOver ? nil : count, isEvictable: count.pending == 0)
        }
    }

    private let limits: AuthLimits
    private let limitsLoopback: Bool
    private let now: @Sendable () -> Int64
    private let state = Mutex(State())

    init(_ configuration: AuthConfiguration, now: @escaping @Sendable () -> Int64) {
        limits = configuration.limits
        limitsLoopback = configuration.limitsLoopback
        self.now = now
    }

    /// Counts one attempt of this kind from an address, and a sign-up among those of all addresses. Throws
    /// `AuthError.tooManyAttempts`.
    func admit(_ kind: Kind, from address: ClientAddress?) throws {
        if let origin = origin(kind, address) { try take(origin, limit(ofAddress: kind)) }
        switch kind {
        case .signUp, .anonymousSignUp: try take(Origin(kind: .signUp), limits.signUps)
        case .signIn, .signUpCheck, .refresh, .code, .guess, .credentialChange, .profileChange: break
        }
    }

    /// Counts a code among those of all addresses. Throws `AuthError.tooManyAttempts`.
    func admitCodeOfAll() throws { try take(Origin(kind: .code), limits.codes) }

    /// Counts digits as wrong, until `endGuess`, for their address, for the network and among those of all networks;
    /// not among the last from a network that is known. Throws `AuthError.tooManyAttempts`; if it does not throw, the
    /// caller must call `endGuess` once.
    func beginGuess(_ target: Target, from address: ClientAddress?) throws {
        var taken: [(Origin, RateLimit)] = []
        do {
            for (origin, limit) in guesses(target, address) {
                try take(origin, limit)
                taken.append((origin, limit))
            }
            try begin(target)
        } catch {
            for (origin, limit) in taken { giveBack(origin, limit) }
            throw error
        }
    }

    /// - Parameter isRight: nil when the digits were not compared.
    func endGuess(_ target: Target, from address: ClientAddress?, isRight: Bool?) {
        end(target, isRight: isRight)
        guard isRight != false else { return }
        for (origin, limit) in guesses(target, address) { giveBack(origin, limit) }
    }

    private func guesses(_ target: Target, _ address: ClientAddress?) -> [(Origin, RateLimit)] {
        let all = target.isKnown ? [] : [(Origin(kind: .guess), limits.wrongDigits)]
        return (origin(.guess, address).map { [($0, limits.wrongDigitsPerAddress)] } ?? []) + all
    }

    /// Nil where the address is not counted. Codes and guesses are limited for all addresses together, too: a customer
    /// with very many networks counts as one.
    private func origin(_ kind: Kind, _ address: ClientAddress?) -> Origin? {
        guard let address, limitsLoopback || !address.isLoopback else { return nil }
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
                guard state.failures.evict(for: subject, countMax: limits.attemptEntriesMax) else {
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
                    if subject.network != nil || isCounted { count = policy(of: subject).failed(count, now: now) }
                case nil: break
                }
                state.set(subject, count)
            }
        }
    }

    /// Whether a wrong password counts among those of all networks: while its own network may still guess freely, and
    /// once all together may not.
    private func isCountedForAll(_ subjects: [Subject], _ state: State, now: Int64) -> Bool {
        subjects.contains { subject in
            let count = state.failures[subject] ?? FailureCount()
            let policy = policy(of: subject)
            let isFree = policy.isExpired(count, now: now) || count.failures < policy.failuresFree
            return isFree == (subject.network != nil)
        }
    }

    private func subjects(of target: Target) -> [Subject] {
        let own = Subject(account: target.account, network: target.network)
        return target.isKnown ? [own] : [own, Subject(account: target.account)]
    }

    private func policy(of subject: Subject) -> AttemptPolicy {
        AttemptPolicy(
            failuresFree: subject.network == nil ? limits.failuresFreePerAccount : limits.failuresFree,
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
}
