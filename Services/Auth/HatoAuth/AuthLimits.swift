/// Everything in auth that must not grow, by name.
public struct AuthLimits: Sendable, Hashable {
    /// Longer passwords are refused before they are hashed.
    public var passwordBytesMax = 4096
    /// A longer ID token in a parameter is refused before it is looked up.
    public var idTokenBytesMax = 16 << 10
    /// UTF-8 of an e-mail address.
    public var emailBytesMax = 254
    /// Unicode characters of a display name.
    public var displayNameCharactersMax = 256
    /// UTF-8 of the address of a picture.
    public var photoUrlBytesMax = 2048
    /// Characters of the custom claims as JSON text.
    public var customAttributesCharactersMax = 1000
    /// Passwords waiting for a hashing thread; above, callers are told to come again.
    public var passwordQueueMax = 64
    /// Sessions of one account; the one unused longest ends when one more begins.
    public var sessionsPerAccountMax = 100
    /// Accounts on one page of `auth.users.list`.
    public var usersPageMax = 1000
    /// Addresses and accounts whose attempts are remembered, each.
    public var attemptEntriesMax = 100_000
    /// Wrong passwords for one account that cost nothing.
    public var failuresFree = 10
    /// The longest an account waits after wrong passwords; never for ever, or anybody could lock out anybody.
    public var lockMillisecondsMax: Int64 = 15 * 60_000
    /// Wrong passwords are forgotten after this long without another.
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

/// So many at once, and so many a minute in the long run. A burst of 0 turns the limit off.
public struct RateLimit: Sendable, Hashable {
    /// How many may come at once; 0 turns the limit off.
    public var burst: Int
    /// How many a minute are allowed in the long run.
    public var perMinute: Int

    public init(burst: Int, perMinute: Int) {
        self.burst = burst
        self.perMinute = perMinute
    }
}
