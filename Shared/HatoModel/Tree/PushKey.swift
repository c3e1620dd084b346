/// A key that sorts by time (spec realtime-database §5): 8 characters of milliseconds and 12 random ones.
public struct PushKey: Sendable, Hashable {
    /// The 20 characters of the key.
    public let text: String

    static let alphabet = Array("-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz".utf8)
    static let millisecondsMax: Int64 = (1 << 48) - 1
    /// Half of the random part: six characters.
    static let halfMax: UInt64 = (1 << 36) - 1

    /// Reads a key. Throws `ArgumentError` when the text is not one.
    public init(_ text: String) throws(ArgumentError) {
        guard text.utf8.count == 20, text.utf8.allSatisfy({ PushKey.digit($0) != nil }) else {
            throw ArgumentError(
                reason: "invalid_key",
                "\(TreeKey.quoted(text)) is no push key; one is 20 characters of - 0-9 A-Z _ a-z, e.g. \"-NjEtLV-0Ab_cdEfGhIj\""
            )
        }
        self.text = text
    }

    /// The key of a time and 72 random bits, given as two halves of 36.
    init(milliseconds: Int64, high: UInt64, low: UInt64) {
        text = String(unsafeUninitializedCapacity: 20) { buffer in
            PushKey.write(UInt64(max(0, min(milliseconds, PushKey.millisecondsMax))), to: buffer, at: 0..<8)
            PushKey.write(high, to: buffer, at: 8..<14)
            PushKey.write(low, to: buffer, at: 14..<20)
            return 20
        }
    }

    /// A key of a past time with a given random part, e.g. a hash of the imported data, so that importing twice makes
    /// the same keys.
    ///
    /// - Parameters:
    ///   - milliseconds: since 1970; a time outside 0 to 2^48 - 1 becomes the nearest one inside.
    ///   - random: two halves, of which the lower 36 bits count.
    public init(milliseconds: Int64, random: (UInt64, UInt64)) {
        self.init(milliseconds: milliseconds, high: random.0 & PushKey.halfMax, low: random.1 & PushKey.halfMax)
    }

    /// The time of the key in milliseconds since 1970.
    public var milliseconds: Int64 {
        var value: Int64 = 0
        for byte in text.utf8.prefix(8) { value = value << 6 | Int64(PushKey.digit(byte) ?? 0) }
        return value
    }

    private static func write(_ value: UInt64, to buffer: UnsafeMutableBufferPointer<UInt8>, at indexes: Range<Int>) {
        var rest = value
        for index in indexes.reversed() {
            buffer[index] = alphabet[Int(rest & 63)]
            rest >>= 6
        }
    }

    private static func digit(_ byte: UInt8) -> Int? {
        switch byte {
        case UInt8(ascii: "-"): 0
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0")) + 1
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): Int(byte - UInt8(ascii: "A")) + 11
        case UInt8(ascii: "_"): 37
        case UInt8(ascii: "a")...UInt8(ascii: "z"): Int(byte - UInt8(ascii: "a")) + 38
        default: nil
        }
    }
}

extension PushKey: Comparable {
    public static func < (left: PushKey, right: PushKey) -> Bool { UTF16Order.compare(left.text, right.text) < 0 }
}

extension PushKey: CustomStringConvertible {
    public var description: String { text }
}

/// Generates push keys, each greater than the previous one, also within a millisecond and when the clock steps back.
public struct PushKeyGenerator: Sendable {
    private var milliseconds: Int64 = -1
    private var high: UInt64 = 0
    private var low: UInt64 = 0

    public init() {}

    /// - Parameter now: milliseconds since 1970.
    public mutating func next(now: Int64, using random: inout some RandomNumberGenerator) -> PushKey {
        if now > milliseconds {
            start(at: now, using: &random)
        } else if low < PushKey.halfMax {
            low += 1
        } else if high < PushKey.halfMax {
            high += 1
            low = 0
        } else {
            start(at: milliseconds + 1, using: &random)
        }
        return PushKey(milliseconds: milliseconds, high: high, low: low)
    }

    private mutating func start(at time: Int64, using random: inout some RandomNumberGenerator) {
        milliseconds = time
        high = random.next() & PushKey.halfMax
        low = random.next() & PushKey.halfMax
    }
}

extension PushKey: FieldText {}
