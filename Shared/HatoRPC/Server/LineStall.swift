/// Tells a long line that hardly comes from one with a thin connection, while others wait for the memory it holds.
/// Pure.
enum LineStall {
    /// The bytes by which a line has to grow in `stalledLineSecondsMax`.
    ///
    /// - Parameter reserved: the memory that the line holds.
    static func growthMin(reserved: Int, _ limits: RPCLimits) -> Int {
        let seconds = limits.stalledLineSecondsMax
        let slow = seconds.multipliedReportingOverflow(by: limits.stalledLineBytesPerSecond)
        let whole = seconds.multipliedReportingOverflow(by: reserved / max(1, limits.awaitedLineSecondsMax))
        guard !slow.overflow, !whole.overflow else { return .max }
        return max(slow.partialValue, whole.partialValue)
    }
}
