public import HatoIdentity
import HatoMail
public import HatoModel
public import HatoStorage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The configuration of the auth service; each member is a setting.
public struct AuthConfiguration: Sendable {
    /// The audience of ID tokens and the end of their issuer.
    public var project = "hato"
    /// 15 where the password is the only factor (NIST SP 800-63B-4 §3.1.1.2); `hato-dev` and Firebase compatibility use
    /// 6.
    public var passwordLengthMin = 15
    /// Whether the most common passwords, sequences and repetitions are refused.
    public var refusesCommonPasswords = true
    /// The cost of hashing a password; hashes of another cost are replaced at the next sign-in.
    public var scrypt = ScryptCost()
    /// What is mixed into passwords before they are hashed.
    public var pepper = Pepper.none
    /// Passwords hashed at a time, each on a thread with `scrypt.memoryBytes`; the default is the number of cores.
    public var hashingThreads = ProcessInfo.processInfo.activeProcessorCount
    /// The most memory that a password hash of an import may need; such hashes are checked one at a time.
    public var importedHashMemoryBytesMax = 256 << 20
    /// Which users make accounts.
    public var signUp = Auth.SignUpPolicy.open
    /// Whether people make anonymous accounts.
    public var allowsAnonymous = true
    /// Days without use after which an anonymous account is deleted; 0: never.
    public var anonymousDays = 30
    /// Whether people sign up and sign in with a password.
    public var allowsPasswordSignIn = true
    /// Whether people sign in with a code that a mail has.
    public var allowsCodeSignIn = true
    /// The hosts of URLs that mails may link to (`continueUrl`).
    public var continueDomains: [String] = []
    /// Where mails go; nil: nowhere. `setMail` sets both.
    var mail: MailConfiguration?
    var links = CodeLinks(actionUrl: nil)
    /// The language of mails whose request names none.
    var mailLocale = MailTemplates.fallback
    /// The digits of a code.
    public var codeDigits = 6
    /// The domains of e-mail addresses with which people sign up; empty: all.
    public var emailDomains: [String] = []
    /// The members of `auth.settings` that were given at the start and keep that value.
    public var fixedSettings: Set<String> = []
    /// Whether the errors for a wrong e-mail and a wrong password are the same.
    public var hidesWhoExists = true
    /// Whether a sign-up with an e-mail address says the same for every address, and a mail says how to go on.
    public var signUpAlwaysAccepts = false
    /// The longest `tokenLifetimeSeconds`.
    public static let tokenLifetimeSecondsMax = IdentityConfiguration.tokenLifetimeSecondsMax

    /// Seconds that an ID token is valid.
    public var tokenLifetimeSeconds: Int64 = 3600
    /// Days after which the next signing key replaces the current one; 0: only `auth.keys.rotate` does it.
    public var keyRotationDays: Int64 = 90
    /// E-mail, password and the account itself can only be changed by a user who signed in at most this long ago; 0: no
    /// limit.
    public var credentialAgeSecondsMax: Int64 = 300
    /// Encrypts the private keys in the store; nil: they are in clear.
    public var keyEncryption: KeyEncryption?
    /// When refresh tokens rotate and end.
    public var refresh = RefreshPolicy()
    /// Seconds that the events of `auth.follow` are kept for followers that resume.
    public var keepEventsSeconds: Int64 = 7 * 24 * 3600
    /// Days that the entries of `auth.audit.list` are kept; 0: none are written.
    public var keepAuditDays: Int64 = 90
    /// Whether the issuer of a provider may be this machine or in a private network.
    public var allowsPrivateProviders = false
    /// Whether limits by address also apply to loopback addresses.
    public var limitsLoopback = true
    /// Whether they apply to loopback addresses that a gateway forwards.
    public var limitsForwardedLoopback = true
    /// Limits of accounts, sessions and attempts.
    public var limits = AuthLimits()
    /// The keys of other services.
    public var serviceKeys = ServiceKeys.none
    /// The only folder for backups; nil: no backups are written.
    public var backupFolder: BackupFolder?

    public init() {}

    /// The domains as `emailDomains` has them; nil when one is no domain of mailboxes, or they are more than 100.
    public static func normalisedDomains(_ texts: [String]) -> [String]? {
        let domains = texts.prefix(domainsMax).compactMap { EmailAddress.normalisedDomain($0) }
        return domains.count == texts.count ? domains : nil
    }

    /// The hosts as `continueDomains` has them; nil when one is no host of a page, or they are more than 100.
    public static func normalisedHosts(_ texts: [String]) -> [String]? {
        let hosts = texts.prefix(domainsMax).compactMap { text in
            text.utf8.count <= 253 ? CodeLinks.host(ofPage: "https://\(text)/") : nil
        }
        let isEachWhole = zip(hosts, texts).allSatisfy { $0 == $1.lowercased() }
        return hosts.count == texts.count && isEachWhole ? hosts : nil
    }

    static let domainsMax = 100
}

extension AuthConfiguration {
    /// Takes the settings of mails: `mail-url`, `mail-tls`, `mail-password-file`, `mail-authority-file`, `mail-from`,
    /// `mail-templates`, `mail-locale`, `mailbox` and `action-url`. Returns what operators should know about the files.
    ///
    /// - Parameter given: the text of a setting; nil or empty when it is not set.
    /// - Throws: an error whose text names the setting.
    public mutating func setMail(_ given: (_ name: String) -> String?) throws -> [String] {
        func setting(_ name: String) -> String? { given(name).flatMap { $0.isEmpty ? nil : $0 } }
        if let actionUrl = setting("action-url") {
            guard CodeLinks.host(ofPage: actionUrl) != nil else {
                throw MailFieldError(
                    "action-url", "must be the URL of a page, such as https://chat.example.com/account")
            }
            links = CodeLinks(actionUrl: actionUrl)
        }
        if let locale = setting("mail-locale") {
            guard MailLocale(locale) != nil else {
                throw MailFieldError("mail-locale", "must be a language, such as ja or en-GB")
            }
            mailLocale = locale
        }
        mail = try MailConfiguration(setting)
        // The file of authorities is read here: one that is wrong is a wrong setting.
        _ = try mail?.makeDestination()
        if signUpAlwaysAccepts, mail == nil {
            throw MailFieldError("sign-up-always-accepts", "needs mails: give mail-url or mailbox too")
        }
        return mail?.warnings ?? []
    }
}
