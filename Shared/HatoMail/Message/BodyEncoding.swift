import Foundation

/// Encodes the text of a body into lines of at most 76 ASCII characters (RFC 2045 §6), in the encoding with fewer of
/// them: quoted-printable keeps Latin text legible, base64 takes less than half as much for Japanese.
enum BodyEncoding: String {
    case quotedPrintable = "quoted-printable"
    case base64

    private static let lineMax = 76

    /// The shorter one: quoted-printable writes three characters for each byte that is not printable ASCII, base64 four
    /// for three bytes.
    init(for text: String) {
        let escaped = text.utf8.count { !Self.isPrintable($0) && $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        self = escaped > text.utf8.count / 6 ? .base64 : .quotedPrintable
    }

    /// The lines, each ended by CRLF.
    func encode(_ text: String) -> [UInt8] {
        let lines = Self.lines(of: text)
        switch self {
        case .quotedPrintable: return lines.flatMap { Self.quoted($0) }
        case .base64:
            let bytes = Data(lines.flatMap { $0 + Self.lineEnd })
            let encoded = bytes.base64EncodedString(
                options: [.lineLength76Characters, .endLineWithCarriageReturn, .endLineWithLineFeed])
            return Array(encoded.utf8) + (encoded.hasSuffix("\r\n") || encoded.isEmpty ? [] : Self.lineEnd)
        }
    }

    private static let lineEnd = [UInt8(ascii: "\r"), UInt8(ascii: "\n")]

    private static func isPrintable(_ byte: UInt8) -> Bool { (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "=") }

    /// The lines of a text, whichever of CRLF, LF and CR ends them.
    private static func lines(of text: String) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var line: [UInt8] = []
        var isAfterReturn = false
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\n") where isAfterReturn: break
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
                lines.append(line)
                line = []
            default: line.append(byte)
            }
            isAfterReturn = byte == UInt8(ascii: "\r")
        }
        if !line.isEmpty { lines.append(line) }
        return lines
    }

    /// A line with soft breaks (`=` at the end), so that each piece has at most 76 characters.
    private static func quoted(_ line: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        var column = 0
        for (index, byte) in line.enumerated() {
            // Servers may remove a space at the end of a line.
            let isLast = index == line.count - 1
            let isKept = isPrintable(byte) && !(isLast && byte == UInt8(ascii: " "))
            let piece = isKept ? [byte] : escaped(byte)
            if column + piece.count > (isLast ? lineMax : lineMax - 1) {
                text += [UInt8(ascii: "=")] + lineEnd
                column = 0
            }
            text += piece
            column += piece.count
        }
        return text + lineEnd
    }

    private static func escaped(_ byte: UInt8) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return [UInt8(ascii: "="), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
}
