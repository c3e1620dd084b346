public import HatoModel

/// The limits of auth.
public struct AuthLimits: Limits, Hashable {
    /// Longer passwords are refused before they are hashed.
    public var passwordBytesMax = 4096
    /// A longer ID token in a parameter is refused before it is looked up.
    public var idTokenBytesMax = 16 << 10
    /// UTF-8 bytes of an e-mail address.
    public var emailBytesMax = 254
    /// Unicode characters of a display name.
    public var displayNameCharactersMax = 256
    /// UTF-8 bytes of the address of a picture.
    public var photoUrlBytesMax = 2048
    /// Characters of the custom claims as JSON text.
    public var customAttributesCharactersMax = 1000
    /// Passwords waiting for a hashing thread; beyond this, the response is an error with a time to retry after.
    public var passwordQueueMax = 64
    /// Sessions of one account; the least recently used ends when one more begins.
    public var sessionsPerAccountMax = 100
    /// Forks of one sign-in (`auth.sessions.fork`); the least recently used of them ends when one more begins.
    public var forksPerSignInMax = 10
    /// Accounts on one page of `auth.users.list`.
    public var usersPageMax = 1000
    /// Bytes of the kept events and of the commits between them; beyond it the older half is deleted.
    public var eventsBytesMax: UInt64 = 256 << 20
    /// Bytes of the entries of the audit; the oldest are deleted beyond it.
    public var auditBytesMax = 1 << 30
    /// Subscriptions of `auth.follow` on all connections.
    public var followersMax = 64
    /// Addresses, and accounts, whose attempts are counted; and clients whose turns at hashing are remembered.
    public var attemptEntriesMax = 100_000
    /// Wrong passwords for one account from one network that cause no wait; a network is the /48 of an IPv6 address, or
    /// its /64 where the account has signed in from that.
    public var failuresFree = 10
    /// Wrong passwords for one account from all networks that cause no wait, the first `failuresFree` of each; networks
    /// from which it has signed in before never wait for others.
    public var failuresFreePerAccount = 100
    /// The longest wait after wrong passwords.
    public var lockMsMax: Int64 = 15 * 60_000
    /// Wrong passwords are no longer counted after this long without another.
    public var failureMemoryMs: Int64 = 24 * 3_600_000
    /// Sign-ins from one address.
    public var signInsPerAddress = RateLimit(burst: 100, perMinute: 60)
    /// Sign-ins to one account from one address.
    public var signInsPerAccountAndAddress = RateLimit(burst: 50, perMinute: 30)
    /// Sign-ins of all addresses: each with a password costs a hash.
    public var signIns = RateLimit(burst: 6_000, perMinute: 6_000)
    /// Sign-ups of all addresses, anonymous ones included.
    public var signUps = RateLimit(burst: 3_000, perMinute: 3_000)
    /// Sign-ups with credentials from one address.
    public var signUpsPerAddress = RateLimit(burst: 60, perMinute: 10)
    /// Anonymous sign-ups from one address.
    public var anonymousSignUpsPerAddress = RateLimit(burst: 60, perMinute: 10)
    /// Forms that one address checks with `dryRun`.
    public var signUpChecksPerAddress = RateLimit(burst: 100, perMinute: 60)
    /// Requests for codes from one address.
    public var codesPerAddress = RateLimit(burst: 30, perMinute: 10)
    /// Requests for codes from all addresses: each sends a mail.
    public var codes = RateLimit(burst: 1_000, perMinute: 600)
    /// Wrong digits of codes from one address.
    public var wrongDigitsPerAddress = RateLimit(burst: 60, perMinute: 5)
    /// The least time between two codes for one e-mail address, or for one account; 0: none.
    public var codePauseMs: Int64 = 60_000
    /// Codes for one e-mail address, or for one account, in an hour; 0: no limit.
    public var codesPerHourMax = 5
    /// Mails in the queue, dead ones included, of which the oldest is deleted for a new mail.
    public var mailQueueMax = 100_000
    /// Their bytes.
    public var mailQueueBytesMax = 64 << 20
    /// Service accounts whose custom tokens are taken.
    public var signersMax = 100
    /// Providers whose ID tokens sign in.
    public var providersMax = 50
    /// ID tokens of providers that have signed in and are not expired; beyond it no further one signs in.
    public var usedProviderTokensMax = 1_000_000
    /// Refreshes from one address.
    public var refreshesPerAddress = RateLimit(burst: 600, perMinute: 600)
    /// Changes of the names and the password by one user; ten times as many from one address.
    public var credentialChanges = RateLimit(burst: 60, perMinute: 10)
    /// Other changes of accounts by one user; ten times as many from one address.
    public var profileChanges = RateLimit(burst: 60, perMinute: 60)

    public init() {}

    private static let rate = 0...1_000_000

    public static let all: [Limit<AuthLimits>] = [
        Limit("password-bytes-max", \.passwordBytesMax, 64...65_536, "longest password, in bytes"),
        Limit("id-token-bytes-max", \.idTokenBytesMax, 1_024...65_536, "longest ID token in a parameter, in bytes"),
        Limit("email-bytes-max", \.emailBytesMax, 6...254, "longest e-mail address, in bytes"),
        Limit(
            "display-name-characters-max", \.displayNameCharactersMax, 1...1024,
            "longest display name, in Unicode characters"),
        Limit("photo-url-bytes-max", \.photoUrlBytesMax, 16...8192, "longest address of a photo, in bytes"),
        Limit(
            "custom-attributes-characters-max", \.customAttributesCharactersMax, 2...4000,
            "longest custom claims, in characters of their JSON text"),
        Limit("password-queue-max", \.passwordQueueMax, 0...100_000, "passwords that wait for a hashing thread"),
        Limit("sessions-per-account-max", \.sessionsPerAccountMax, 1...10_000, "sessions of one account"),
        Limit("forks-per-sign-in-max", \.forksPerSignInMax, 1...10_000, "sessions forked from one sign-in"),
        Limit("users-page-max", \.usersPageMax, 1...1000, "accounts on one page of auth.users.list"),
        Limit("events-bytes-max", \.eventsBytesMax, 1 << 20...1 << 40, "bytes of kept events and the commits between"),
        Limit(
            "audit-bytes-max", \.auditBytesMax, 1 << 20...1 << 40,
            "bytes of the entries of auth.audit.list; the oldest are deleted beyond it"),
        Limit("followers-max", \.followersMax, 0...10_000, "subscriptions of auth.follow"),
        Limit(
            "attempt-entries-max", \.attemptEntriesMax, 100...10_000_000,
            "addresses and accounts whose attempts are counted"),
        Limit(
            "failures-free", \.failuresFree, 1...100,
            "wrong passwords for one account from one network that cause no wait"),
        Limit(
            "failures-free-per-account", \.failuresFreePerAccount, 1...10_000,
            "wrong passwords for one account from all networks that cause no wait for networks without a sign-in before"
        ),
        Limit(
            "lock-ms-max", \.lockMsMax, 0...86_400_000,
            "longest wait after wrong passwords for an account, in milliseconds"),
        Limit(
            "failure-memory-ms", \.failureMemoryMs, 0...2_592_000_000,
            "milliseconds after which wrong passwords no longer count"),
        Limit(
            "sign-ins-per-address-burst", \.signInsPerAddress.burst, rate,
            "sign-ins of one address at once; 0: no limit"),
        Limit(
            "sign-ins-per-address-minute", \.signInsPerAddress.perMinute, rate,
            "sign-ins of one address a minute in the long run"),
        Limit(
            "sign-ins-per-account-burst", \.signInsPerAccountAndAddress.burst, rate,
            "sign-ins to one account from one address at once; 0: no limit"),
        Limit(
            "sign-ins-per-account-minute", \.signInsPerAccountAndAddress.perMinute, rate,
            "sign-ins to one account from one address a minute in the long run"),
        Limit("sign-ins-burst", \.signIns.burst, rate, "sign-ins of all addresses at once; 0: no limit"),
        Limit(
            "sign-ins-minute", \.signIns.perMinute, rate, "sign-ins of all addresses a minute in the long run"),
        Limit("sign-ups-burst", \.signUps.burst, rate, "sign-ups of all addresses at once; 0: no limit"),
        Limit(
            "sign-ups-minute", \.signUps.perMinute, rate, "sign-ups of all addresses a minute in the long run"),
        Limit(
            "sign-ups-per-address-burst", \.signUpsPerAddress.burst, rate,
            "sign-ups of one address at once; 0: no limit"),
        Limit(
            "sign-ups-per-address-minute", \.signUpsPerAddress.perMinute, rate,
            "sign-ups of one address a minute in the long run"),
        Limit(
            "anonymous-per-address-burst", \.anonymousSignUpsPerAddress.burst, rate,
            "anonymous sign-ups of one address at once; 0: no limit"),
        Limit(
            "anonymous-per-address-minute", \.anonymousSignUpsPerAddress.perMinute, rate,
            "anonymous sign-ups of one address a minute in the long run"),
        Limit(
            "sign-up-checks-per-address-burst", \.signUpChecksPerAddress.burst, rate,
            "forms of one address checked at once without a sign-up; 0: no limit"),
        Limit(
            "sign-up-checks-per-address-minute", \.signUpChecksPerAddress.perMinute, rate,
            "forms of one address checked a minute in the long run"),
        Limit(
            "codes-per-address-burst", \.codesPerAddress.burst, rate,
            "requests for codes of one address at once; 0: no limit"),
        Limit(
            "codes-per-address-minute", \.codesPerAddress.perMinute, rate,
            "requests for codes of one address a minute in the long run"),
        Limit("codes-burst", \.codes.burst, rate, "requests for codes of all addresses at once; 0: no limit"),
        Limit("codes-minute", \.codes.perMinute, rate, "requests for codes of all addresses a minute in the long run"),
        Limit(
            "wrong-digits-per-address-burst", \.wrongDigitsPerAddress.burst, rate,
            "wrong digits of codes from one client at once, then it may use long codes only; 0: no limit by client"),
        Limit(
            "wrong-digits-per-address-minute", \.wrongDigitsPerAddress.perMinute, rate,
            "wrong digits of codes from one client a minute in the long run"),
        Limit(
            "code-pause-ms", \.codePauseMs, 0...3_600_000,
            "milliseconds between two codes for one e-mail address or account; 0: none"),
        Limit(
            "codes-per-hour-max", \.codesPerHourMax, 0...1000,
            "codes for one e-mail address or account in an hour; 0: no limit"),
        Limit("mail-queue-max", \.mailQueueMax, 0...10_000_000, "mails that wait for the mail server, or are dead"),
        Limit("mail-queue-bytes-max", \.mailQueueBytesMax, 0...1 << 40, "bytes of these mails"),
        Limit("signers-max", \.signersMax, 0...10_000, "service accounts whose custom tokens are taken"),
        Limit("providers-max", \.providersMax, 0...1000, "providers whose ID tokens sign in"),
        Limit(
            "used-provider-tokens-max", \.usedProviderTokensMax, 1...100_000_000,
            "ID tokens of providers that have signed in and are not expired, so that each signs in once"),
        Limit(
            "refreshes-per-address-burst", \.refreshesPerAddress.burst, rate,
            "refreshes of one address at once; 0: no limit"),
        Limit(
            "refreshes-per-address-minute", \.refreshesPerAddress.perMinute, rate,
            "refreshes of one address a minute in the long run"
        ),
        Limit(
            "credential-changes-burst", \.credentialChanges.burst, rate,
            "changes of names and passwords of one user at once, ten times as many from one address; 0: no limit"),
        Limit(
            "credential-changes-minute", \.credentialChanges.perMinute, rate,
            "changes of names and passwords of one user a minute in the long run, ten times as many from one address"),
        Limit(
            "profile-changes-burst", \.profileChanges.burst, rate,
            "other changes of accounts of one user at once, ten times as many from one address; 0: no limit"),
        Limit(
            "profile-changes-minute", \.profileChanges.perMinute, rate,
            "other changes of accounts of one user a minute in the long run, ten times as many from one address"),
    ]
}

/// A rate: at most `burst` at once, and `perMinute` in the long run. A burst of 0 disables the limit.
public struct RateLimit: Sendable, Hashable {
    /// The maximum at once; 0 disables the limit.
    public var burst: Int
    /// The maximum per minute in the long run.
    public var perMinute: Int

    public init(burst: Int, perMinute: Int) {
        self.burst = burst
        self.perMinute = perMinute
    }

    /// So many times as much.
    func times(_ factor: Int) -> RateLimit {
        func product(_ value: Int) -> Int {
            let (product, isTooMuch) = value.multipliedReportingOverflow(by: factor)
            return isTooMuch ? .max : product
        }
        return RateLimit(burst: product(burst), perMinute: product(perMinute))
    }
}
