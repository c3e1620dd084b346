import HatoMail

/// The SMTP server to which an app gives its e-mails, and the sender of these.
///
/// Its description hides the password.
public struct MailCredentials: Sendable {
    /// What the apps file says, named as the settings of auth without their `mail-`.
    public struct Settings: Sendable, Hashable {
        /// `smtp://USER@HOST:587` or `smtps://USER@HOST:465`.
        public var url: String
        /// The sender: `name@example.com` or `Name <name@example.com>`.
        public var from: String
        /// The file of the password, as it was read: its first line counts.
        public var password: [UInt8]?
        /// `required` or `none`.
        public var tls: String?
        /// PEM: the authorities whose certificates are trusted; nil: those of the operating system.
        public var authorities: [UInt8]?
        /// The language of what the notifier itself says, for devices without one.
        public var locale: String?

        public init(url: String, from: String) {
            self.url = url
            self.from = from
        }
    }

    /// A setting that cannot be used, by its name in the apps file.
    public struct Problem: Error, Sendable, Hashable {
        /// The name.
        public var member: String
        /// What is wrong, and what would be right.
        public var text: String
    }

    let from: MailAddress
    let configuration: SMTPConfiguration
    let language: MailLanguage
    private let settings: Settings

    /// Throws for the first setting that cannot be used. The error does not show the password.
    public init(_ settings: Settings) throws(Problem) {
        do throws(MailFieldError) {
            from = try MailAddress(named: settings.from, field: "mail-from")
            guard let tls = SMTPConfiguration.TLS(rawValue: settings.tls ?? "required") else {
                throw MailFieldError("mail-tls", "must be required or none")
            }
            var configuration = try SMTPConfiguration(
                url: MailURL(settings.url), password: settings.password.map(Self.firstLine), tls: tls)
            configuration.authorities = settings.authorities
            configuration.limits = Self.limits
            self.configuration = configuration
            guard let language = MailLanguage(settings.locale ?? MailLanguage.english.rawValue) else {
                throw MailFieldError(
                    "locale", "must be \(MailLanguage.allCases.map(\.rawValue).joined(separator: " or "))")
            }
            self.language = language
            self.settings = settings
            // Reads the authorities; it connects to nothing.
            _ = try SMTPClient(configuration)
        } catch {
            throw Problem(member: Self.member(error.field), text: Self.member(error.problem))
        }
    }

    /// Times in which an attempt with all its steps mostly ends; `MailChannel.Limits` bounds the whole.
    private static var limits: SMTPLimits {
        var limits = SMTPLimits()
        (limits.connectTimeout, limits.handshakeTimeout) = (.seconds(10), .seconds(10))
        (limits.greetingTimeout, limits.replyTimeout, limits.contentTimeout) = (
            .seconds(30), .seconds(30), .seconds(60)
        )
        return limits
    }

    /// The names of auth's settings, as the apps file has them.
    private static func member(_ text: String) -> String {
        ["mail-url", "mail-from", "mail-password-file", "mail-tls", "mail-authority-file"].reduce(text) { text, name in
            text.replacing(name, with: name.dropFirst("mail-".count))
        }
    }

    private static func firstLine(_ bytes: [UInt8]) -> String {
        String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }, as: UTF8.self)
    }
}

extension MailCredentials: Equatable {
    public static func == (left: Self, right: Self) -> Bool { left.settings == right.settings }
}

extension MailCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "\(from) at \(configuration.url.host):\(configuration.url.port)" }
    public var debugDescription: String { description }
    /// Empty, so that no dump shows the password.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
