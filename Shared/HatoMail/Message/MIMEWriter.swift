/// Encodes a message (RFC 5322, RFC 2045): lines of at most 998 bytes that end with CRLF. All is ASCII but the address
/// of a mailbox that needs SMTPUTF8 (RFC 6532).
enum MIMEWriter {
    /// Never occurs in a body: quoted-printable has no `=_`, and base64 no `_`.
    private static let boundary = "=_hato_alternative"

    static func bytes(_ message: MailMessage) -> [UInt8] {
        var headers = [
            mailbox(message.from, "From"), mailbox(message.to, "To"), header("Subject", message.subject),
            "Date: \(MailDate.text(message.time))", "Message-ID: <\(message.id)@\(message.from.domain)>",
            "MIME-Version: 1.0",
            // Vacation programs send no response to it (RFC 3834).
            "Auto-Submitted: auto-generated",
        ]
        let text = part("plain", message.text)
        guard let html = message.html.map({ part("html", $0) }) else {
            return lines(headers + text.headers) + text.body
        }
        headers.append("Content-Type: multipart/alternative; boundary=\"\(boundary)\"")
        var bytes = lines(headers)
        // The last part is the one that mail programs prefer. The line break before a boundary is part of it.
        for part in [text, html] {
            bytes += lines(["--\(boundary)"] + part.headers) + part.body + Array("\r\n".utf8)
        }
        return bytes + Array("--\(boundary)--\r\n".utf8)
    }

    private static func part(_ subtype: String, _ text: String) -> (headers: [String], body: [UInt8]) {
        let encoding = BodyEncoding(for: text)
        let headers = [
            "Content-Type: text/\(subtype); charset=utf-8", "Content-Transfer-Encoding: \(encoding.rawValue)",
        ]
        return (headers, encoding.encode(text))
    }

    /// The lines and the empty one behind headers.
    private static func lines(_ lines: [String]) -> [UInt8] {
        Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    private static func header(_ name: String, _ text: String) -> String {
        let value = EncodedWords.isPlain(text) ? text : EncodedWords.encode(text, column: name.count + 2)
        return "\(name): \(value)"
    }

    /// The address is on a line of its own when there is a name beside it.
    private static func mailbox(_ address: MailAddress, _ name: String) -> String {
        guard let displayName = address.displayName else { return "\(name): \(address.text)" }
        let words =
            EncodedWords.isPlain(displayName)
            ? quoted(displayName) : EncodedWords.encode(displayName, column: name.count + 2)
        return "\(name): \(words)\r\n <\(address.text)>"
    }

    /// A quoted string (RFC 5322 §3.2.4).
    private static func quoted(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}
