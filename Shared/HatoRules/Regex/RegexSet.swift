/// A set of Unicode scalars, as a class, an escape or a single character of a regular expression names it.
struct RegexSet: Sendable, Hashable {
    private var ranges: [ClosedRange<UInt32>] = []
    /// The complement is meant.
    private var isNegated = false
    private var isCaseInsensitive = false
    /// The answers for ASCII, one bit each: nearly all that is ever asked.
    private var ascii: (low: UInt64, high: UInt64) = (0, 0)

    init(_ ranges: [ClosedRange<UInt32>], isNegated: Bool = false, isCaseInsensitive: Bool = false) {
        self.ranges = ranges
        self.isNegated = isNegated
        self.isCaseInsensitive = isCaseInsensitive
        for value in UInt32(0)..<128 where computed(value) {
            if value < 64 { ascii.low |= 1 << UInt64(value) } else { ascii.high |= 1 << UInt64(value - 64) }
        }
    }

    init(_ scalar: Unicode.Scalar, isCaseInsensitive: Bool) {
        self.init([scalar.value...scalar.value], isCaseInsensitive: isCaseInsensitive)
    }

    /// Everything but the ends of lines.
    static let any = RegexSet([0xA...0xA, 0xD...0xD, 0x2028...0x2029], isNegated: true)

    func contains(_ scalar: Unicode.Scalar) -> Bool {
        let value = scalar.value
        if value < 64 { return ascii.low >> UInt64(value) & 1 == 1 }
        if value < 128 { return ascii.high >> UInt64(value - 64) & 1 == 1 }
        return computed(value)
    }

    private func computed(_ value: UInt32) -> Bool {
        var isIn = holds(value)
        if !isIn, isCaseInsensitive, let scalar = Unicode.Scalar(value) {
            isIn =
                Self.single(scalar.properties.lowercaseMapping).map(holds) ?? false
                || Self.single(scalar.properties.uppercaseMapping).map(holds) ?? false
        }
        return isIn != isNegated
    }

    private func holds(_ value: UInt32) -> Bool { ranges.contains { $0.contains(value) } }

    private static func single(_ mapping: String) -> UInt32? {
        let scalars = mapping.unicodeScalars
        guard let first = scalars.first, scalars.count == 1 else { return nil }
        return first.value
    }

    static func == (left: RegexSet, right: RegexSet) -> Bool {
        left.ranges == right.ranges && left.isNegated == right.isNegated
            && left.isCaseInsensitive == right.isCaseInsensitive
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(ranges)
        hasher.combine(isNegated)
        hasher.combine(isCaseInsensitive)
    }
}

extension RegexSet {
    static let digits: [ClosedRange<UInt32>] = [0x30...0x39]
    static let words: [ClosedRange<UInt32>] = [0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A]
    static let spaces: [ClosedRange<UInt32>] = [
        0x9...0xD, 0x20...0x20, 0xA0...0xA0, 0x1680...0x1680, 0x2000...0x200A, 0x2028...0x2029, 0x202F...0x202F,
        0x205F...0x205F, 0x3000...0x3000, 0xFEFF...0xFEFF,
    ]

    /// All scalars that are not in these ranges, which are in order and apart.
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
