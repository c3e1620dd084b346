/// The caller of a method, as proven by a credential (protocol §2).
public enum Caller: Sendable, Hashable {
    case nobody
    case user(User)
    /// Holder of the administrator key; passes every rule.
    case administrator

    /// A signed-in user with the claims of the ID token.
    public struct User: Sendable, Hashable {
        /// The id of the user.
        public var uid: String
        /// All claims of the token: `auth.token` in rules.
        public var claims: JSONObject
        /// When the token expires, in milliseconds since 1970; nil for a user that an administrator impersonates.
        public var expiresAt: Int64?

        public init(uid: String, claims: JSONObject = [:], expiresAt: Int64? = nil) {
            self.uid = uid
            self.claims = claims
            self.expiresAt = expiresAt
        }
    }

    /// The id of the user; nil for `nobody` and for administrators.
    public var uid: String? { if case .user(let user) = self { user.uid } else { nil } }
    /// Whether the caller passes every rule.
    public var isAdministrator: Bool { self == .administrator }
}

/// Turns the `auth` of a call into a caller. A service gives one to its RPC server.
public protocol Authenticator: Sendable {
    /// Returns at once when the credential is the administrator key or a token verified before; nil when `authenticate`
    /// is needed. Called on the event loop for every call that carries `auth`: a look-up, never a computation.
    func remembered(_ credential: String) -> Caller?
    /// Verifies a credential, and fetches keys if necessary. Throws `RPCError` (unauthenticated, or unavailable and
    /// retryable).
    func authenticate(_ credential: String) async throws -> Caller
}
