/// What became of a message.
public enum MailOutcome: Sendable, Hashable {
    /// The server has it, and is responsible for it from now on.
    case accepted
    /// It may be sent again: the server refused it for now (4xx), or it could not be given to the server at all. If the
    /// connection was lost after the content was sent, the server may have the message.
    case temporary(MailFailure)
    /// The server refused this message for good (5xx).
    case permanent(MailFailure)
}

/// Why a message was not accepted. It has no password, and no text that the message declares as a secret.
public struct MailFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// What was done when it failed.
    public enum Step: String, Sendable, Hashable, CaseIterable {
        /// Connecting.
        case connection
        /// The TLS handshake.
        case handshake = "TLS"
        /// Waiting for the first reply.
        case greeting
        /// Asking for the extensions of the server.
        case hello = "EHLO"
        /// Asking for TLS.
        case startTLS = "STARTTLS"
        /// Signing in.
        case authentication = "AUTH"
        /// Sending the address of the sender.
        case sender = "MAIL"
        /// Sending the address of the recipient.
        case recipient = "RCPT"
        /// Asking whether the content may be sent.
        case data = "DATA"
        /// Sending the content.
        case content
        /// Waiting for its turn.
        case waiting
    }

    /// What was done when it failed.
    public var step: Step
    /// The code of the server's reply; nil when there was none.
    public var code: Int?
    /// The beginning of the server's reply, or what happened, in words.
    public var text: String
    /// Whether it is about the server or the connection to it, not about this message: others fail likewise.
    public var concernsServer: Bool

    public init(step: Step, code: Int? = nil, text: String, concernsServer: Bool) {
        self.step = step
        self.code = code
        self.text = text
        self.concernsServer = concernsServer
    }

    public var description: String {
        [step.rawValue + ":", code.map(String.init) ?? "", text].filter { !$0.isEmpty }.joined(separator: " ")
    }
}
