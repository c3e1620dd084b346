/// Decides whether a peer does not take what is sent to it, or only has a thin line. Pure.
///
/// It gets, every `peerLookSeconds` while the peer's socket is full, what the peer has taken.
struct PeerStall {
    /// Memory that the peer holds and others may wait for, at a look.
    struct HeldMemory {
        /// What the peer's socket has taken of the output.
        var sent: Int
        /// Where in the output the last of what is held ends.
        var end: Int
        /// Whether others wait for this memory.
        var isAwaited: Bool
    }

    /// For how long the peer has kept something that it held when others began to wait: however fast it takes the
    /// bytes, the memory is free after the last one.
    struct HoldingTime {
        /// Where that ends; nil: no others wait.
        private var end: Int?
        private var seconds = 0

        /// - Parameter held: nil: nothing.
        /// - Returns: the seconds since others began to wait.
        mutating func sampled(at held: HeldMemory?, _ limits: RPCLimits) -> Int {
            guard let held, held.isAwaited else {
                end = nil
                return 0
            }
            if let end, held.sent < end {
                seconds += limits.peerLookSeconds
            } else {
                (end, seconds) = (held.end, 0)
            }
            return seconds
        }
    }

    /// The results of large reads that the peer held when others began to wait for such memory.
    struct AwaitedResults {
        /// Where they end, and what the peer had taken then; nil: no others wait.
        private var began: (end: Int, taken: Int)?
        private var seconds = 0
        /// So long TCP may take to begin, or to send a lost packet again.
        private static let graceSeconds = 2

        /// Called every `peerLookSeconds`.
        ///
        /// - Parameter held: nil: nothing.
        /// - Returns: whether the peer takes them too slowly, or has not taken them in time.
        mutating func areOverdue(at held: HeldMemory?, taken: Int, _ limits: RPCLimits) -> Bool {
            guard let held, held.isAwaited else {
                began = nil
                return false
            }
            guard let start = began, held.sent < start.end else {
                (began, seconds) = ((held.end, taken), 0)
                return false
            }
            seconds += limits.peerLookSeconds
            let due = PeerStall.required(in: max(0, seconds - Self.graceSeconds), limits)
            return seconds >= limits.awaitedReadSecondsMax || max(0, taken - start.taken) < due
        }
    }

    /// Bytes the peer had taken when it was last looked at; nil: its socket has taken everything since.
    private var takenBefore: Int?
    /// By how much it has taken less than it must, in bytes.
    private var missing = 0
    /// Of the events that connections share.
    var events = HoldingTime()
    var results = AwaitedResults()

    /// The socket has not taken everything.
    mutating func filled(taken: Int) { if takenBefore == nil { takenBefore = taken } }

    /// The socket has taken everything.
    mutating func drained() { self = PeerStall() }

    /// Called every `peerLookSeconds`.
    mutating func sampled(taken: Int, _ limits: RPCLimits) {
        guard let before = takenBefore else { return }
        takenBefore = taken
        let (due, isTooMuch) = missing.addingReportingOverflow(Self.required(in: limits.peerLookSeconds, limits))
        // It catches up, but takes nothing in advance.
        let after = isTooMuch ? .max : max(0, due - max(0, taken - before))
        missing = min(after, Self.required(in: limits.stalledPeerSecondsMax, limits))
    }

    /// Whether the peer has taken too little, by as much as it must take in so many seconds.
    func isBehind(by seconds: Int, _ limits: RPCLimits) -> Bool { missing >= Self.required(in: seconds, limits) }

    private static func required(in seconds: Int, _ limits: RPCLimits) -> Int {
        let (bytes, isTooMuch) = seconds.multipliedReportingOverflow(by: limits.stalledPeerBytesPerSecond)
        return isTooMuch ? .max : bytes
    }
}
