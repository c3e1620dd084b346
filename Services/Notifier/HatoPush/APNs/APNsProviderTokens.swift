import HatoModel
import Synchronization

/// The provider tokens by which Apple's push service knows the sender (Apple, "Establishing a token-based connection
/// to APNs"): one for each team, key and environment, used again for 50 minutes. APNs refuses tokens older than an
/// hour, and senders that make another one more than once in 20 minutes.
final class APNsProviderTokens: Sendable {
    struct Signer: Hashable {
        var teamID: String
        var keyID: String
        var keyFingerprint: [UInt8]
        var environment: Notifier.APNsEnvironment

        init(_ credentials: APNsCredentials, _ environment: Notifier.APNsEnvironment) {
            teamID = credentials.app.teamID
            keyID = credentials.app.keyID
            keyFingerprint = credentials.keyFingerprint
            self.environment = environment
        }
    }

    private struct Token {
        var text: String
        /// Seconds since 1970.
        var issuedAt: Int64
        /// When one was last made because APNs had refused another as too old.
        var renewedAt: Int64?
    }

    static let lifetimeSeconds: Int64 = 50 * 60
    static let renewalSeconds: Int64 = 20 * 60
    /// So far a clock may be set back before the token counts as one of a time to come.
    private static let clockStepSeconds: Int64 = 60

    private let tokens = Mutex<[Signer: Token]>([:])

    /// `now` in seconds since 1970. Throws the errors of the cryptography library.
    func token(
        of credentials: APNsCredentials, _ environment: Notifier.APNsEnvironment, now: Int64
    ) throws -> String {
        let signer = Signer(credentials, environment)
        return try tokens.withLock { tokens throws in
            if let token = tokens[signer] {
                let age = now - token.issuedAt
                if age >= -Self.clockStepSeconds && age < Self.lifetimeSeconds { return token.text }
            }
            let token = Token(
                text: try Self.sign(credentials, now: now), issuedAt: now, renewedAt: tokens[signer]?.renewedAt)
            tokens[signer] = token
            return token.text
        }
    }

    /// Another token in place of one that APNs finds too old, which may have been made meanwhile. Nil when the refused
    /// one was itself made so a short time ago: then the clock of this machine is wrong. Throws as `token(of:_:now:)`.
    func token(
        insteadOf refused: String, of credentials: APNsCredentials, _ environment: Notifier.APNsEnvironment, now: Int64
    ) throws -> String? {
        let signer = Signer(credentials, environment)
        return try tokens.withLock { tokens throws in
            let kept = tokens[signer]
            if let kept, kept.text != refused { return kept.text }
            if let renewedAt = kept?.renewedAt, (now - renewedAt).magnitude < UInt64(Self.renewalSeconds) { return nil }
            let token = Token(text: try Self.sign(credentials, now: now), issuedAt: now, renewedAt: now)
            tokens[signer] = token
            return token.text
        }
    }

    /// Forgets the tokens of other keys.
    func keep(_ isUsed: (Signer) -> Bool) {
        tokens.withLock { $0 = $0.filter { isUsed($0.key) } }
    }

    private static func sign(_ credentials: APNsCredentials, now: Int64) throws -> String {
        try SignedToken.es256(
            header: ["alg": "ES256", "kid": .string(credentials.app.keyID)],
            claims: ["iss": .string(credentials.app.teamID), "iat": .number(Double(now))], key: credentials.key)
    }
}
