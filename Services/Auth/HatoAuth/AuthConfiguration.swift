public import HatoStorage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// How the auth service behaves; each member is a setting.
public struct AuthConfiguration: Sendable {
    /// The audience of ID tokens and the end of their issuer.
    public var project = "hato"
    /// 15 where a password is all there is (NIST SP 800-63B-4 §3.1.1.2); `hato-dev` and Firebase compatibility take 6.
    public var passwordLengthMin = 15
    /// Whether passwords everybody tries first, sequences and repetitions are refused.
    public var refusesCommonPasswords = true
    /// The cost of hashing a password; hashes of another cost are replaced at the next sign-in.
    public var scrypt = ScryptCost()
    /// Passwords hashed at a time, each on a thread with `scrypt.memoryBytes`: the number of cores.
    public var hashingThreads = ProcessInfo.processInfo.activeProcessorCount
    /// Whether a wrong e-mail and a wrong password look the same.
    public var hidesWhoExists = true
    /// Seconds that an ID token is valid.
    public var tokenLifetimeSeconds: Int64 = 3600
    /// E-mail, password and the account itself are only changed by who signed in at most this long ago; 0 turns it off.
    public var credentialAgeSecondsMax: Int64 = 300
    /// When refresh tokens rotate and end.
    public var refresh = RefreshPolicy()
    /// Whether limits by address also count what comes from this machine, where the gateway and proxies are.
    public var limitsLoopback = false
    /// Bounds of accounts, sessions and attempts.
    public var limits = AuthLimits()
    /// The only folder backups are written under; nil: there are none.
    public var backupFolder: BackupFolder?

    public init() {}
}
