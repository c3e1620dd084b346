/// What a server offers in its reply to EHLO (RFC 5321 §4.1.1.1).
struct SMTPExtensions: Hashable {
    var hasStartTLS = false
    /// Addresses beyond ASCII (RFC 6531).
    var hasUTF8 = false
    /// Bytes beyond ASCII (RFC 6152), which a message for such an address has.
    var hasEightBit = false
    /// In upper case.
    var authMechanisms: Set<String> = []

    init() {}

    /// The first line is the server's name.
    init(_ reply: SMTPReply) {
        for line in reply.lines.dropFirst() {
            let words = line.uppercased().split(separator: " ").map(String.init)
            switch words.first {
            case "STARTTLS": hasStartTLS = true
            case "SMTPUTF8": hasUTF8 = true
            case "8BITMIME": hasEightBit = true
            case "AUTH": authMechanisms.formUnion(words.dropFirst())
            default: break
            }
        }
    }
}
