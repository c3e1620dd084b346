/// Where a server is: `smtp://USER@HOST:587` (STARTTLS) or `smtps://USER@HOST:465` (TLS from the beginning).
///
/// The user is percent-encoded where it has other characters than a URL may have; an `@` may stand as it is. The ports
/// above are the ones that are used when the URL has none. A password is refused: it stands in a file.
public struct MailURL: Sendable, Hashable {
    /// A name in ASCII, or an address without brackets.
    public let host: String
    /// From 1 to 65535.
    public let port: Int
    /// The name to sign in with; nil when the server takes messages without.
    public let user: String?
    /// Whether the URL begins with `smtps`.
    public let isImplicitTLS: Bool

    /// The setting that errors name.
    static let field = "mail-url"
    private static let bytesMax = 1_024

    /// Reads a URL. Throws `MailFieldError`, which does not repeat it.
    public init(_ text: String) throws(MailFieldError) {
        try TextCheck.requireBytes(text, max: Self.bytesMax, Self.field)
        try TextCheck.requireNoControl(text, Self.field)
        let lowercased = text.lowercased()
        guard lowercased.hasPrefix("smtp://") || lowercased.hasPrefix("smtps://") else {
            throw Self.problem("must begin with smtp:// or smtps://, e.g. smtp://hato@mail.example.com:587")
        }
        isImplicitTLS = lowercased.hasPrefix("smtps://")
        var rest = text.drop { $0 != "/" }.dropFirst(2)
        if let at = rest.lastIndex(of: "@") {
            user = try Self.user(rest[..<at])
            rest = rest[rest.index(after: at)...]
        } else {
            user = nil
        }
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        if rest.contains(where: { "/?#".contains($0) }) {
            throw Self.problem("must end after the host and the port, e.g. smtp://hato@mail.example.com:587")
        }
        let (name, digits) = try Self.parts(rest)
        host = try Self.host(name)
        guard let digits else {
            port = isImplicitTLS ? 465 : 587
            return
        }
        guard digits.utf8.allSatisfy(SMTPReplyReader.isDigit), let port = Int(digits), (1...65_535).contains(port)
        else {
            throw Self.problem("must have a port from 1 to 65535")
        }
        self.port = port
    }

    /// Whether the server is on this machine, as far as the name says it.
    var isLoopback: Bool {
        if host == "localhost" || host == "::1" { return true }
        return host.hasPrefix("127.") && Self.isAddress(host)
    }

    private static func problem(_ text: String) -> MailFieldError { MailFieldError(field, text) }

    private static func user(_ text: Substring) throws(MailFieldError) -> String {
        if text.contains(":") {
            throw problem("must not contain a password, which belongs into the file of mail-password-file")
        }
        guard let user = percentDecoded(text), !user.isEmpty, !user.unicodeScalars.contains(where: TextCheck.isControl)
        else { throw problem("must have a user name before the @, percent-encoded where needed") }
        return user
    }

    /// The host, and the port when there is one.
    private static func parts(_ text: Substring) throws(MailFieldError) -> (host: Substring, port: Substring?) {
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            let host = text[text.index(after: text.startIndex)..<end]
            let behind = text[text.index(after: end)...]
            guard host.contains(":"), isAddress(String(host)), behind.isEmpty || behind.hasPrefix(":") else {
                throw problem("must have an IPv6 address in the brackets")
            }
            return (host, behind.isEmpty ? nil : behind.dropFirst())
        }
        guard let colon = text.firstIndex(of: ":") else { return (text, nil) }
        return (text[..<colon], text[text.index(after: colon)...])
    }

    private static func host(_ text: Substring) throws(MailFieldError) -> String {
        if isAddress(String(text)) { return String(text) }
        guard let domain = MailAddress.domainInASCII(text) else {
            throw problem("must have a host such as mail.example.com")
        }
        return domain.lowercased()
    }

    private static func percentDecoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let digits = String(rest.prefix(2)), digits.utf8.count == 2, digits.allSatisfy(\.isHexDigit),
                let value = UInt8(digits, radix: 16)
            else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
