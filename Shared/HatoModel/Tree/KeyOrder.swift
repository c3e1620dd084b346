/// The order of keys (spec realtime-database §3.1): integer-like keys first, numerically and the shorter spelling
/// first, then the others by UTF-16 code unit. `[MIN_NAME]` is before and `[MAX_NAME]` after every key, as in the
/// bounds of queries.
///
/// Swift's `<` and `==` of strings are wrong here: they treat canonically equivalent texts as equal, keys are not.
public enum KeyOrder {
    /// Sorts before every key: Firebase's name of the lowest.
    public static let minName = "[MIN_NAME]"
    /// Sorts after every key: Firebase's name of the highest.
    public static let maxName = "[MAX_NAME]"

    /// Negative when `left` comes first, zero when they are the same key, positive when `right` comes first.
    public static func compare(_ left: String, _ right: String) -> Int {
        compare(left.utf8.span, right.utf8.span)
    }

    /// Whether `left` sorts before `right`.
    public static func precedes(_ left: String, _ right: String) -> Bool { compare(left, right) < 0 }

    /// The same for the keys' UTF-8 bytes.
    public static func compare(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Int {
        let leftRank = sentinelRank(left)
        let rightRank = sentinelRank(right)
        if leftRank != 0 || rightRank != 0 { return leftRank - rightRank }
        switch (integer(left), integer(right)) {
        case (let leftValue?, let rightValue?):
            if leftValue != rightValue { return leftValue < rightValue ? -1 : 1 }
            if left.count != right.count { return left.count - right.count }
            return UTF16Order.compare(left, right)
        case (_?, nil): return -1
        case (nil, _?): return 1
        case (nil, nil): return UTF16Order.compare(left, right)
        }
    }

    /// The value of an integer-like key: an optional minus and digits, from -2147483648 to 2147483647.
    public static func integer(_ key: Span<UInt8>) -> Int32? {
        guard key.count > 0 else { return nil }
        let isNegative = key[0] == UInt8(ascii: "-")
        var index = isNegative ? 1 : 0
        guard index < key.count else { return nil }
        var value: Int64 = 0
        while index < key.count {
            let digit = key[index] &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            value = value * 10 + Int64(digit)
            guard value <= 2_147_483_648 else { return nil }
            index += 1
        }
        return Int32(exactly: isNegative ? -value : value)
    }

    /// The integer by which a key is sorted; nil: it is sorted as text.
    public static func integer(_ key: String) -> Int32? { integer(key.utf8.span) }

    /// The array index of a key when an object is read as an array: `0`, `1`, `10`, but not `01`, `-1` (spec §2.1).
    public static func arrayIndex(_ key: String) -> Int? {
        let bytes = key.utf8.span
        guard bytes.count > 0, bytes.count <= 10 else { return nil }
        if bytes[0] == UInt8(ascii: "0") { return bytes.count == 1 ? 0 : nil }
        if bytes[0] == UInt8(ascii: "-") { return nil }
        return integer(bytes).map { Int($0) }
    }

    private static func sentinelRank(_ key: Span<UInt8>) -> Int {
        guard key.count == 10, key[0] == UInt8(ascii: "[") else { return 0 }
        if matches(key, "[MIN_NAME]") { return -1 }
        return matches(key, "[MAX_NAME]") ? 1 : 0
    }

    private static func matches(_ key: Span<UInt8>, _ text: StaticString) -> Bool {
        guard key.count == text.utf8CodeUnitCount else { return false }
        return text.withUTF8Buffer { buffer in
            for index in buffer.indices where buffer[index] != key[index] { return false }
            return true
        }
    }
}

/// The order of texts by UTF-16 code unit, computed from their UTF-8 bytes: both orders agree except that supplementary
/// characters (lead bytes F0 to F4), which UTF-16 encodes as surrogates, come before U+E000 to U+FFFF (lead bytes EE
/// and EF).
public enum UTF16Order {
    /// Negative when `left` comes first, zero when the bytes are equal, positive when `right` comes first.
    public static func compare(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Int {
        let shared = min(left.count, right.count)
        var index = 0
        while index < shared {
            let (a, b) = (left[index], right[index])
            if a != b { return rank(a) - rank(b) }
            index += 1
        }
        return left.count - right.count
    }

    /// Negative, zero or positive when `left` sorts before, with or after `right`.
    public static func compare(_ left: String, _ right: String) -> Int {
        compare(left.utf8.span, right.utf8.span)
    }

    private static func rank(_ byte: UInt8) -> Int {
        switch byte {
        case 0xEE...0xEF: Int(byte) + 0x10
        default: Int(byte)
        }
    }
}
