/// Decodes percent codes (RFC 3986 §2.1).
enum PercentDecoding {
    /// The decoded text; nil for a broken percent code, and for bytes that are not UTF-8, encoded or not.
    ///
    /// - Parameter isForm: `+` is a blank, as in forms.
    static func decode(_ text: Substring, isForm: Bool = false) -> String? { decode(text.utf8.span, isForm: isForm) }

    /// The same for the bytes of a text.
    static func decode(_ bytes: Span<UInt8>, isForm: Bool = false) -> String? {
        isPlain(bytes, isForm) ? text(bytes) : decodeCodes(bytes, isForm)
    }

    /// Whether nothing is to be decoded, nor to be refused: most texts, and the long ones (tokens).
    private static func isPlain(_ bytes: Span<UInt8>, _ isForm: Bool) -> Bool {
        for index in bytes.indices {
            let byte = bytes[index]
            if byte >= 0x80 || byte == UInt8(ascii: "%") || isForm && byte == UInt8(ascii: "+") { return false }
        }
        return true
    }

    private static func text(_ bytes: Span<UInt8>) -> String? {
        bytes.withUnsafeBufferPointer { String(validating: $0, as: UTF8.self) }
    }

    private static func decodeCodes(_ bytes: Span<UInt8>, _ isForm: Bool) -> String? {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            switch byte {
            case UInt8(ascii: "%"):
                guard index + 1 < bytes.count, let high = hexDigit(bytes[index]), let low = hexDigit(bytes[index + 1])
                else { return nil }
                index += 2
                decoded.append(high << 4 | low)
            case UInt8(ascii: "+") where isForm: decoded.append(UInt8(ascii: " "))
            case replacement[0] where isReplacement(bytes, at: index - 1): return nil
            default: decoded.append(byte)
            }
        }
        return String(validating: decoded, as: UTF8.self)
    }

    /// This character stands for bytes that were no UTF-8 before the target became text; clients encode it.
    private static let replacement = Array("\u{FFFD}".utf8)

    private static func isReplacement(_ bytes: Span<UInt8>, at index: Int) -> Bool {
        bytes.count - index >= replacement.count
            && replacement.indices.allSatisfy { bytes[index + $0] == replacement[$0] }
    }

    private static func hexDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
