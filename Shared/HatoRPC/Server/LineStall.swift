/// Tells a long line that hardly comes from one with a thin connection, while others wait for the memory it holds.
/// Pure.
enum LineStall {
    /// The bytes by which a line has to grow in `stalledLineSecondsMax`.
    ///
    /// - Parameters:
    ///   - reserved: the memory that the line holds.
    ///   - isOverdrawn: whether it is the one line that goes on although nothing fits: all others wait for its end.
    static func growthMin(reserved: Int, isOverdrawn: Bool = false, _ limits: RPCLimits) -> Int {
        let seconds = limits.stalledLineSecondsMax
        let (fast, isTooFast) = limits.stalledLineBytesPerSecond.multipliedReportingOverflow(
            by: isOverdrawn ? overdrawnFactor : 1)
        guard !isTooFast else { return .max }
        let slow = seconds.multipliedReportingOverflow(by: fast)
        let whole = seconds.multipliedReportingOverflow(by: reserved / max(1, limits.awaitedLineSecondsMax))
        guard !slow.overflow, !whole.overflow else { return .max }
        return max(slow.partialValue, whole.partialValue)
    }

    /// So many times `stalledLineBytesPerSecond`.
    private static let overdrawnFactor = 8
}
