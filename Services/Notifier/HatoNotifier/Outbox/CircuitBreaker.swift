import HatoPush

/// Whether a provider is called. After many failures in a row, or when it refuses us, it is not called for a while;
/// then one attempt is made, and its outcome decides. Pure: its driver says what time it is, in milliseconds.
struct CircuitBreaker: Sendable {
    /// Failures in a row after which the provider is not called.
    private static let failuresMax = 20
    /// The first pause and the longest one, in milliseconds: Apple asks for 15 minutes after many errors of its own.
    private static let (firstPause, longestPause) = (Int64(15_000), Int64(900_000))

    private var failures = 0
    /// How often a pause was followed by another one.
    private var pauses = 0
    /// Why and since when the provider is not called; nil while it is.
    private(set) var open: (problem: String, since: Int64, until: Int64)?

    /// How many attempts may begin while `count` are under way, `max` at a time.
    func room(beside count: Int, max: Int, at now: Int64) -> Int {
        guard let open else { return Swift.max(0, max - count) }
        // One after the pause, and no other one while it lasts.
        return now >= open.until && count == 0 ? 1 : 0
    }

    /// Of an attempt, in milliseconds since 1970.
    struct Times: Sendable {
        var began: Int64
        var ended: Int64
    }

    /// `random` is at least 0 and below 1.
    mutating func attemptEnded(_ outcome: DeliveryOutcome, _ times: Times, random: Double) {
        switch outcome {
        case .providerRefused(let response, let floor):
            pause(response.error ?? "the provider refuses the app", times, random: random, floor: floor)
        case .failed(let response, let floor) where (response.status ?? 500) >= 500:
            failures += 1
            if open != nil || failures >= Self.failuresMax {
                pause(response.error ?? "the provider fails", times, random: random, floor: floor)
            }
        // Was not called.
        case .postponed: break
        case .delivered, .failed, .deviceGone, .tokenRefused, .rejected: self = CircuitBreaker()
        }
    }

    private mutating func pause(_ problem: String, _ times: Times, random: Double, floor: Duration?) {
        // Attempts that had begun before it end one after the other, some after its end: one pause.
        if let open, times.began < open.until { return }
        let doubled = Self.firstPause << Int64(min(pauses, 10))
        let longest = min(doubled, Self.longestPause)
        let pause = max(longest / 2 + Int64(Double(longest / 2) * random), floor?.milliseconds ?? 0)
        pauses += 1
        open = (problem, open?.since ?? times.ended, times.ended + pause)
    }
}
