import HatoMail
import HatoModel

/// Makes the text of a mail of the queue, with its code, when it is sent.
struct MailComposer: Sendable {
    let configuration: MailConfiguration
    let links: CodeLinks
    let secrets: CodeSecrets
    let current: CurrentConfiguration

    /// Whether the mail has a link, as the settings are.
    func hasLink(_ mail: MailRecord) -> Bool {
        links.hasLink(continueUrl: mail.continueUrl, domains: current.configuration.continueDomains)
    }

    /// Throws `MailFieldError` for a mail that cannot be sent as it is.
    func compose(_ mail: MailRecord, _ code: CodeRecord, now: Int64) throws -> ComposedMail {
        let long = secrets.text(code)
        // Digits that are over when the mail arrives would only confuse.
        let digits = code.digitsUntil.flatMap { $0 > now ? secrets.digits(code) : nil }
        let settings = current.configuration
        // Its domain may have been taken off the setting since the request: then no code goes there.
        let isAllowed = (try? links.check(mail.continueUrl, domains: settings.continueDomains)) != nil
        let link = links.link(
            code.type, code: long, locale: mail.locale, continueUrl: isAllowed ? mail.continueUrl : nil)
        guard digits != nil || link != nil || !CodeLifetimes.hasDigits(code.type) else {
            throw mail.continueUrl == nil
                ? MailFieldError("action-url", "is not set any more, and the digits have expired")
                : MailFieldError("continueUrl", "is not allowed any more, and the digits have expired")
        }
        let text = try configuration.templates.text(
            mail.text, locale: mail.locale, mailLocale: settings.mailLocale,
            MailTemplates.Values(
                app: configuration.from.displayName ?? settings.project,
                email: code.type == .recoverEmail ? code.to : code.email ?? code.to, newEmail: code.newEmail,
                oldEmail: code.type == .changeEmail ? code.email : nil, digits: digits,
                minutes: max(1, ((code.digitsUntil ?? now) - now) / 60_000),
                code: CodeLifetimes.hasDigits(code.type) ? nil : long,
                link: link))
        let message = try MailMessage(
            from: configuration.from, to: MailAddress(mail.to, field: "to"), subject: text.subject, text: text.body,
            id: mail.name, time: mail.createdAt, secrets: [long, digits, link].compactMap { $0 })
        var entry = Auth.Mailbox.Mail(to: mail.to, type: code.type, code: long)
        (entry.time, entry.subject, entry.text) = (mail.createdAt, text.subject, text.body)
        (entry.digits, entry.link) = (digits, link)
        return ComposedMail(message: message, entry: entry)
    }
}
