import Foundation

/// Encodes text of headers beyond ASCII: `=?UTF-8?B?…?=` (RFC 2047), words of at most 75 characters that do not split a
/// character, on lines of at most 76.
enum EncodedWords {
    private static let prefix = "=?UTF-8?B?"
    private static let suffix = "?="
    private static let (wordMax, lineMax) = (75, 76)

    /// Whether the text can stand in a header as it is: short, printable and without what looks like an encoded word.
    static func isPlain(_ text: String) -> Bool {
        text.utf8.count <= 60 && text.utf8.allSatisfy { (0x20...0x7E).contains($0) } && !text.contains("=?")
            && !text.hasPrefix(" ") && !text.hasSuffix(" ")
    }

    /// - Parameter column: how many characters of the first line are taken, by the name of the header.
    static func encode(_ text: String, column: Int) -> String {
        var lines: [String] = []
        var piece = ""
        var capacity = bytes(in: lineMax - column)
        for part in parts(of: text) {
            if piece.utf8.count + part.utf8.count > capacity, !piece.isEmpty {
                lines.append(word(piece))
                piece = ""
                capacity = bytes(in: wordMax)
            }
            piece += part
        }
        lines.append(word(piece))
        return lines.joined(separator: "\r\n ")
    }

    /// How many bytes a word of so many characters can encode. A scalar always fits.
    private static func bytes(in characters: Int) -> Int {
        let encoded = min(characters, wordMax) - prefix.utf8.count - suffix.utf8.count
        return max(encoded / 4 * 3, 6)
    }

    private static func word(_ piece: String) -> String {
        prefix + Data(piece.utf8).base64EncodedString() + suffix
    }

    /// The characters; those that are long sequences, such as families of emoji, by scalars.
    private static func parts(of text: String) -> [String] {
        text.flatMap { character -> [String] in
            character.utf8.count <= 30 ? [String(character)] : character.unicodeScalars.map { String($0) }
        }
    }
}
