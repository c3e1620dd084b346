/// Whether the peer of a connection takes what it has, looked at while its client is stopped: a value, which gets the
/// time.
///
/// A peer that takes nothing for a while is overdue, and so is one that takes too little over a longer one: less than a
/// low rate, or so little that what it still has would take too long at that rate.
struct UntakenProgress: Sendable {
    struct Limits: Sendable, Hashable {
        /// Milliseconds for which a peer may take nothing.
        var stalledMsMax: Int
        /// Milliseconds over which a peer must take the rate.
        var slowMsMax: Int
        /// The rate: bytes of a second.
        var bytesPerSecondMin: Int
        /// Milliseconds in which a peer would have to take all it has at its own rate.
        var drainMsMax: Int

        /// Bytes that a peer must take in this time.
        func bytesMin(of heldBytes: Int, in time: Int64) -> Int {
            max(bytesPerSecondMin.part(of: time, in: 1_000), heldBytes.part(of: time, in: drainMsMax))
        }
    }

    /// What is seen of a connection at one moment.
    struct Look: Sendable {
        /// Bytes that the peer has taken, counted from any number; only differences matter.
        var taken: Int
        /// Bytes that it has not taken.
        var held: Int
        /// In milliseconds, of a clock that never goes back.
        var time: Int64
    }

    /// Where the rate is counted from; nil before the first look.
    private var start: Look?
    /// When something was taken last.
    private var last = Look(taken: 0, held: 0, time: 0)
    private var isStalled = false
    private var isSlow = false

    /// Whether the peer does not take what it has.
    ///
    /// - Parameter stoppedSince: what was seen before does not count.
    func isOverdue(stoppedSince: Int64) -> Bool {
        start.map { $0.time >= stoppedSince } == true && (isStalled || isSlow)
    }

    /// - Parameter stoppedSince: what was taken before does not count.
    mutating func looked(_ look: Look, stoppedSince: Int64, _ limits: Limits) {
        guard let start, start.time >= stoppedSince else {
            self = UntakenProgress()
            (start, last) = (look, look)
            return
        }
        if look.taken > last.taken { last = look }
        isStalled = look.time - last.time >= Int64(limits.stalledMsMax)
        let time = look.time - start.time
        guard time >= Int64(limits.slowMsMax) else { return }
        isSlow = look.taken - start.taken < limits.bytesMin(of: look.held, in: time)
        self.start = look
    }
}

extension Int {
    /// The part of so much that falls on a time, where all of it falls on `whole`; what is too large for a number is
    /// the largest one. Both in milliseconds.
    fileprivate func part(of time: Int64, in whole: Int) -> Int {
        let (product, overflows) = multipliedReportingOverflow(by: Int(clamping: time))
        return overflows ? .max : product / Swift.max(1, whole)
    }
}
