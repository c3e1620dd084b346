/// Bounds of a connection to an SMTP server. The times are those for one step each: the server must have sent its whole
/// reply by then.
public struct SMTPLimits: Sendable, Hashable {
    /// How long connecting may take.
    public var connectTimeout = Duration.seconds(10)
    /// Of a TLS handshake.
    public var handshakeTimeout = Duration.seconds(30)
    /// From the connection to the greeting: servers let clients wait that they do not know.
    public var greetingTimeout = Duration.seconds(60)
    /// Of each command.
    public var replyTimeout = Duration.seconds(60)
    /// Of the content, which is written in this time too. A shorter one sends messages twice that the server still
    /// checks (RFC 5321 §4.5.3.2.6).
    public var contentTimeout = Duration.seconds(600)
    /// Of the last command, QUIT.
    public var quitTimeout = Duration.seconds(5)
    /// How long a connection without a message is kept.
    public var keptFor = Duration.seconds(30)
    /// Messages on one connection.
    public var messagesPerConnectionMax = 100
    /// Messages that wait for the connection.
    public var waitingMax = 64
    /// Of a line of a reply, with its end (RFC 5321 §4.5.3.1.5).
    public var replyLineBytesMax = 512
    /// Lines of a reply.
    public var replyLinesMax = 100

    public init() {}
}
