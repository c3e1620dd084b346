/// Decides whether a peer does not take what is sent to it, or only has a thin line. Pure.
///
/// It gets, every `stalledPeerSecondsMax` while the peer's socket is full, what the peer has taken.
struct PeerStall {
    /// Events that the peer holds and other connections share, at a look.
    struct SharedEvents {
        /// What the peer's socket has taken of the output.
        var sent: Int
        /// Where in the output the last of these events ends.
        var end: Int
        /// Whether others wait for the memory of events.
        var isAwaited: Bool
    }

    /// Bytes the peer had taken when it was last looked at; nil: its socket has taken everything since.
    private var takenBefore: Int?
    /// Where the events end that the peer held when others began to wait; nil: none wait.
    private var awaitedEnd: Int?
    /// Seconds since then.
    private var awaitedSeconds = 0

    /// The socket has not taken everything.
    mutating func filled(taken: Int) { if takenBefore == nil { takenBefore = taken } }

    /// The socket has taken everything.
    mutating func drained() { self = PeerStall() }

    /// Whether the peer has taken too little since it was last looked at, `stalledPeerSecondsMax` ago.
    mutating func looked(taken: Int, _ limits: RPCLimits) -> Bool {
        guard let before = takenBefore else { return false }
        takenBefore = taken
        let (wanted, isTooMuch) = limits.stalledPeerSecondsMax.multipliedReportingOverflow(
            by: limits.stalledPeerBytesPerSecond)
        return isTooMuch || taken - before < wanted
    }

    /// Whether the peer has kept, for `awaitedEventSecondsMax` in which others waited for the memory of events, one
    /// that it held at their beginning: however fast it takes the bytes, the event is in memory until its last one.
    ///
    /// - Parameter events: those the peer holds; nil: none.
    mutating func looked(at events: SharedEvents?, _ limits: RPCLimits) -> Bool {
        guard let events, events.isAwaited else {
            awaitedEnd = nil
            return false
        }
        guard let end = awaitedEnd, events.sent < end else {
            awaitedEnd = events.end
            awaitedSeconds = 0
            return false
        }
        awaitedSeconds += limits.stalledPeerSecondsMax
        return awaitedSeconds >= limits.awaitedEventSecondsMax
    }
}
