/// The unfinished lines of connections that have not shown a credential, of which few stay while memory is short. Pure.
///
/// What a line waits for stays in buffers of the system, which no budget counts: without a bound, peers that anyone can
/// be would fill them with the beginnings of lines.
struct LinesWithoutCredential {
    private let countMax: Int
    private let usedMax: Int
    private var turns = IndexedHeap<UInt64, UInt64>()
    private var lastTurn: UInt64 = 0

    init(_ limits: RPCLimits) {
        let limit = limits.processBytesInFlightMax
        countMax = max(16, limit / 16 / max(1, limits.unauthenticatedLineBytesMax))
        usedMax = limit / 4
    }

    var count: Int { turns.count }

    /// The line of this connection is longer than what is read whatever is held, and has not ended.
    ///
    /// - Parameter used: bytes that all connections hold.
    /// - Returns: the connection whose line is refused for it: the one that is unfinished for the longest time.
    mutating func began(_ connection: UInt64, used: Int) -> UInt64? {
        lastTurn += 1
        turns.insert(connection, lastTurn)
        guard turns.count > countMax, used > usedMax, let oldest = turns.first?.key else { return nil }
        turns.remove(oldest)
        return oldest
    }

    /// The line has ended, its connection has closed, or has shown a credential.
    mutating func ended(_ connection: UInt64) { turns.remove(connection) }
}
