import HatoIdentity
import HatoModel

/// Decides whether a custom token is genuine and valid now (spec auth §4). A value: no clock, no disk.
///
/// A token of this service names its type, its issuer and a key of the service; one of a service account is signed with
/// RS256 by the key that is registered for its issuer. The issuer decides which of the two it must be, and with it the
/// algorithm: the header selects no key and no algorithm, and keys within the token are ignored. The audience is that
/// of custom tokens alone, so that no ID token and no session cookie is one, and no custom token is one of these.
struct CustomTokenVerifier: Sendable {
    /// The `aud` of all custom tokens: Firebase's libraries write it.
    static let audience =
        "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit"
    /// The `typ` of those of this service (RFC 8725 §3.11).
    static let type = "custom+jwt"
    /// Seconds from `iat` to `exp`.
    static let lifetimeMax: Int64 = 3600
    /// The claims of the user are one level below those of the token.
    static let depthMax = TokenVerifier.claimsDepthMax + 1
    /// A clock of another machine may be ahead so many seconds.
    private static let leeway: Int64 = 60

    /// A token that is valid.
    struct Verified: Sendable, Hashable {
        var uid: String
        /// The claims for the session; nil: none.
        var claims: JSONObject?
        /// Seconds since 1970.
        var issuedAt: Int64
        /// The e-mail address of the service account that signed it; nil: this service did.
        var signer: String?
    }

    /// The issuer of a token, which nothing proves yet.
    enum Issuer: Sendable, Hashable {
        case thisService(kid: String)
        case serviceAccount(email: String)
    }

    let project: String
    let bytesMax: Int
    /// UTF-8 bytes of the claims for the session, as JSON.
    let claimsBytesMax: Int

    /// The `iss` and `sub` of the tokens that this service makes.
    var issuer: String { "urn:hato:auth:\(project)" }

    /// A token whose signature is not verified yet.
    struct Parsed: Sendable {
        fileprivate var token: SignedToken
        fileprivate var claims: JSONObject
        var issuer: Issuer
    }

    func parse(_ text: String) throws(AuthError) -> Parsed {
        let token: SignedToken
        let claims: JSONObject
        do {
            token = try SignedToken(text, bytesMax: bytesMax)
            claims = try token.claims(depth: Self.depthMax)
        } catch { throw Self.invalid("it is not a signed JWT") }
        guard let name = claims["iss"]?.string else { throw Self.invalid("its claim iss is missing") }
        if name == issuer {
            guard token.algorithm == "ES256", token.type == Self.type, let kid = token.kid else {
                throw Self.invalid("its header is not that of a custom token of this service")
            }
            return Parsed(token: token, claims: claims, issuer: .thisService(kid: kid))
        }
        guard token.algorithm == "RS256" else { throw Self.invalid("its algorithm is not RS256") }
        guard token.type == nil || token.type == "JWT" else { throw Self.invalid("its type is not JWT") }
        guard let email = EmailAddress.normalised(name, bytesMax: 254) else { throw Self.mismatch }
        return Parsed(token: token, claims: claims, issuer: .serviceAccount(email: email))
    }

    /// - Parameters:
    ///   - key: The key of this service that the token names; nil when there is none.
    ///   - now: In milliseconds since 1970.
    func verify(_ parsed: Parsed, ownKey key: VerificationKey?, now: Int64) throws(AuthError) -> Verified {
        guard let key else { throw Self.invalid("its key is unknown, or has ended") }
        guard key.isValid(parsed.token.signature, of: parsed.token.signedInput) else { throw Self.wrongSignature }
        return try check(parsed.claims, now: now)
    }

    /// - Parameters:
    ///   - signer: The key of its issuer; nil when that is not registered.
    ///   - now: In milliseconds since 1970.
    func verify(_ parsed: Parsed, signer: SignerKey?, now: Int64) throws(AuthError) -> Verified {
        guard let signer else { throw Self.mismatch }
        guard signer.isValid(parsed.token.signature, of: parsed.token.signedInput) else { throw Self.wrongSignature }
        var verified = try check(parsed.claims, now: now)
        if case .serviceAccount(let email) = parsed.issuer { verified.signer = email }
        return verified
    }

    private func check(_ claims: JSONObject, now: Int64) throws(AuthError) -> Verified {
        guard claims["sub"]?.string == claims["iss"]?.string else { throw Self.invalid("its sub is not its iss") }
        guard claims["aud"]?.string == Self.audience else { throw Self.invalid("its aud is not that of custom tokens") }
        guard claims["tenant_id"]?.isNull ?? true else { throw Self.invalid("it is for a tenant") }
        guard let issuedAt = claims["iat"].flatMap(TokenVerifier.seconds),
            let expiresAt = claims["exp"].flatMap(TokenVerifier.seconds)
        else { throw Self.invalid("its claim iat or exp is missing or no time") }
        guard expiresAt - issuedAt <= Self.lifetimeMax else {
            throw Self.invalid("its exp is more than \(Self.lifetimeMax) seconds after its iat")
        }
        guard issuedAt <= now / 1000 + Self.leeway else { throw Self.invalid("it is not valid yet") }
        guard now / 1000 < expiresAt else { throw Self.invalid("it has expired") }
        let uid = try Self.uid(claims["uid"])
        return Verified(uid: uid, claims: try userClaims(claims["claims"]), issuedAt: issuedAt)
    }

    private static func uid(_ claim: JSONValue?) throws(AuthError) -> String {
        guard let claim, !claim.isNull, claim != .string("") else { throw .token(.missingUID) }
        guard let uid = claim.string, UserID.isUid(uid) else { throw invalid("its uid is none") }
        return uid
    }

    private func userClaims(_ claim: JSONValue?) throws(AuthError) -> JSONObject? {
        guard let claim, !claim.isNull else { return nil }
        guard case .object(let claims) = claim else { throw Self.invalid("its claims are no object") }
        switch IDTokenClaims.problem(with: claims, bytesMax: claimsBytesMax) {
        case .reserved(let name)?: throw .token(.forbiddenClaim(name))
        case .tooLarge?: throw Self.invalid("its claims have more than \(claimsBytesMax) bytes")
        case .tooDeep?: throw Self.invalid("its claims have more than \(TokenVerifier.claimsDepthMax) levels")
        case nil: return claims.isEmpty ? nil : claims
        }
    }

    private static func invalid(_ explanation: String) -> AuthError { .token(.invalidCustomToken(explanation)) }
    private static let wrongSignature = invalid("its signature is wrong")
    private static let mismatch = AuthError.token(.customTokenOfAnother)
}

extension IDTokenClaims {
    /// What is wrong with claims of others.
    enum ClaimsProblem: Hashable {
        case reserved(String)
        case tooLarge
        /// Every token with them would be unreadable.
        case tooDeep
    }

    static func problem(with claims: JSONObject, bytesMax: Int) -> ClaimsProblem? {
        if let reserved = claims.members.first(where: { Self.reserved.contains($0.name) }) {
            return .reserved(reserved.name)
        }
        let bytes = JSONValue.object(claims).encoded
        if bytes.count > bytesMax { return .tooLarge }
        return (try? JSONParser.parse(bytes, depth: TokenVerifier.claimsDepthMax)) == nil ? .tooDeep : nil
    }
}
