/// The settings for verifying ID tokens, each with its default.
public struct IdentityConfiguration: Sendable {
    /// No token is valid for longer, whatever it says: what a key has signed that others know ends.
    public static let tokenLifetimeSecondsMax: Int64 = 86_400

    /// Tokens of other projects are refused: the project is the audience and the end of the issuer (spec auth §4).
    public var project = "hato"
    /// The maximum that the clock of the issuer may be ahead; `iat` and `nbf` may be this far in the future. `exp` is
    /// exact.
    public var leewaySeconds: Int64 = 5
    /// Longer credentials are refused without parsing.
    public var tokenBytesMax = 16 << 10
    /// The number of cached verified tokens; the oldest is evicted when one more is added.
    public var rememberedTokensMax = 20_000
    /// The number of users whose tokens are refused before they expire; beyond it the tokens of all
    /// users issued until then are refused in their place.
    public var refusalsMax = 100_000
    /// After a successful fetch, an unknown `kid` causes a new fetch only when the keys are older than this.
    public var refetchMillisecondsMin: Int64 = 1_000
    /// The number of such fetches in a row; then one more each time `refetchRecoveryMilliseconds` have passed.
    public var refetchBurst = 6
    /// Milliseconds after which one more fetch of the keys is allowed.
    public var refetchRecoveryMilliseconds: Int64 = 6_000
    /// A token issued longer than this before the keys were fetched cannot name a newer key: auth publishes a key
    /// before it signs with it, and clocks differ by less.
    public var keyLeewaySeconds: Int64 = 60
    /// How long a `kid` that auth did not have is refused without a fetch.
    public var absentKeyMilliseconds: Int64 = 60_000
    /// The number of key ids that are cached as absent.
    public var absentKeysMax = 1_000
    /// The maximum length of a key id in bytes.
    public var keyIDBytesMax = 256
    /// The minimum time from a failed fetch to the next.
    public var retryMillisecondsMin: Int64 = 1_000
    /// The interval of regular fetches of the keys.
    public var refreshInterval: Duration = .seconds(600)
    /// The file for the public keys, so that the service starts while auth is down; nil keeps them in memory only.
    public var keysFile: String?
    /// The keys of other services.
    public var serviceKeys = ServiceKeys.none

    public init(project: String = "hato", keysFile: String? = nil) {
        self.project = project
        self.keysFile = keysFile
    }

    /// The `iss` of ID tokens.
    public var issuer: String { Self.issuer(of: project) }

    /// The `iss` of ID tokens of a project.
    public static func issuer(of project: String) -> String { "https://securetoken.google.com/\(project)" }
}
