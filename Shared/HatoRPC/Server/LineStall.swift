/// Decides whether an unfinished line comes too slowly while others wait for the memory it holds. Pure.
///
/// It gets the length of the line once a second. Over `stalledLineSecondsMax` a line has to grow by
/// `stalledLineBytesPerSecond` on average, and so fast that what it holds would fill in `awaitedLineSecondsMax`. The
/// one line that goes on although nothing fits, for whose end all others wait, has to keep eight times that rate from
/// its second second on, and the rate itself in the first.
struct LineStall {
    /// So many times `stalledLineBytesPerSecond`, for the line that goes on although nothing fits.
    private static let exemptFactor = 8

    /// The line at a look.
    struct Sample {
        var count: Int
        /// The memory that is reserved for it.
        var reserved: Int
        /// Whether it is the one line that goes on although nothing fits.
        var isExempt: Bool
        /// Whether it might grow since the look before.
        var mightGrow: Bool
    }

    /// How long the line was at the looks since it was held up last, the newest last: no more than are compared.
    private var counts: [Int]
    /// Whole seconds for which the line is exempt.
    private var exemptSeconds = 0
    private var wasExempt = false

    /// - Parameter count: the length of the line.
    init(count: Int) { counts = [count] }

    /// Whether the line comes too slowly.
    mutating func sampled(_ sample: Sample, _ limits: RPCLimits) -> Bool {
        exemptSeconds = sample.isExempt && wasExempt && sample.mightGrow ? exemptSeconds + 1 : 0
        wasExempt = sample.isExempt
        guard sample.mightGrow else {
            counts = [sample.count]
            return false
        }
        let seconds = max(1, limits.stalledLineSecondsMax)
        if counts.count > seconds { counts.removeFirst() }
        counts.append(sample.count)
        if isBehind(exemptSeconds, limits) { return true }
        guard counts.count > seconds, let first = counts.first else { return false }
        let slow = Self.product(seconds, limits.stalledLineBytesPerSecond)
        let whole = Self.product(seconds, sample.reserved / max(1, limits.awaitedLineSecondsMax))
        return sample.count - first < max(slow, whole)
    }

    /// Whether a line that is exempt for so many seconds has grown by too little in the last of them.
    private func isBehind(_ exemptSeconds: Int, _ limits: RPCLimits) -> Bool {
        let seconds = min(exemptSeconds, counts.count - 1)
        guard seconds > 0, let last = counts.last else { return false }
        let grown = last - counts[counts.count - 1 - seconds]
        let rate = limits.stalledLineBytesPerSecond
        guard exemptSeconds > 1 else { return grown < rate }
        // In the first second, TCP may have begun slowly.
        let counted = exemptSeconds > seconds ? seconds : seconds - 1
        return grown < Self.product(Self.product(counted, rate), Self.exemptFactor)
    }

    private static func product(_ one: Int, _ other: Int) -> Int {
        let (product, isTooLarge) = one.multipliedReportingOverflow(by: other)
        return isTooLarge ? .max : product
    }
}
