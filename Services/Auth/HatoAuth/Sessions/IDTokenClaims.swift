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
            for member in custom.members where !Self.reserved.contains(member.name) {
                claims[member.name] = member.value
            }
        }
        // These claims are set last: no custom attribute can override them.
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
        claims["phone_number"] = nil
        claims["provider_id"] = provider == .anonymous ? .string(provider.description) : nil
        let identities: JSONObject = account.email.map { ["email": .array([.string($0)])] } ?? [:]
        claims["firebase"] = .object([
            "identities": .object(identities), "sign_in_provider": .string(provider.description),
        ])
        return claims
    }
}
