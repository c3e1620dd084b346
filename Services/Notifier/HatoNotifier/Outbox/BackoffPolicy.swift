/// How long to wait after a failure: full jitter, `random(0, min(longest, first · 2^(attempt - 1)))`, and never less
/// than the receiver asked for.
public struct BackoffPolicy: Sendable, Hashable {
    /// The wait after the first failure.
    public var first: Duration = .seconds(1)
    /// The longest wait.
    public var longest: Duration = .seconds(600)

    public init() {}

    /// Milliseconds to wait after the attempt numbered `attempt` (from 1); `random` is at least 0 and below 1.
    func delay(afterAttempt attempt: Int, random: Double, floor: Duration?) -> Int64 {
        // Doubling 40 times exceeds any longest wait, and cannot overflow.
        let doubled = first.milliseconds.multipliedReportingOverflow(by: 1 << Int64(min(max(attempt, 1) - 1, 40)))
        let ceiling = doubled.overflow ? longest.milliseconds : min(longest.milliseconds, doubled.partialValue)
        return max(Int64(Double(ceiling) * random), floor?.milliseconds ?? 0)
    }
}
