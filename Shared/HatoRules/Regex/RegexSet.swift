/// A set of Unicode scalars: a class, an escape or a single character of a regular expression.
///
/// A membership test takes at most the logarithm of the number of its ranges.
struct RegexSet: Sendable, Hashable {
    /// The US-ASCII members, one bit each: nearly all tests need only these.
    private var low: UInt64 = 0
    private var high: UInt64 = 0
    /// The ranges above US-ASCII, sorted and disjoint.
    private var ranges: [ClosedRange<UInt32>] = []
    /// Whether the set is the complement of `ranges`.
    private var isNegated = false

    /// - Parameter isCaseInsensitive: whether letters of US-ASCII match both cases, like Java's `CASE_INSENSITIVE`;
    ///   other letters match themselves only (spec §9.5).
    init(_ ranges: [ClosedRange<UInt32>], isNegated: Bool = false, isCaseInsensitive: Bool = false) {
        var wide: [ClosedRange<UInt32>] = []
        for range in ranges {
            insert(range)
            if isCaseInsensitive {
                insert(range, ifIn: 0x41...0x5A, movedBy: 0x20)
                insert(range, ifIn: 0x61...0x7A, movedBy: -0x20)
            }
            if range.upperBound >= 0x80 { wide.append(max(range.lowerBound, 0x80)...range.upperBound) }
        }
        self.ranges = Self.merged(wide)
        self.isNegated = isNegated
        if isNegated { (low, high) = (~low, ~high) }
    }

    init(_ scalar: Unicode.Scalar, isCaseInsensitive: Bool) {
        self.init([scalar.value...scalar.value], isCaseInsensitive: isCaseInsensitive)
    }

    /// Everything except line terminators.
    static let any = RegexSet([0xA...0xA, 0xD...0xD, 0x2028...0x2029], isNegated: true)

    func contains(_ scalar: Unicode.Scalar) -> Bool {
        let value = scalar.value
        if value < 64 { return low >> UInt64(value) & 1 == 1 }
        if value < 128 { return high >> UInt64(value - 64) & 1 == 1 }
        return holds(value) != isNegated
    }

    /// Sets the bits of the US-ASCII part of a range.
    private mutating func insert(_ range: ClosedRange<UInt32>) {
        guard range.lowerBound < 0x80 else { return }
        for value in range.lowerBound...min(range.upperBound, 0x7F) {
            if value < 64 { low |= 1 << UInt64(value) } else { high |= 1 << UInt64(value - 64) }
        }
    }

    /// Inserts the part of a range that is in `letters`, in the other case.
    private mutating func insert(_ range: ClosedRange<UInt32>, ifIn letters: ClosedRange<UInt32>, movedBy offset: Int32)
    {
        guard range.overlaps(letters) else { return }
        let common = range.clamped(to: letters)
        let distance = UInt32(bitPattern: offset)
        insert(common.lowerBound &+ distance...common.upperBound &+ distance)
    }

    /// Sorts the ranges and merges those that overlap or touch.
    private static func merged(_ ranges: [ClosedRange<UInt32>]) -> [ClosedRange<UInt32>] {
        if ranges.count < 2 { return ranges }
        var merged: [ClosedRange<UInt32>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = merged.last, range.lowerBound <= last.upperBound + 1 {
                merged[merged.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                merged.append(range)
            }
        }
        return merged
    }

    private func holds(_ value: UInt32) -> Bool {
        var (first, end) = (0, ranges.count)
        while first < end {
            let middle = (first + end) / 2
            if ranges[middle].upperBound < value { first = middle + 1 } else { end = middle }
        }
        return first < ranges.count && ranges[first].lowerBound <= value
    }
}

extension RegexSet {
    static let digits: [ClosedRange<UInt32>] = [0x30...0x39]
    static let words: [ClosedRange<UInt32>] = [0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A]
    static let spaces: [ClosedRange<UInt32>] = [
        0x9...0xD, 0x20...0x20, 0xA0...0xA0, 0x1680...0x1680, 0x2000...0x200A, 0x2028...0x2029, 0x202F...0x202F,
        0x205F...0x205F, 0x3000...0x3000, 0xFEFF...0xFEFF,
    ]

    /// All scalars outside these ranges, which are sorted and disjoint.
    static func complement(_ ranges: [ClosedRange<UInt32>]) -> [ClosedRange<UInt32>] {
        var rest: [ClosedRange<UInt32>] = []
        var next: UInt32 = 0
        for range in ranges {
            if next < range.lowerBound { rest.append(next...range.lowerBound - 1) }
            next = range.upperBound + 1
        }
        rest.append(next...0x10FFFF)
        return rest
    }
}
