import Crypto
import HatoIdentity
import HatoModel

/// What a verified ID token of a provider says of its user.
struct ProviderIdentity: Sendable, Hashable {
    /// The id of the provider.
    var provider: String
    /// The issuer that was set when the token was verified.
    var issuer: String
    /// The id of the user at the provider: the claim `sub`.
    var uid: String
    var email: String?
    /// As the provider says.
    var emailVerified = false
    var displayName: String?
    var photoUrl: String?
    /// The SHA-256 of what is signed: the signature itself can have several forms.
    var tokenHash: [UInt8]
    /// When the token was issued and when it expires, in seconds since 1970.
    var issuedAt: Int64
    var expiresAt: Int64
}

/// Why a provider's ID token is refused.
enum ProviderTokenError: Error, Sendable, Hashable {
    case malformed
    /// Another algorithm than that of its key; `none` and HS256 are the classic attacks.
    case unsupportedAlgorithm
    /// It has a key of its own.
    case embeddedKey
    case unknownKey
    case badSignature
    case wrongIssuer
    case wrongAudience
    /// A required claim is missing or has the wrong type.
    case badClaim(String)
    case notYetValid
    case expired
    case missingNonce
    case wrongNonce
    /// The token has a nonce, and the caller gives none.
    case nonceNotGiven
}

/// Decides whether a provider's ID token is genuine, for one of our apps and valid now (OpenID Connect Core §3.1.3.7).
/// A value: no clock, no network.
///
/// The algorithm is pinned to the key, a key is found by `kid` only, and the token cannot select another algorithm or
/// key. A token may leave `kid` out where the provider has one key alone (OpenID Connect Core §10.1).
struct ProviderTokenVerifier: Sendable {
    /// The clock of a provider may be ahead by so much; `exp` is exact.
    static let leewaySeconds: Int64 = 60
    /// No token is valid for longer, whatever it says: for so long its use is remembered.
    static let lifetimeSecondsMax: Int64 = 86_400
    /// Of the claim `sub` (OpenID Connect Core §2).
    static let uidBytesMax = 255
    static let nonceBytesMax = 512

    var provider: String
    var issuer: String
    var clientIds: [String]
    var keys: ProviderKeySet
    var tokenBytesMax: Int

    /// - Parameters:
    ///   - nonce: as the caller gives it; nil: none.
    ///   - now: milliseconds since 1970.
    func verify(_ token: String, nonce: String?, now: Int64) throws(ProviderTokenError) -> ProviderIdentity {
        let parts = try Parts(token, bytesMax: tokenBytesMax)
        guard let key = parts.kid.map({ keys.keys[$0] }) ?? keys.only else { throw .unknownKey }
        guard key.algorithm == parts.algorithm else { throw .unsupportedAlgorithm }
        guard key.isValid(parts.signature, of: parts.signedInput) else {
            // Without a name it may be of the next key.
            throw parts.kid == nil ? ProviderTokenError.unknownKey : .badSignature
        }
        let claims = try parts.claims()
        guard let issuer = claims["iss"]?.string, issuers.contains(issuer) else { throw .wrongIssuer }
        try checkAudience(claims)
        guard let uid = claims["sub"]?.string, Self.isUid(uid) else { throw .badClaim("sub") }
        let times = try checkTimes(claims, now: now / 1000)
        try checkNonce(claims["nonce"], given: nonce)
        return ProviderIdentity(
            provider: provider, issuer: self.issuer, uid: uid, email: claims["email"]?.string,
            emailVerified: claims["email_verified"] == true || claims["email_verified"] == "true",
            displayName: claims["name"]?.string, photoUrl: claims["picture"]?.string,
            tokenHash: Array(SHA256.hash(data: parts.signedInput)), issuedAt: times.issuedAt,
            expiresAt: times.expiresAt)
    }

    /// Whether a text may be the id of a user at a provider.
    static func isUid(_ text: String) -> Bool {
        (1...uidBytesMax).contains(text.utf8.count)
            && !text.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }

    private static let google = "https://accounts.google.com"
    private static let apple = "https://appleid.apple.com"

    /// The issuers of the providers that have a well-known one.
    static let knownIssuers = ["google.com": google, "apple.com": apple]

    /// Google writes its issuer in two ways.
    private var issuers: [String] { issuer == Self.google ? [issuer, "accounts.google.com"] : [issuer] }

    /// One of our apps, and with several audiences the one that the token was issued to, too.
    private func checkAudience(_ claims: JSONObject) throws(ProviderTokenError) {
        let audience: [String]
        switch claims["aud"] {
        case .string(let one)?: audience = [one]
        case .array(let several)?:
            audience = several.compactMap(\.string)
            guard audience.count == several.count else { throw .badClaim("aud") }
        default: throw .badClaim("aud")
        }
        guard audience.contains(where: clientIds.contains) else { throw .wrongAudience }
        guard audience.count > 1 else { return }
        guard let party = claims["azp"]?.string, clientIds.contains(party) else { throw .wrongAudience }
    }

    /// Returns when the token was issued, and when it expires. `now` in seconds.
    private func checkTimes(
        _ claims: JSONObject, now: Int64
    ) throws(ProviderTokenError) -> (issuedAt: Int64, expiresAt: Int64) {
        let issuedAt = try Self.seconds("iat", in: claims)
        let expiresAt = min(try Self.seconds("exp", in: claims), issuedAt + Self.lifetimeSecondsMax)
        guard issuedAt <= now + Self.leewaySeconds else { throw .notYetValid }
        if claims["nbf"] != nil {
            guard try Self.seconds("nbf", in: claims) <= now + Self.leewaySeconds else { throw .notYetValid }
        }
        guard now < expiresAt else { throw .expired }
        return (issuedAt, expiresAt)
    }

    private static func seconds(_ name: String, in claims: JSONObject) throws(ProviderTokenError) -> Int64 {
        guard let seconds = claims[name].flatMap(TokenVerifier.seconds) else { throw .badClaim(name) }
        return seconds
    }

    /// Apps give the provider the nonce itself, or its SHA-256 as Apple's documentation says.
    private func checkNonce(_ claim: JSONValue?, given: String?) throws(ProviderTokenError) {
        guard let claim, claim != .null else {
            guard given == nil, issuer != Self.apple else { throw .missingNonce }
            return
        }
        guard let expected = claim.string else { throw .badClaim("nonce") }
        guard let given else { throw .nonceNotGiven }
        guard (1...Self.nonceBytesMax).contains(given.utf8.count) else { throw .wrongNonce }
        let hash = SHA256.hash(data: Array(given.utf8)).flatMap { byte in
            [byte >> 4, byte & 15].map { UInt8(ascii: $0 < 10 ? "0" : "W") + $0 }
        }
        guard expected == given || Array(expected.utf8) == hash else { throw .wrongNonce }
    }
}

extension ProviderTokenVerifier {
    /// The parts of a JWT (RFC 7515 §5.2), its signature not yet verified.
    private struct Parts {
        var algorithm: ProviderKey.Algorithm
        /// Nil: the token names none.
        var kid: String?
        var signedInput: [UInt8]
        var signature: [UInt8]
        private var payload: ArraySlice<UInt8>

        init(_ token: String, bytesMax: Int) throws(ProviderTokenError) {
            guard token.utf8.count <= bytesMax else { throw .malformed }
            let bytes = Array(token.utf8)
            let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            guard parts.count == 3, let headerBytes = Base64.url.decode(parts[0]),
                let signature = Base64.url.decode(parts[2]),
                case .object(let header)? = try? JSONParser.parse(headerBytes, depth: 4)
            else { throw .malformed }
            guard let algorithm = header["alg"]?.string.flatMap({ ProviderKey.Algorithm(rawValue: $0) }) else {
                throw .unsupportedAlgorithm
            }
            guard !["jwk", "jku", "x5c", "x5u"].contains(where: { header[$0] != nil }) else { throw .embeddedKey }
            // An access token or a logout token is of another type.
            guard header["crit"] == nil, header["typ"] == nil || header["typ"]?.string?.uppercased() == "JWT" else {
                throw .malformed
            }
            if let value = header["kid"] {
                guard let kid = value.string, (1...ProviderKey.kidBytesMax).contains(kid.utf8.count) else {
                    throw .malformed
                }
                self.kid = kid
            }
            self.algorithm = algorithm
            self.signature = signature
            signedInput = Array(bytes[..<parts[1].endIndex])
            payload = parts[1]
        }

        func claims() throws(ProviderTokenError) -> JSONObject {
            guard let bytes = Base64.url.decode(payload),
                case .object(let claims)? = try? JSONParser.parse(bytes, depth: TokenVerifier.claimsDepthMax)
            else { throw .malformed }
            return claims
        }
    }
}
