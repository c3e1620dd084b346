import Foundation

/// A message as a mail program reads it: a small, independent reading of RFC 5322 and RFC 2045 for the tests.
struct DecodedMail {
    var headers: [String: String] = [:]
    /// The types and the texts of the bodies.
    var bodies: [(type: String, text: String)] = []
    var lines: [String]

    init?(_ bytes: [UInt8]) {
        guard let text = String(validating: bytes, as: UTF8.self), text.utf8.elementsEqual(bytes) else { return nil }
        lines = text.components(separatedBy: "\r\n")
        guard lines.allSatisfy({ !$0.utf8.contains(13) && !$0.utf8.contains(10) }), lines.last == "" else { return nil }
        guard let (headers, body) = Self.part(text) else { return nil }
        self.headers = headers.mapValues(Self.decoded)
        guard let type = headers["Content-Type"] else { return nil }
        guard let match = type.firstMatch(of: #/multipart/alternative; boundary="(.+)"/#) else {
            guard let decoded = Self.body(headers, body) else { return nil }
            bodies = [(type, decoded)]
            return
        }
        let pieces = ("\r\n" + body).components(separatedBy: "\r\n--\(match.1)")
        guard pieces.last == "--\r\n" else { return nil }
        for piece in pieces.dropFirst().dropLast() {
            guard piece.hasPrefix("\r\n"), let (headers, body) = Self.part(String(piece.dropFirst())),
                let decoded = Self.body(headers, body)
            else { return nil }
            bodies.append((headers["Content-Type"] ?? "", decoded))
        }
    }

    private static func part(_ text: String) -> (headers: [String: String], body: String)? {
        guard let end = text.range(of: "\r\n\r\n") else { return nil }
        var headers: [String: String] = [:]
        // A folded line belongs to the one above it.
        let unfolded = text[..<end.lowerBound].replacingOccurrences(of: "\r\n ", with: " ")
        for line in unfolded.components(separatedBy: "\r\n") {
            guard let colon = line.range(of: ": ") else { return nil }
            headers[String(line[..<colon.lowerBound])] = String(line[colon.upperBound...])
        }
        return (headers, String(text[end.upperBound...]))
    }

    /// The space between two encoded words is not part of the text.
    private static func decoded(_ header: String) -> String {
        var text = ""
        var rest = header[...]
        while let match = rest.firstMatch(of: #/=\?UTF-8\?B\?([A-Za-z0-9+\/=]*)\?=/#) {
            let between = rest[..<match.range.lowerBound]
            if !(between == " " && match.range.lowerBound > header.startIndex && !text.isEmpty) { text += between }
            text += Data(base64Encoded: String(match.1)).flatMap { String(validating: $0, as: UTF8.self) } ?? "\u{FFFD}"
            rest = rest[match.range.upperBound...]
        }
        return text + rest
    }

    private static func body(_ headers: [String: String], _ body: String) -> String? {
        switch headers["Content-Transfer-Encoding"] {
        case "base64":
            Data(base64Encoded: body, options: .ignoreUnknownCharacters).flatMap {
                String(validating: $0, as: UTF8.self)
            }
        case "quoted-printable": quotedPrintable(body)
        default: nil
        }
    }

    private static func quotedPrintable(_ body: String) -> String? {
        var bytes: [UInt8] = []
        var rest = body.replacingOccurrences(of: "=\r\n", with: "").utf8[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "=") {
                guard let digits = String(rest.prefix(2)), let value = UInt8(digits, radix: 16) else { return nil }
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
