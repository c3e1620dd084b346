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

/// Decides how long an account must wait after wrong passwords: not at all for the first ten, then one second, doubling
/// up to fifteen minutes. Never permanently, or any client could lock out any account; a right password clears the
/// count.
struct AttemptPolicy: Sendable {
    var limits: AuthLimits

    /// Nil when the account may try now, otherwise the milliseconds to wait.
    func wait(_ count: FailureCount, now: Int64) -> Int64? {
        if count.pending >= limits.signInsPendingPerAccountMax { return 1000 }
        let excess = count.failures - limits.failuresFree
        guard excess >= 0, !isExpired(count, now: now) else { return nil }
        let pause = min(limits.lockMsMax, 1000 << Int64(min(excess, 30)))
        let rest = count.lastAt + pause - now
        return rest > 0 ? min(rest, pause) : nil
    }

    func failed(_ count: FailureCount, now: Int64) -> FailureCount {
        var count = count
        if isExpired(count, now: now) { count.failures = 0 }
        count.failures += 1
        count.lastAt = now
        return count
    }

    func isExpired(_ count: FailureCount, now: Int64) -> Bool {
        now - count.lastAt >= limits.failureMemoryMs
    }
}
