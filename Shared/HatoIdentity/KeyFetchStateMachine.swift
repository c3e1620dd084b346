/// Decides whether an unknown key id is worth asking auth again: strangers must not be able to make us ask without end,
/// nor, by asking, keep others from being heard.
///
/// Auth publishes a key before it signs with it, so a token that was issued before the keys were fetched names a key
/// that is gone. What is left may be newer than the keys: it costs one of the fetches that there are, which come back
/// one by one. Who gets none is asked to come again: the next fetch of whomever brings the key for all.
struct KeyFetchStateMachine {
    enum Decision: Hashable {
        case fetch
        /// The key does not exist.
        case refuse
        /// The key may exist, and this is not the time to ask.
        case later
        /// Asking failed a moment ago.
        case unavailable
    }

    /// What a token says of itself, unproven.
    struct Claim: Hashable {
        var kid: String
        /// Seconds since 1970.
        var issuedAt: Int64
    }

    private enum Outcome { case none, running, succeeded, failed }

    private var outcome = Outcome.none
    private var startedAt: Int64 = 0
    /// Fetches that were spent and have not come back, as the milliseconds until all have.
    private var debt: Int64 = 0
    private var debtAt: Int64 = 0
    /// Key ids that auth was asked for and did not have, with the time of asking.
    private var absent: [String: Int64] = [:]

    /// Times in milliseconds.
    mutating func keyWasMissed(_ claim: Claim, now: Int64, _ configuration: IdentityConfiguration) -> Decision {
        guard claim.kid.utf8.count <= configuration.keyIDBytesMax else { return .refuse }
        let age = now - startedAt
        // A clock that went back must not stop fetching.
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
        // Meant for later than now: no key makes it valid.
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

    /// A fetch that began after the key id was named did not bring it.
    mutating func keyWasAbsent(_ kid: String, now: Int64, _ configuration: IdentityConfiguration) {
        if absent.count >= configuration.absentKeysMax { absent = [:] }
        absent[kid] = now
    }
}
