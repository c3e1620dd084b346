/// The figures of one window, or the medians of several.
struct Window: Sendable {
    var perSecond: Double
    /// Microseconds.
    var p50: Double
    var p99: Double

    /// - Parameter microseconds: of each response.
    init(seconds: Double, latencies microseconds: [UInt32]) {
        let sorted = microseconds.sorted()
        perSecond = Double(sorted.count) / seconds
        p50 = Self.at(0.5, sorted)
        p99 = Self.at(0.99, sorted)
    }

    /// Each figure is the median of its own values.
    init(mediansOf windows: [Window]) {
        perSecond = windows.map(\.perSecond).median
        p50 = windows.map(\.p50).median
        p99 = windows.map(\.p99).median
    }

    private static func at(_ share: Double, _ sorted: [UInt32]) -> Double {
        guard !sorted.isEmpty else { return 0 }
        return Double(sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))])
    }
}

extension Array where Element == Double {
    /// 0 when there is none.
    var median: Double { isEmpty ? 0 : sorted()[count / 2] }

    /// The median over pairs that were measured one after the other: a slow phase of the machine slows both.
    func ratio(to other: [Double]) -> Double { zip(self, other).map { $0 / Swift.max($1, 1) }.median }
}
