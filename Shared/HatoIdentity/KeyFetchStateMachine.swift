/// Decides whether an unknown key id justifies another fetch of auth's keys: unauthenticated callers must not be able
/// to cause unlimited fetches, or to use up the fetches of others.
///
/// Auth publishes a key before it signs with it, so a token that was issued before the keys were fetched names a
/// removed key. Other tokens may name a newer key: they cost one of a limited number of fetches, which recover one by
/// one. A caller that gets no fetch has to retry: the next fetch by any caller brings the key for all.
struct KeyFetchStateMachine {
    enum Decision: Hashable {
        case fetch
        /// The key does not exist.
        case refuse
        /// The key may exist, but no fetch is available now.
        case later
        /// The last fetch failed a moment ago.
        case unavailable
    }

    /// Unverified claims of a token.
    struct Claim: Hashable {
        var kid: String
        /// Seconds since 1970.
        var issuedAt: Int64
    }

    private enum Outcome { case none, running, succeeded, failed }

    private var outcome = Outcome.none
    private var startedAt: Int64 = 0
    /// Fetches that were spent and have not recovered, as the milliseconds until all have.
    private var debt: Int64 = 0
    private var debtAt: Int64 = 0
    /// Key ids that auth did not have, with the time of the fetch.
    private var absent: [String: Int64] = [:]

    /// - Parameter now: milliseconds, as all times here.
    mutating func keyWasMissed(_ claim: Claim, now: Int64, _ configuration: IdentityConfiguration) -> Decision {
        guard claim.kid.utf8.count <= configuration.keyIDBytesMax else { return .refuse }
        let age = now - startedAt
        // A clock that was set back must not stop fetching.
        switch outcome {
        case .none, .running: return .fetch
        case .failed: return (0..<configuration.retryMillisecondsMin).contains(age) ? .unavailable : .fetch
        case .succeeded: break
        }
        if isGone(claim, now: now, configuration) { return .refuse }
        if (0..<configuration.refetchMillisecondsMin).contains(age) { return .later }
        debt = max(0, debt - max(0, now - debtAt))
        debtAt = now
        let cost = configuration.refetchRecoveryMilliseconds
        guard debt + cost <= cost * Int64(configuration.refetchBurst) else { return .later }
        debt += cost
        return .fetch
    }

    private func isGone(_ claim: Claim, now: Int64, _ configuration: IdentityConfiguration) -> Bool {
        let second = 1000 as Int64
        // Issued in the future: no key makes it valid.
        guard claim.issuedAt <= now / second + configuration.leewaySeconds else { return true }
        if startedAt <= now, claim.issuedAt + configuration.keyLeewaySeconds < startedAt / second { return true }
        guard let asked = absent[claim.kid] else { return false }
        return (0..<configuration.absentKeyMilliseconds).contains(now - asked)
    }

    mutating func fetchStarted(now: Int64) {
        startedAt = now
        outcome = .running
    }

    mutating func fetchEnded(isSuccess: Bool) { outcome = isSuccess ? .succeeded : .failed }

    /// Notes that a fetch that began after the key id was named did not return it.
    mutating func keyWasAbsent(_ kid: String, now: Int64, _ configuration: IdentityConfiguration) {
        if absent.count >= configuration.absentKeysMax { absent = [:] }
        absent[kid] = now
    }
}
