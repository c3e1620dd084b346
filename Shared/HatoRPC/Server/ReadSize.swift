/// How much one large read reserves, and what of the budget such reservations take. Pure.
struct ReadSize: Sendable, Hashable {
    /// What one of them reserves.
    var bytes: Int
    /// One is granted where all that is held does not exceed this with it.
    var memoryMax: Int
    /// How many are granted at a time where it does: places that nothing else takes.
    var beyondMax: Int

    /// The sizes, the smallest first: a read that outgrows one begins again with the next. The last one is that of the
    /// largest response.
    ///
    /// A quarter of the limit stays free of large reads, and half of it of the smaller ones, so that each size finds
    /// memory beside reads of the other that are not taken.
    static func all(_ limits: RPCLimits) -> [ReadSize] {
        let limit = limits.processBytesInFlightMax
        let largest = ReadSize(bytes: limits.responseBytesMax, memoryMax: limit - limit / 4, beyondMax: 1)
        // Twice that is not worth a second beginning.
        guard limits.unreservedReadBytesMax <= limits.responseBytesMax / (2 * growth) else { return [largest] }
        let bytes = max(1, limits.unreservedReadBytesMax * growth)
        return [ReadSize(bytes: bytes, memoryMax: limit / 2, beyondMax: max(1, limit / 16 / bytes)), largest]
    }

    private static let growth = 16
}
