/// Settings of whoever verifies ID tokens; each with its default.
public struct IdentityConfiguration: Sendable {
    /// Tokens of other projects are refused: the project is the audience and the end of the issuer (spec auth §4).
    public var project = "hato"
    /// How far the clock of the issuer may be ahead of ours; `iat` and `nbf` may lie that far in the future. `exp` is
    /// exact.
    public var leewaySeconds: Int64 = 5
    /// Longer credentials are refused unread.
    public var tokenBytesMax = 16 << 10
    /// Verified tokens remembered; the oldest goes when one more comes.
    public var rememberedTokensMax = 20_000
    /// After the keys came, an unknown `kid` asks for them again only when they are older than this.
    public var refetchMillisecondsMin: Int64 = 1_000
    /// So many times in a row; then one more each time `refetchRecoveryMilliseconds` have passed.
    public var refetchBurst = 6
    /// Milliseconds after which one more fetch of the keys is allowed.
    public var refetchRecoveryMilliseconds: Int64 = 6_000
    /// A token issued longer than this before the keys were fetched names no key that is newer than they are: auth
    /// publishes a key before it signs with it, and clocks differ by less.
    public var keyLeewaySeconds: Int64 = 60
    /// How long a `kid` that auth did not have is refused without asking, and how many of them are remembered.
    public var absentKeyMilliseconds: Int64 = 60_000
    /// Key ids that are remembered as absent.
    public var absentKeysMax = 1_000
    /// No key has a longer id.
    public var keyIDBytesMax = 256
    /// After asking failed, nobody asks again before this.
    public var retryMillisecondsMin: Int64 = 1_000
    /// How often keys are fetched without being asked for.
    public var refreshInterval: Duration = .seconds(600)
    /// Where the public keys are kept so that the service starts while auth is down; nil keeps them in memory only.
    public var keysFile: String?

    public init(project: String = "hato", keysFile: String? = nil) {
        self.project = project
        self.keysFile = keysFile
    }

    /// The `iss` of ID tokens.
    public var issuer: String { Self.issuer(of: project) }

    /// The `iss` of ID tokens of a project.
    public static func issuer(of project: String) -> String { "https://securetoken.google.com/\(project)" }
}
