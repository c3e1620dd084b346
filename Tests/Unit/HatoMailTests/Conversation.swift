import Testing

@testable import HatoMail

/// A state machine and what it did: each message, command and deadline, in order.
struct Conversation {
    var machine: SMTPStateMachine
    var sent: [String] = []
    var outcomes: [MailOutcome] = []
    var isUnsent = false
    var isClosed = false
    var isConnected = false
    var hasBegunTLS = false
    var deadline: Duration?

    init(
        _ security: MailSecurity = .startTLS, credentials: SMTPCredentials? = nil, limits: SMTPLimits = SMTPLimits()
    ) {
        machine = SMTPStateMachine(.init(security: security, credentials: credentials, limits: limits))
    }

    /// With a message, on a connection.
    static func begun(
        _ security: MailSecurity = .startTLS, credentials: SMTPCredentials? = nil, limits: SMTPLimits = SMTPLimits(),
        message: MailMessage? = nil
    ) throws -> Conversation {
        var conversation = Conversation(security, credentials: credentials, limits: limits)
        conversation.submit(try message ?? Mails.message())
        conversation.connect()
        return conversation
    }

    /// Signed in, with a message at MAIL.
    static func atMail(limits: SMTPLimits = SMTPLimits(), message: MailMessage? = nil) throws -> Conversation {
        var conversation = try begun(credentials: Mails.credentials, limits: limits, message: message)
        conversation.replies("220 ready", Mails.offers, "220 go")
        conversation.establishTLS()
        conversation.replies(Mails.offers, "235 welcome")
        return conversation
    }

    mutating func submit(_ message: MailMessage) { run(machine.submitted(SMTPEnvelope(message))) }
    mutating func connect() {
        isConnected = true
        run(machine.connected(ownName: "[192.0.2.1]"))
    }
    mutating func establishTLS() { run(machine.tlsEstablished()) }
    mutating func passDeadline() { run(machine.deadlinePassed()) }
    mutating func close() { run(machine.closed()) }
    mutating func receive(_ text: String) { run(machine.received(Array(text.utf8))) }
    mutating func replies(_ lines: String...) { for line in lines { receive(line + "\r\n") } }

    mutating func run(_ actions: [SMTPStateMachine.Action]) {
        for action in actions {
            switch action {
            case .send(let bytes): sent.append(String(decoding: bytes, as: UTF8.self))
            case .startTLS: hasBegunTLS = true
            case .wait(let time): deadline = time
            case .finished(let outcome): outcomes.append(outcome)
            case .unsent: isUnsent = true
            case .close: isClosed = true
            }
        }
    }

    var last: String? { sent.last }
    var outcome: MailOutcome? { outcomes.last }
    var failure: MailFailure? { outcome?.failure }
}

extension MailOutcome {
    var failure: MailFailure? {
        switch self {
        case .accepted: nil
        case .temporary(let failure), .permanent(let failure): failure
        }
    }

    var isTemporary: Bool { if case .temporary = self { true } else { false } }
    var isPermanent: Bool { if case .permanent = self { true } else { false } }
}

/// Messages and replies of the tests.
enum Mails {
    static let offers = "250-mail.example\r\n250-STARTTLS\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 AUTH PLAIN LOGIN"
    static let offersLess = "250-mail.example\r\n250 AUTH LOGIN"

    static var credentials: SMTPCredentials {
        get throws { try SMTPCredentials(user: "hato@example.com", password: "fly me home") }
    }

    static func message(
        to: String = "masuo@example.com", subject: String = "パスワードの再設定", text: String = "コード: 123456\n",
        html: String? = nil, secrets: [String] = []
    ) throws -> MailMessage {
        try MailMessage(
            from: MailAddress("noreply@example.org", displayName: "鳩", field: "from"),
            to: MailAddress(to, field: "to"), subject: subject, text: text, html: html, id: "m1",
            time: 1_795_699_888_000, secrets: secrets)
    }
}
