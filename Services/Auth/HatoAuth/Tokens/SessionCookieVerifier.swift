import HatoIdentity
import HatoModel

/// Decides whether a session cookie is genuine and valid now (spec auth §4). A value: no clock, no disk.
///
/// A cookie is a JWT with the claims of an ID token and another issuer, so that neither is taken for the other.
struct SessionCookieVerifier: Sendable {
    /// Seconds for which a cookie is valid.
    static let lifetimes: ClosedRange<Int64> = 300...1_209_600
    private static let leeway: Int64 = 5

    /// A cookie that is valid.
    struct Verified: Sendable {
        /// Its user, with all claims.
        var user: Caller.User
    }

    let project: String
    let bytesMax: Int

    /// The `iss` of cookies.
    var issuer: String { "https://session.firebase.google.com/\(project)" }

    /// - Parameters:
    ///   - key: The key of this service with a kid, and when its last cookie expires, in milliseconds since 1970 (nil:
    ///     it still signs); nil when there is none.
    ///   - now: In milliseconds since 1970.
    func verify(
        _ text: String, now: Int64, key: (_ kid: String) -> (key: VerificationKey, endsAt: Int64?)?
    ) throws(AuthError) -> Verified {
        let token: SignedToken
        let claims: JSONObject
        do {
            token = try SignedToken(text, bytesMax: bytesMax)
            claims = try token.claims(depth: TokenVerifier.claimsDepthMax)
        } catch { throw Self.invalid("it is not a signed JWT") }
        guard token.algorithm == "ES256" else { throw Self.invalid("its algorithm is not ES256") }
        guard token.type == "JWT", let kid = token.kid, let found = key(kid) else {
            throw Self.invalid("its key is unknown, or has ended")
        }
        guard found.key.isValid(token.signature, of: token.signedInput) else {
            throw Self.invalid("its signature is wrong")
        }
        return try check(claims, kid: kid, endsAt: found.endsAt, now: now)
    }

    private func check(
        _ claims: JSONObject, kid: String, endsAt: Int64?, now: Int64
    ) throws(AuthError) -> Verified {
        guard claims["iss"]?.string == issuer, claims["aud"]?.string == project else {
            throw Self.invalid("it is no session cookie of this project")
        }
        guard let uid = claims["sub"]?.string, UserID.isUid(uid),
            let issuedAt = claims["iat"].flatMap(TokenVerifier.seconds),
            let expiresAt = claims["exp"].flatMap(TokenVerifier.seconds)
        else { throw Self.invalid("its claims sub, iat or exp are missing or wrong") }
        guard issuedAt <= now / 1000 + Self.leeway else { throw Self.invalid("it is not valid yet") }
        // Whatever it says: a key that has leaked signs any time.
        let end = min(expiresAt, issuedAt + Self.lifetimes.upperBound, endsAt.map { $0 / 1000 } ?? .max)
        guard now / 1000 < end else { throw .token(.expiredCookie) }
        return Verified(user: Caller.User(uid: uid, claims: claims, expiresAt: end * 1000, kid: kid))
    }

    private static func invalid(_ explanation: String) -> AuthError { .token(.invalidCookie(explanation)) }
}
