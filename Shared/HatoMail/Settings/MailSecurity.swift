/// How a connection to a server is protected.
public enum MailSecurity: Sendable, Hashable {
    /// It begins in clear and is then encrypted (RFC 3207); a server that does not offer that gets no message.
    case startTLS
    /// TLS from the beginning (RFC 8314).
    case implicitTLS
    /// Not at all; without a password, and only to a server on this machine.
    case none
}
