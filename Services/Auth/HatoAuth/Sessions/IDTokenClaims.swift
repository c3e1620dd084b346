import HatoIdentity
import HatoModel

/// The claims of an ID token (spec auth §4).
struct IDTokenClaims {
    /// The names of the standard claims; custom attributes may not use them.
    static let reserved: Set<String> = [
        "acr", "amr", "at_hash", "aud", "auth_time", "azp", "cnf", "c_hash", "exp", "firebase", "iat", "iss", "jti",
        "nbf",
        "nonce", "sid", "sub",
    ]

    var account: AccountRecord
    var provider: SignInProvider
    /// The claims of the custom token that began its session.
    var sessionClaims: JSONObject?
    /// The `SessionName` of its session; nil where it is not known.
    var session: String?
    /// Seconds.
    var authTime: Int64
    var issuedAt: Int64
    var expiresAt: Int64

    func object(project: String) -> JSONObject {
        var claims: JSONObject = [:]
        if let name = account.displayName { claims["name"] = .string(name) }
        if let picture = account.photoUrl { claims["picture"] = .string(picture) }
        if let text = account.customAttributes,
            case .object(let custom)? = try? JSONParser.parse(
                text, depth: TokenVerifier.claimsDepthMax)
        {
            claims.add(custom)
        }
        if let sessionClaims { claims.add(sessionClaims) }
        // These claims are set last: no custom attribute and no custom token can override them.
        claims["iss"] = .string(IdentityConfiguration.issuer(of: project))
        claims["aud"] = .string(project)
        claims["auth_time"] = .number(Double(authTime))
        claims["sid"] = session.map { .string($0) }
        claims["user_id"] = .string(account.uid)
        claims["sub"] = .string(account.uid)
        claims["iat"] = .number(Double(issuedAt))
        claims["exp"] = .number(Double(expiresAt))
        claims["email"] = account.email.map { .string($0) }
        claims["email_verified"] = account.email.map { _ in .bool(account.emailVerified) }
        claims["phone_number"] = account.phoneNumber.map { .string($0) }
        claims["provider_id"] = provider == .anonymous ? .string(provider.description) : nil
        var identities: JSONObject = account.email.map { ["email": .array([.string($0)])] } ?? [:]
        if let number = account.phoneNumber { identities["phone"] = .array([.string(number)]) }
        for identity in account.identities { identities[identity.provider] = .array([.string(identity.uid)]) }
        claims["firebase"] = .object([
            "identities": .object(identities), "sign_in_provider": .string(provider.description),
        ])
        return claims
    }
}

extension JSONObject {
    /// Sets the claims of others, except reserved ones.
    fileprivate mutating func add(_ others: JSONObject) {
        for member in others.members where !IDTokenClaims.reserved.contains(member.name) {
            self[member.name] = member.value
        }
    }
}
