/// Decides what one connection to a server sends (RFC 5321, STARTTLS RFC 3207, AUTH RFC 4954, SMTPUTF8 RFC 6531).
///
/// It takes what happens and returns what is to be done, in this order. The connection begins when it has a message for
/// it; one message is under way at a time, and each ends with one `finished` or `unsent`. Nothing is sent before the
/// reply to the last command is there, so a server that sends more than one reply to it is out of step: the connection
/// ends. Every step has a deadline.
struct SMTPStateMachine: Hashable {
    /// What the connection is for.
    struct Configuration: Hashable {
        var security: MailSecurity
        var credentials: SMTPCredentials?
        var limits = SMTPLimits()
    }

    enum Action: Hashable {
        case send([UInt8])
        /// A handshake begins; bytes that arrived in clear are not read any more.
        case startTLS
        /// Replaces the deadline: it has passed after this time, or never for nil.
        case wait(Duration?)
        /// The end of the message.
        case finished(MailOutcome)
        /// The connection, which had been kept, ended before the content of the message was sent: another connection
        /// may take it.
        case unsent(MailFailure)
        case close
    }

    private enum State: Hashable {
        case connecting, handshake, greeting, hello, startTLS
        /// `isSent`: the response was in the command.
        case plain(isSent: Bool)
        case loginUser, loginPassword
        case ready, sender, recipient, data, content, reset, quitting, closed
    }

    private let configuration: Configuration
    private var state = State.connecting
    private var reader: SMTPReplyReader
    private var envelope: SMTPEnvelope?
    private var extensions = SMTPExtensions()
    private var isEncrypted = false
    private var isGreeted = false
    /// How EHLO names this side.
    private var ownName = "[127.0.0.1]"
    /// Messages that began on this connection.
    private var messages = 0
    /// More has arrived than the reply that is handled.
    private var isOutOfStep = false

    init(_ configuration: Configuration) {
        self.configuration = configuration
        reader = SMTPReplyReader(configuration.limits)
    }

    /// Whether a message may be submitted.
    var takesMessage: Bool {
        guard envelope == nil else { return false }
        switch state {
        case .reset, .quitting, .closed: return false
        default: return true
        }
    }

    /// Whether the connection takes no more messages.
    var isEnding: Bool { state == .quitting || state == .closed }

    // MARK: Events

    mutating func submitted(_ envelope: SMTPEnvelope) -> [Action] {
        self.envelope = envelope
        return state == .ready ? begin() : []
    }

    /// - Parameter ownName: the own address as a literal (RFC 5321 §4.1.3).
    mutating func connected(ownName: String) -> [Action] {
        guard state == .connecting else { return [] }
        self.ownName = ownName
        if configuration.security == .implicitTLS {
            state = .handshake
            return [.wait(configuration.limits.handshakeTimeout)]
        }
        return awaitGreeting()
    }

    mutating func tlsEstablished() -> [Action] {
        guard state == .handshake else { return [] }
        isEncrypted = true
        return isGreeted ? hello() : awaitGreeting()
    }

    mutating func received(_ bytes: some Sequence<UInt8>) -> [Action] {
        switch state {
        case .connecting, .handshake, .closed: return []
        case .ready: return lost("the server sent a reply to no command")
        case .quitting: return closeQuietly()
        default: break
        }
        reader.append(bytes)
        do {
            guard let reply = try reader.next() else { return [] }
            isOutOfStep = !reader.isEmpty
            // What follows the reply to STARTTLS in clear, and what follows that to the content, changes nothing.
            if isOutOfStep, state != .startTLS, state != .content {
                return lost("the server sent more than one reply to a command")
            }
            return replied(reply)
        } catch {
            return lost(error.text)
        }
    }

    mutating func deadlinePassed() -> [Action] {
        switch state {
        case .closed: []
        case .ready: quit()
        case .quitting, .reset: closeQuietly()
        case .connecting: lost("no connection in time")
        case .handshake: lost("no handshake in time")
        default: lost("no reply in time")
        }
    }

    /// - Parameter problem: why, in words; nil when the server ended it.
    mutating func closed(_ problem: String? = nil) -> [Action] {
        lost(problem ?? "the server closed the connection")
    }

    /// Ends a connection that is not needed any more; its message fails.
    mutating func stopped(_ reason: String) -> [Action] {
        state == .ready ? quit() : lost(reason, isStopped: true)
    }

    // MARK: Replies

    private mutating func replied(_ reply: SMTPReply) -> [Action] {
        if state == .quitting || state == .reset && reply.code >= 300 { return closeQuietly() }
        if reply.code == 421 { return refusedConnection(reply) }
        let isDone = (200..<300).contains(reply.code)
        switch state {
        case .greeting, .hello, .startTLS, .plain, .loginUser, .loginPassword:
            return repliedBeforeMail(reply, isDone: isDone)
        case .sender where isDone:
            return send("RCPT TO:<\(envelope?.recipient.text ?? "")>", .recipient)
        case .recipient where isDone: return send("DATA", .data)
        case .data where reply.code == 354:
            state = .content
            return [.send(envelope?.content ?? []), .wait(configuration.limits.contentTimeout)]
        case .content where isDone: return ended(.accepted)
        case .reset where isDone: return becomeReady()
        default:
            guard reply.code >= 400 else { return unexpected(reply) }
            let needsUTF8 = envelope?.recipient.needsUTF8 == true
            return refused(Refusal.outcome(reply, at: step, needsUTF8: needsUTF8, hiding: secrets))
        }
    }

    private mutating func repliedBeforeMail(_ reply: SMTPReply, isDone: Bool) -> [Action] {
        switch state {
        case .greeting where isDone:
            isGreeted = true
            return hello()
        case .hello where isDone:
            extensions = SMTPExtensions(reply)
            return configuration.security == .none || isEncrypted ? authenticate() : requestTLS()
        case .startTLS where isDone:
            // What else came in clear may be forged: it is thrown away, and the extensions are asked for again.
            reader.discard()
            state = .handshake
            return [.wait(configuration.limits.handshakeTimeout), .startTLS]
        case .plain where isDone, .loginPassword where isDone: return becomeReady()
        case .plain(isSent: false) where reply.code == 334:
            return sendSecret(configuration.credentials?.plain, .plain(isSent: true))
        case .loginUser where reply.code == 334:
            return sendSecret(configuration.credentials?.login.user, .loginPassword)
        case .loginPassword where reply.code == 334:
            return sendSecret(configuration.credentials?.login.password, .plain(isSent: true))
        default: return reply.code >= 400 ? refusedConnection(reply) : unexpected(reply)
        }
    }

    // MARK: Steps

    private mutating func awaitGreeting() -> [Action] {
        state = .greeting
        return [.wait(configuration.limits.greetingTimeout)]
    }

    private mutating func hello() -> [Action] { send("EHLO \(ownName)", .hello) }

    private mutating func requestTLS() -> [Action] {
        guard extensions.hasStartTLS else {
            return lostPolitely("the server does not offer STARTTLS; nothing is sent without TLS")
        }
        return send("STARTTLS", .startTLS)
    }

    private mutating func authenticate() -> [Action] {
        guard let credentials = configuration.credentials else { return becomeReady() }
        state = .plain(isSent: false)
        guard isEncrypted else { return lostPolitely("no password is sent without TLS") }
        if extensions.authMechanisms.contains("PLAIN") {
            let command = "AUTH PLAIN \(credentials.plain)"
            // A longer line is sent in two (RFC 4954 §4).
            return command.utf8.count + 2 <= Self.commandBytesMax
                ? send(command, .plain(isSent: true)) : send("AUTH PLAIN", .plain(isSent: false))
        }
        if extensions.authMechanisms.contains("LOGIN") { return send("AUTH LOGIN", .loginUser) }
        return lostPolitely("the server offers neither AUTH PLAIN nor AUTH LOGIN")
    }

    private static let commandBytesMax = 512

    private mutating func becomeReady() -> [Action] {
        state = .ready
        return envelope == nil ? [.wait(configuration.limits.keptFor)] : begin()
    }

    private mutating func begin() -> [Action] {
        guard let envelope else { return [] }
        if envelope.isProbe { return ended(.accepted) }
        messages += 1
        state = .sender
        guard envelope.needsUTF8 else { return send("MAIL FROM:<\(envelope.sender.text)>", .sender) }
        guard extensions.hasUTF8 else {
            // The sender is that of all messages.
            let isOfAll = envelope.sender.needsUTF8
            let failure = MailFailure(
                step: .sender,
                text: "the server takes no addresses with letters beyond ASCII before the @ (SMTPUTF8)",
                concernsServer: isOfAll)
            return ended(isOfAll ? .temporary(failure) : .permanent(failure))
        }
        let body = extensions.hasEightBit ? " BODY=8BITMIME" : ""
        return send("MAIL FROM:<\(envelope.sender.text)>\(body) SMTPUTF8", .sender)
    }

    /// The server refused the message: RSET makes it forget the rest of it.
    private mutating func refused(_ outcome: MailOutcome) -> [Action] {
        let actions = ended(outcome, next: .reset)
        guard state == .reset else { return actions }
        return actions + send("RSET", .reset)
    }

    private mutating func ended(_ outcome: MailOutcome, next: State = .ready) -> [Action] {
        envelope = nil
        let finished = Action.finished(outcome)
        if isOutOfStep { return [finished] + closeQuietly() }
        if messages >= configuration.limits.messagesPerConnectionMax { return [finished] + quit() }
        state = next
        return next == .ready ? [finished, .wait(configuration.limits.keptFor)] : [finished]
    }

    private mutating func quit() -> [Action] {
        state = .quitting
        return [.send(Array("QUIT\r\n".utf8)), .wait(configuration.limits.quitTimeout)]
    }

    private mutating func send(_ command: String, _ next: State) -> [Action] {
        state = next
        return [.send(Array((command + "\r\n").utf8)), .wait(configuration.limits.replyTimeout)]
    }

    /// Without TLS nothing is sent.
    private mutating func sendSecret(_ text: String?, _ next: State) -> [Action] {
        guard isEncrypted, let text else { return lost("no password is sent without TLS") }
        return send(text, next)
    }

    // MARK: Ends

    private mutating func unexpected(_ reply: SMTPReply) -> [Action] {
        lost("the server sent the reply \(reply.code), which is none to this command")
    }

    private mutating func refusedConnection(_ reply: SMTPReply) -> [Action] {
        let text = Refusal.text(reply, at: step, hiding: secrets)
        return [.send(Array("QUIT\r\n".utf8))] + lost(text, code: reply.code)
    }

    private mutating func lostPolitely(_ text: String) -> [Action] { [.send(Array("QUIT\r\n".utf8))] + lost(text) }

    /// The connection ends, and with it the message. One that was kept may have ended before the server got the
    /// message; it is then not the message that failed.
    private mutating func lost(_ text: String, code: Int? = nil, isStopped: Bool = false) -> [Action] {
        guard state != .closed else { return [] }
        guard envelope != nil else { return closeQuietly() }
        let failure = MailFailure(step: step, code: code, text: text, concernsServer: !isStopped)
        let isUnsent = !isStopped && messages > 1 && [.sender, .recipient, .data].contains(state)
        envelope = nil
        return [isUnsent ? .unsent(failure) : .finished(.temporary(failure))] + closeQuietly()
    }

    private mutating func closeQuietly() -> [Action] {
        state = .closed
        return [.wait(nil), .close]
    }

    private var secrets: [String] { (configuration.credentials?.secrets ?? []) + (envelope?.secrets ?? []) }

    private var step: MailFailure.Step {
        switch state {
        case .connecting: .connection
        case .handshake: .handshake
        case .greeting: .greeting
        case .hello: .hello
        case .startTLS: .startTLS
        case .plain, .loginUser, .loginPassword: .authentication
        case .ready, .sender, .reset: .sender
        case .recipient: .recipient
        case .data: .data
        case .content, .quitting, .closed: .content
        }
    }
}
