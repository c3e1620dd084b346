/// The limits of auth.
public struct AuthLimits: Sendable, Hashable {
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
    /// Accounts on one page of `auth.users.list`.
    public var usersPageMax = 1000
    /// Addresses, and accounts, whose attempts are counted.
    public var attemptEntriesMax = 100_000
    /// Wrong passwords for one account that cause no wait.
    public var failuresFree = 10
    /// The longest wait of an account after wrong passwords; never permanent, or any client could lock out any account.
    public var lockMillisecondsMax: Int64 = 15 * 60_000
    /// Wrong passwords are no longer counted after this long without another.
    public var failureMemoryMilliseconds: Int64 = 24 * 3_600_000
    /// Sign-ins of one account being checked at a time.
    public var signInsPendingPerAccountMax = 100
    /// Sign-ins from one address.
    public var signInsPerAddress = RateLimit(burst: 100, perMinute: 60)
    /// Sign-ups with credentials from one address.
    public var signUpsPerAddress = RateLimit(burst: 60, perMinute: 10)
    /// Anonymous sign-ups from one address.
    public var anonymousSignUpsPerAddress = RateLimit(burst: 60, perMinute: 10)
    /// Refreshes from one address.
    public var refreshesPerAddress = RateLimit(burst: 600, perMinute: 600)

    public init() {}
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
}
