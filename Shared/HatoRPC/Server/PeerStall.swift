/// Tells a peer that does not take what is sent to it from one with a thin line. Pure.
struct PeerStall {
    /// Bytes the peer had taken when it was last looked at; nil: its socket has taken everything since.
    private var takenBefore: Int?

    /// The socket has not taken everything.
    mutating func filled(taken: Int) { if takenBefore == nil { takenBefore = taken } }

    /// The socket has taken everything.
    mutating func drained() { takenBefore = nil }

    /// Whether the peer has taken too little since it was last looked at, `stalledPeerSecondsMax` ago.
    mutating func looked(taken: Int, _ limits: RPCLimits) -> Bool {
        guard let before = takenBefore else { return false }
        takenBefore = taken
        let (wanted, isTooMuch) = limits.stalledPeerSecondsMax.multipliedReportingOverflow(
            by: limits.stalledPeerBytesPerSecond)
        return isTooMuch || taken - before < wanted
    }
}
