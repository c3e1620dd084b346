/// Two escapes of four hexadecimal digits that encode one scalar: `\uD83D\uDE00` is 😀.
///
/// Half a pair is refused everywhere: no text here can hold one, so it would never be equal to anything.
enum SurrogatePair {
    static let unpaired = "Invalid escape: unpaired surrogate"

    static func isHigh(_ unit: UInt32) -> Bool { (0xD800...0xDBFF).contains(unit) }

    /// Nil unless `high` and `low` are a surrogate pair.
    static func scalar(_ high: UInt32, _ low: UInt32) -> Unicode.Scalar? {
        guard isHigh(high), (0xDC00...0xDFFF).contains(low) else { return nil }
        return Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
    }

    /// The value of a hexadecimal digit of US-ASCII.
    static func hexDigit(_ scalar: Unicode.Scalar) -> UInt32? {
        switch scalar {
        case "0"..."9": scalar.value - 0x30
        case "a"..."f": scalar.value - 0x61 + 10
        case "A"..."F": scalar.value - 0x41 + 10
        default: nil
        }
    }
}
