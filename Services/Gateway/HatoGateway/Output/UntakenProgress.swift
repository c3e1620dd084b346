/// Whether the peer of a connection takes what it has, looked at while its client is stopped: a value, which gets the
/// time.
///
/// A peer that takes nothing for a while is overdue, and so is one that takes less than a low rate over a longer one.
struct UntakenProgress: Sendable {
    struct Limits: Sendable, Hashable {
        /// Milliseconds for which a peer may take nothing.
        var stalledMsMax: Int
        /// Milliseconds over which a peer must take the rate.
        var slowMsMax: Int
        /// The rate: bytes of a second.
        var bytesPerSecondMin: Int
    }

    private struct Mark {
        var taken: Int
        /// In milliseconds.
        var time: Int64
    }

    /// Where the rate is counted from; nil before the first look.
    private var start: Mark?
    /// When something was taken last.
    private var last = Mark(taken: 0, time: 0)
    private var isStalled = false
    private var isSlow = false

    /// Whether the peer does not take what it has.
    var isOverdue: Bool { isStalled || isSlow }

    /// - Parameters:
    ///   - taken: bytes, counted from any number; only differences matter.
    ///   - now: in milliseconds, of a clock that never goes back.
    ///   - stoppedSince: what was taken before does not count.
    mutating func looked(taken: Int, at now: Int64, stoppedSince: Int64, _ limits: Limits) {
        guard let start, start.time >= stoppedSince else {
            self = UntakenProgress()
            start = Mark(taken: taken, time: now)
            last = Mark(taken: taken, time: now)
            return
        }
        if taken > last.taken { last = Mark(taken: taken, time: now) }
        isStalled = now - last.time >= Int64(limits.stalledMsMax)
        let time = now - start.time
        guard time >= Int64(limits.slowMsMax) else { return }
        isSlow = taken - start.taken < limits.bytesPerSecondMin.multiplied(byMs: time)
        self.start = Mark(taken: taken, time: now)
    }
}

extension Int {
    /// What so many a second make in this time; what is too large for a number is the largest one.
    fileprivate func multiplied(byMs time: Int64) -> Int {
        let (product, overflows) = multipliedReportingOverflow(by: Int(clamping: time))
        return overflows ? .max : product / 1_000
    }
}
