/// How often something may happen: so many at once, then one in each interval.
struct BucketRate: Sendable, Hashable {
    var burst: Int64
    /// Milliseconds; 0: as often as wanted.
    var interval: Int64
}

/// A bucket of tokens (the generic cell rate algorithm): one number says how full it is. A token that is not there yet
/// can be taken in advance: so each that waits has its own time. Pure.
struct TokenBucket: Sendable, Hashable {
    /// When it is full again, in milliseconds since 1970.
    private(set) var fullAt: Int64 = 0

    /// When the next token is there, at `now` or later.
    func next(at now: Int64, _ rate: BucketRate) -> Int64 {
        guard rate.interval > 0 else { return now }
        return max(now, fullAt - (rate.burst - 1) * rate.interval)
    }

    /// Takes a token that is there at a time of `next` or later.
    mutating func take(at time: Int64, _ rate: BucketRate) { fullAt = max(fullAt, time) + rate.interval }

    /// A token that was taken in advance is not needed.
    mutating func giveBack(_ rate: BucketRate) { fullAt -= rate.interval }
}
