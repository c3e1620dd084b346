public import HatoModel

/// The contents of a verified ID token.
public struct VerifiedToken: Sendable, Hashable {
    /// The token's user.
    public var uid: String
    /// All claims of the token.
    public var claims: JSONObject
    /// Seconds since 1970.
    public var issuedAt: Int64
    /// When the token expires, or its key ends, in seconds since 1970.
    public var expiresAt: Int64
    /// The id of the key that signed it.
    public var kid: String

    /// The claim `sid`, the public id of its session; nil for tokens of other software.
    public var session: String?

    /// The user as services see it.
    public var caller: Caller.User { Caller.User(uid: uid, claims: claims, expiresAt: expiresAt * 1000, kid: kid) }
}

/// Decides whether an ID token is genuine and valid now. A value: no clock, no network.
///
/// The algorithm is pinned to the key, a key is found by `kid` only, and the token cannot select another algorithm or
/// key: `none`, HS256, a missing or unknown `kid`, embedded keys and critical extensions are refused.
public struct TokenVerifier: Sendable {
    /// How deep the claims of a token may be: objects and arrays in each other.
    public static let claimsDepthMax = 16

    private let configuration: IdentityConfiguration
    /// The keys by id.
    public private(set) var keys: [String: VerificationKey]

    /// A verifier that accepts tokens of `keys`.
    public init(configuration: IdentityConfiguration, keys: [VerificationKey] = []) {
        self.configuration = configuration
        self.keys = [:]
        replaceKeys(keys)
    }

    /// Replaces the keys that verify tokens.
    public mutating func replaceKeys(_ keys: [VerificationKey]) {
        self.keys = Dictionary(keys.map { ($0.kid, $0) }, uniquingKeysWith: { first, _ in first })
    }

    func has(exactly others: [VerificationKey]) -> Bool {
        others.count == keys.count && others.allSatisfy { keys[$0.kid]?.jwk == $0.jwk }
    }

    /// `now` in milliseconds since 1970. Throws `unknownKey` before it reads the payload.
    public func verify(_ token: String, now: Int64) throws(TokenError) -> VerifiedToken {
        let parts = try SignedParts(token, bytesMax: configuration.tokenBytesMax)
        guard let key = keys[parts.kid] else { throw .unknownKey(parts.kid) }
        guard key.isValid(parts.signature, of: parts.signedInput) else { throw .badSignature }
        return try check(parts.claims(), of: key, now: now)
    }

    /// A token is valid no longer than a day, and no longer than its key, whatever it says: a key that has leaked signs
    /// any time of expiry.
    private func check(_ claims: JSONObject, of key: VerificationKey, now: Int64) throws(TokenError) -> VerifiedToken {
        guard claims["iss"]?.string == configuration.issuer else { throw .wrongIssuer }
        guard claims["aud"]?.string == configuration.project else { throw .wrongAudience }
        guard let uid = claims["sub"]?.string, (1...UserIDLimits.codePointsMax).contains(uid.unicodeScalars.count)
        else {
            throw .badClaim("sub")
        }
        let issuedAt = try seconds("iat", in: claims)
        let expiresAt = min(
            try seconds("exp", in: claims), issuedAt + IdentityConfiguration.tokenLifetimeSecondsMax,
            key.expiresAt ?? .max)
        let latest = now / 1000 + configuration.leewaySeconds
        guard issuedAt <= latest else { throw .notYetValid }
        if claims["nbf"] != nil {
            guard try seconds("nbf", in: claims) <= latest else { throw .notYetValid }
        }
        guard now < expiresAt * 1000 else { throw .expired }
        return VerifiedToken(
            uid: uid, claims: claims, issuedAt: issuedAt, expiresAt: expiresAt, kid: key.kid,
            session: claims["sid"]?.string)
    }

    private func seconds(_ name: String, in claims: JSONObject) throws(TokenError) -> Int64 {
        guard let seconds = claims[name].flatMap(Self.seconds) else { throw .badClaim(name) }
        return seconds
    }

    /// A claim that is a time (RFC 7519 §2, NumericDate), in whole seconds since 1970; nil for any other value.
    public static func seconds(_ claim: JSONValue) -> Int64? {
        // A number beyond the year 9999 is not a time, and later code may multiply it by 1,000.
        guard let number = claim.number, number >= 0, number < 253_402_300_800 else { return nil }
        return Int64(number)
    }
}

/// The parts of an ID token (RFC 7515 §5.2), its signature not yet verified.
struct SignedParts {
    var kid: String
    private let token: SignedToken

    init(_ token: String, bytesMax: Int) throws(TokenError) {
        let token = try SignedToken(token, bytesMax: bytesMax)
        guard token.algorithm == "ES256" else { throw .unsupportedAlgorithm }
        guard let kid = token.kid, !kid.isEmpty else { throw .unknownKey("") }
        guard token.type == nil || token.type == "JWT" else { throw .malformed }
        self.kid = kid
        self.token = token
    }

    var signature: [UInt8] { token.signature }
    var signedInput: [UInt8] { token.signedInput }

    /// The unverified time of issue of a token, in seconds since 1970; nil when it has none.
    static func unprovenIssueTime(of token: String, bytesMax: Int) -> Int64? {
        guard let claims = try? SignedParts(token, bytesMax: bytesMax).claims(),
            let issuedAt = claims["iat"].flatMap(TokenVerifier.seconds)
        else { return nil }
        return issuedAt
    }

    func claims() throws(TokenError) -> JSONObject { try token.claims(depth: TokenVerifier.claimsDepthMax) }
}
