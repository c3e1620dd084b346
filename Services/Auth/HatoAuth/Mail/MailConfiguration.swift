import HatoIdentity
import HatoMail
import HatoModel

/// Where mails go and what they say, as the settings of the start have it.
struct MailConfiguration: Sendable {
    enum Destination: Sendable {
        case server(SMTPConfiguration)
        case folder(MailboxFolder)
    }

    var destination: Destination
    var from: MailAddress
    var templates: MailTemplates
    /// What operators should know about the files.
    private(set) var warnings: [String] = []

    /// Nil when mails have no destination. Throws `MailFieldError`.
    init?(_ setting: (_ name: String) -> String?) throws {
        let (url, folder) = (setting("mail-url"), setting("mailbox"))
        guard url != nil || folder != nil else {
            for name in ["mail-password-file", "mail-authority-file", "mail-from"] where setting(name) != nil {
                throw MailFieldError(name, "is set without mail-url; set both, or mailbox alone")
            }
            return nil
        }
        templates = try MailTemplates(folder: setting("mail-templates"))
        warnings = templates.warnings
        if let folder {
            guard url == nil else { throw MailFieldError("mailbox", "contradicts mail-url; set one of both") }
            destination = .folder(try MailboxFolder(folder))
            from = try MailAddress(named: setting("mail-from") ?? "hato@localhost.localdomain", field: "mail-from")
            return
        }
        guard let text = setting("mail-from") else {
            throw MailFieldError("mail-from", "is missing; give the sender, such as Chat <chat@example.com>")
        }
        from = try MailAddress(named: text, field: "mail-from")
        let password = try setting("mail-password-file").map { try Self.password($0) }
        if let warning = password?.warning { warnings.append(warning) }
        destination = .server(
            try SMTPConfiguration(
                url: MailURL(url ?? ""), password: password?.text,
                tls: SMTPConfiguration.TLS(rawValue: setting("mail-tls") ?? "required") ?? .required,
                authorityFile: setting("mail-authority-file")))
    }

    /// The first line of a file that only the user of the service may read.
    private static func password(_ path: String) throws -> (text: String, warning: String?) {
        let (bytes, access): ([UInt8], SecretFileAccess)
        do { (bytes, access) = try SecretFile.read(path) } catch {
            throw MailFieldError("mail-password-file", error.description)
        }
        let line = bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        let text = String(decoding: line, as: UTF8.self)
        switch access.verdict(for: SecretFile.user) {
        case .safe: return (text, nil)
        case .warning(let warning): return (text, "\(path): \(warning)")
        case .refused(let problem): throw MailFieldError("mail-password-file", "\(path): \(problem)")
        }
    }

    func makeDestination() throws -> any MailDestination {
        switch destination {
        case .server(let configuration): MailServer(client: try SMTPClient(configuration))
        case .folder(let folder): folder
        }
    }
}
