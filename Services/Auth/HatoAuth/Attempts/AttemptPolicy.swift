/// The attempts that one address still has: a token bucket that fills with time.
struct TokenBucket: Sendable, Hashable {
    var tokens: Double
    var updatedAt: Int64

    init(full limit: RateLimit, now: Int64) {
        tokens = Double(limit.burst)
        updatedAt = now
    }

    /// Takes one attempt; nil when there was one, otherwise the milliseconds until there is.
    mutating func take(_ limit: RateLimit, now: Int64) -> Int64? {
        let perMillisecond = Double(limit.perMinute) / 60_000
        let elapsed = max(0, now - updatedAt)
        tokens = min(Double(limit.burst), tokens + Double(elapsed) * perMillisecond)
        updatedAt = now
        if tokens >= 1 {
            tokens -= 1
            return nil
        }
        guard perMillisecond > 0 else { return 3_600_000 }
        return Int64(((1 - tokens) / perMillisecond).rounded(.up))
    }
}

/// Consecutive wrong passwords for one account.
struct FailureCount: Sendable, Hashable {
    var failures = 0
    var lastAt: Int64 = 0
    /// The number of checks in progress.
    var pending = 0
}

/// Decides how long a client must wait after wrong passwords for one account: not at all for the first few, then one
/// second, doubling up to fifteen minutes. Never permanently; a right password clears the count.
///
/// A check in progress counts as a wrong password until its end, so that guesses in parallel find no more than guesses
/// one after another.
struct AttemptPolicy: Sendable {
    /// Wrong passwords that cause no wait.
    var failuresFree: Int
    /// The longest wait, in milliseconds.
    var waitMax: Int64
    /// Failures are no longer counted after this long without another, in milliseconds.
    var memory: Int64

    /// Nil when the client may try now, otherwise the milliseconds to wait.
    func wait(_ count: FailureCount, now: Int64) -> Int64? {
        let failures = isExpired(count, now: now) ? 0 : count.failures
        let excess = failures - failuresFree
        if excess >= 0 {
            let pause = min(waitMax, 1000 << Int64(min(excess, 30)))
            let rest = count.lastAt + pause - now
            if rest > 0 { return min(rest, pause) }
        }
        // After each wait, one at a time.
        return count.pending == 0 || failures + count.pending < failuresFree ? nil : 1000
    }

    func failed(_ count: FailureCount, now: Int64) -> FailureCount {
        var count = count
        if isExpired(count, now: now) { count.failures = 0 }
        count.failures += 1
        count.lastAt = now
        return count
    }

    func isExpired(_ count: FailureCount, now: Int64) -> Bool { now - count.lastAt >= memory }
}
