/// Encodes arbitrary names as keys of the tree: a forbidden byte is written as `%` and two hexadecimal digits.
///
/// `escape` is reversible for every text and leaves most texts unchanged; `unescape` returns any text that `escape`
/// does not produce unchanged, so that it may be used to display any key.
public enum KeyEscaping {
    /// A key for `name`: the forbidden characters `. # $ / [ ]`, controls and `%` itself as `%2E`.
    public static func escape(_ name: String) -> String {
        guard name.utf8.contains(where: mustEscape) else { return name }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(name.utf8.count + 8)
        for byte in name.utf8 {
            if mustEscape(byte) {
                bytes.append(UInt8(ascii: "%"))
                bytes.append(digits[Int(byte >> 4)])
                bytes.append(digits[Int(byte & 15)])
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The name from which a key was made.
    public static func unescape(_ key: String) -> String {
        guard key.utf8.contains(UInt8(ascii: "%")) else { return key }
        var bytes: [UInt8] = []
        var rest = Array(key.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2, let high = value(of: rest[rest.startIndex]),
                let low = value(of: rest[rest.startIndex + 1]), mustEscape(high << 4 | low)
            {
                bytes.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    private static func mustEscape(_ byte: UInt8) -> Bool {
        switch byte {
        case 0..<0x20, 0x7F: true
        case UInt8(ascii: "."), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "/"), UInt8(ascii: "["),
            UInt8(ascii: "]"), UInt8(ascii: "%"):
            true
        default: false
        }
    }

    private static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
