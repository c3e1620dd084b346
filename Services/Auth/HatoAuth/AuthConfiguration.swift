public import HatoIdentity
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
    /// Passwords hashed at a time, each on a thread with `scrypt.memoryBytes`; the default is the number of cores.
    public var hashingThreads = ProcessInfo.processInfo.activeProcessorCount
    /// The most memory that a password hash of an import may need; such hashes are checked one at a time.
    public var importedHashMemoryBytesMax = 256 << 20
    /// Which users make accounts.
    public var signUp = Auth.SignUpPolicy.open
    /// Whether people make anonymous accounts.
    public var allowsAnonymous = true
    /// Whether people sign up and sign in with a password.
    public var allowsPasswordSignIn = true
    /// The domains of e-mail addresses with which people sign up; empty: all.
    public var emailDomains: [String] = []
    /// The members of `auth.settings` that were given at the start and keep that value.
    public var fixedSettings: Set<String> = []
    /// Whether the errors for a wrong e-mail and a wrong password are the same.
    public var hidesWhoExists = true
    /// The longest `tokenLifetimeSeconds`.
    public static let tokenLifetimeSecondsMax = IdentityConfiguration.tokenLifetimeSecondsMax

    /// Seconds that an ID token is valid.
    public var tokenLifetimeSeconds: Int64 = 3600
    /// E-mail, password and the account itself can only be changed by a user who signed in at most this long ago; 0: no
    /// limit.
    public var credentialAgeSecondsMax: Int64 = 300
    /// Encrypts the private keys in the store; nil: they are in clear.
    public var keyEncryption: KeyEncryption?
    /// When refresh tokens rotate and end.
    public var refresh = RefreshPolicy()
    /// Seconds that the events of `auth.follow` are kept for followers that resume.
    public var keepEventsSeconds: Int64 = 7 * 24 * 3600
    /// Whether limits by address also apply to loopback addresses.
    public var limitsLoopback = true
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

    static let domainsMax = 100
}
