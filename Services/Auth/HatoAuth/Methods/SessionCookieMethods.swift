import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage

/// `auth.sessionCookie.…`: what web servers give browsers in place of ID tokens.
struct SessionCookieMethods: AuthMethods {
    let service: AuthService

    /// A key is said to have signed cookies until the end of a day, so that it is seldom written.
    private static let markMilliseconds: Int64 = 86_400_000
    /// The issuer of a cookie is longer than that of the ID token from which it is made.
    private static let addedBytesMax = 256

    func add(to router: inout RPCRouter) {
        handle(Auth.SessionCookie.Create.self, in: &router) { methods, request, _ in
            try await methods.makeCookie(request)
        }
        handle(Auth.SessionCookie.Verify.self, in: &router) { methods, request, _ in
            try await methods.claims(request)
        }
    }

    private var verifier: SessionCookieVerifier {
        SessionCookieVerifier(
            project: configuration.project, bytesMax: configuration.limits.idTokenBytesMax + Self.addedBytesMax)
    }

    func makeCookie(_ request: Auth.SessionCookie.Create) async throws -> Auth.SessionCookie.Create.Result {
        let lifetimes = SessionCookieVerifier.lifetimes
        let lifetime = request.validForSeconds.map { Int64($0) } ?? lifetimes.upperBound
        let user = try service.user(of: request.idToken)
        guard lifetimes.contains(lifetime) else {
            throw AuthError.invalidFields([
                FieldProblem(
                    "validForSeconds", "INVALID_DURATION",
                    "The cookie should be valid for \(lifetimes.lowerBound) to \(lifetimes.upperBound) seconds")
            ])
        }
        // Before the account is read: what ends the session afterwards ends the cookie.
        let now = environment.now() / 1000
        let account = try await store.read { [service] rows in
            let account = try AccountChecks.ownAccount(user, in: rows)
            _ = try service.ownSession(of: user, among: try SessionRows.ids(of: user.uid, in: rows))
            return account
        }
        let issuedAt = max(now, account.validSince, user.issuedAt ?? 0)
        let expiresAt = issuedAt + lifetime
        var claims = user.claims
        claims["iss"] = .string(verifier.issuer)
        claims["iat"] = .number(Double(issuedAt))
        claims["exp"] = .number(Double(expiresAt))
        let ring = try await ring(signingUntil: expiresAt * 1000)
        guard let key = ring.current.key else { throw SigningKeyRing.Problem.incomplete }
        return Auth.SessionCookie.Create.Result(sessionCookie: try key.sign(claims))
    }

    func claims(_ request: Auth.SessionCookie.Verify) async throws -> JSONObject {
        let now = environment.now()
        let ring = service.ring
        let user = try verifier.verify(request.sessionCookie, now: now) { ring.cookieKey($0, now: now) }.user
        guard request.checkRevoked == true else { return user.claims }
        do {
            try await store.read { [service] rows in
                _ = try AccountChecks.ownAccount(user, in: rows)
                _ = try service.ownSession(of: user, among: try SessionRows.ids(of: user.uid, in: rows))
            }
        } catch AuthError.sessionOver {
            throw AuthError.token(.revokedCookie)
        }
        return user.claims
    }

    /// The keys, of which the current one may sign a cookie that is valid until then: durable before there is one, so
    /// that the key stays published after a rotation and a restart.
    private func ring(signingUntil end: Int64) async throws -> SigningKeyRing {
        let ring = service.ring
        if let until = ring.current.cookiesUntil, until >= end { return ring }
        let mark = (end / Self.markMilliseconds + 1) * Self.markMilliseconds
        return try await KeyMethods(service: service).change { ring, _ in
            ring.signsCookie(until: mark)
            return []
        }
    }
}
