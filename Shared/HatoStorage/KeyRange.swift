#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Keys from `lower` (included) to `upper` (excluded; nil: to the end).
public struct KeyRange: Sendable, Hashable {
    /// The first key of the range.
    public var lower: [UInt8]
    /// The key at which the range ends (excluded); nil: there is no end.
    public var upper: [UInt8]?

    public init(lower: [UInt8], upper: [UInt8]?) {
        self.lower = lower
        self.upper = upper
    }

    /// Every key that begins with `prefix`.
    public init(prefix: [UInt8]) {
        var upper = prefix
        while let last = upper.last, last == 0xFF { upper.removeLast() }
        if upper.isEmpty {
            self.init(lower: prefix, upper: nil)
        } else {
            upper[upper.count - 1] += 1
            self.init(lower: prefix, upper: upper)
        }
    }

    /// Every key there is.
    public static let all = KeyRange(lower: [], upper: nil)

    /// Whether no key can be in the range.
    public var isEmpty: Bool {
        guard let upper else { return false }
        return !lower.span.precedes(upper.span)
    }
}

extension Span<UInt8> {
    /// The order of keys: unsigned bytes, a prefix before the keys that begin with it.
    package func precedes(_ other: Span<UInt8>) -> Bool { compare(other) < 0 }

    /// Negative, zero or positive: before, equal to, after `other`.
    package func compare(_ other: Span<UInt8>) -> Int {
        let order = withUnsafeBytes { mine in
            other.withUnsafeBytes { theirs -> Int32 in
                let shared = Swift.min(mine.count, theirs.count)
                guard shared > 0, let mine = mine.baseAddress, let theirs = theirs.baseAddress else { return 0 }
                return memcmp(mine, theirs, shared)
            }
        }
        return order != 0 ? Int(order) : count - other.count
    }
}

extension Array<UInt8> {
    func compare(_ other: Span<UInt8>) -> Int { span.compare(other) }
}
