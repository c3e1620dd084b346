/// Decides what a reply that is no success means for the message.
///
/// A server's 5xx before RCPT (a wrong password, no STARTTLS, a sender that it does not take) is about the server or
/// its settings: it is no reason to drop messages, so it is temporary.
enum Refusal {
    /// Scalars of the text of replies.
    static let textMax = 300

    /// - Parameter needsUTF8: whether the recipient does: MAIL has the parameter for it.
    static func outcome(
        _ reply: SMTPReply, at step: MailFailure.Step, needsUTF8: Bool, hiding secrets: [String]
    ) -> MailOutcome {
        let concernsServer = step == .sender && !needsUTF8 || isAboutServer(reply.code, at: step)
        let failure = MailFailure(
            step: step, code: reply.code, text: text(reply, at: step, hiding: secrets), concernsServer: concernsServer)
        return reply.code >= 500 && !concernsServer ? .permanent(failure) : .temporary(failure)
    }

    /// 421 ends the connection; 530, 534, 535 and 538 want other credentials or TLS (RFC 4954 §6).
    private static func isAboutServer(_ code: Int, at step: MailFailure.Step) -> Bool {
        switch step {
        case .sender, .recipient, .data, .content: [421, 530, 534, 535, 538].contains(code)
        default: true
        }
    }

    /// The beginning of the text. A server may repeat what it got, so a text with a secret is left out, and after AUTH
    /// every text, except for its enhanced code.
    static func text(_ reply: SMTPReply, at step: MailFailure.Step, hiding secrets: [String]) -> String {
        let text = reply.lines.joined(separator: " ")
        if step == .authentication {
            let words =
                reply.code < 500
                ? "the server accepts no sign-in for now" : "the server refused the user name or the password"
            return reply.enhancedCode.map { "\($0) \(words)" } ?? words
        }
        if secrets.contains(where: { !$0.isEmpty && text.contains($0) }) {
            return "(the reply repeats a secret and is not shown)"
        }
        let beginning = String(text.unicodeScalars.prefix(textMax))
        return beginning.utf8.count < text.utf8.count ? beginning + "…" : text
    }
}
