import HatoFetch
import HatoModel
import Synchronization

/// Makes the `Authorization` of an app's pushes (VAPID, RFC 8292): a token for each origin of push services, which
/// lasts 12 hours and is used again for 11.
final class WebPushSigner: Sendable {
    /// Origins whose tokens are kept; those used last.
    static let originsMax = 1_024
    private static let lifetimeSeconds: Int64 = 12 * 3_600
    /// A token is replaced so long before its end: clocks differ, and a push waits on its way.
    private static let marginSeconds: Int64 = 3_600

    private struct Token {
        var text: String
        /// Seconds since 1970.
        var expiresAt: Int64
        var lastUse: UInt64
    }

    private struct Kept {
        var tokens: [String: Token] = [:]
        var uses: UInt64 = 0
    }

    let credentials: WebPushCredentials
    private let publicKey: String
    private let kept = Mutex(Kept())

    init(_ credentials: WebPushCredentials) {
        self.credentials = credentials
        publicKey = credentials.publicKey
    }

    var originCount: Int { kept.withLock { $0.tokens.count } }

    /// `now` in seconds since 1970. Throws the errors of the cryptography library.
    func authorization(for url: StrictURL, now: Int64) throws -> String {
        let origin = String(url.text.dropLast(url.target.count))
        let token = try kept.withLock { kept throws in
            kept.uses += 1
            // A token may not end more than 24 hours from now: the clock may have been set back.
            let present = kept.tokens[origin].flatMap { token in
                let left = token.expiresAt - now
                return left > Self.marginSeconds && left <= Self.lifetimeSeconds ? token : nil
            }
            var token = try present ?? newToken(for: origin, now: now)
            token.lastUse = kept.uses
            kept.tokens[origin] = token
            if kept.tokens.count > Self.originsMax,
                let oldest = kept.tokens.min(by: { $0.value.lastUse < $1.value.lastUse })
            {
                kept.tokens[oldest.key] = nil
            }
            return token.text
        }
        return "vapid t=\(token), k=\(publicKey)"
    }

    private func newToken(for origin: String, now: Int64) throws -> Token {
        let expiresAt = now + Self.lifetimeSeconds
        let text = try SignedToken.es256(
            header: ["typ": "JWT", "alg": "ES256"],
            claims: [
                "aud": .string(origin), "exp": .number(Double(expiresAt)), "sub": .string(credentials.subject),
            ], key: credentials.key)
        return Token(text: text, expiresAt: expiresAt, lastUse: 0)
    }
}
