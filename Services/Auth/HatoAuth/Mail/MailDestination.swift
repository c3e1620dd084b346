import HatoMail
import HatoModel

/// Where mails go.
protocol MailDestination: Sendable {
    /// Hands one mail over.
    func send(_ mail: ComposedMail) async -> MailOutcome

    /// Ends the connection, if there is one.
    func close() async
}

/// A mail with its code, as it is sent. Never kept.
struct ComposedMail: Sendable {
    var message: MailMessage
    /// As a folder has it.
    var entry: Auth.Mailbox.Mail
}

/// An SMTP server.
struct MailServer: MailDestination {
    let client: SMTPClient

    func send(_ mail: ComposedMail) async -> MailOutcome { await client.send(mail.message) }
    func close() async { await client.close() }
}
