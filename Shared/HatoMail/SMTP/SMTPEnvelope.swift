/// A message as a server gets it.
struct SMTPEnvelope: Hashable, Sendable {
    var sender: MailAddress
    var recipient: MailAddress
    /// Lines that end with CRLF, then a line with a dot only; a line of the message that begins with a dot has another
    /// one before it (RFC 5321 §4.5.2).
    var content: [UInt8]
    var secrets: [String]
    /// Nothing is sent: it is done as soon as the server would take a message.
    var isProbe = false

    init(_ message: MailMessage) {
        sender = message.from
        recipient = message.to
        secrets = message.secrets
        content = Self.stuffed(MIMEWriter.bytes(message))
    }

    /// A probe on behalf of a sender.
    init(probeBy sender: MailAddress) {
        (self.sender, recipient) = (sender, sender)
        (content, secrets, isProbe) = ([], [], true)
    }

    var needsUTF8: Bool { sender.needsUTF8 || recipient.needsUTF8 }

    static func stuffed(_ lines: [UInt8]) -> [UInt8] {
        let dot = UInt8(ascii: ".")
        var content: [UInt8] = []
        content.reserveCapacity(lines.count + 16)
        var isAtStart = true
        for byte in lines {
            if isAtStart, byte == dot { content.append(dot) }
            content.append(byte)
            isAtStart = byte == UInt8(ascii: "\n")
        }
        return content + Array((isAtStart ? ".\r\n" : "\r\n.\r\n").utf8)
    }
}
