/// The caller of a method, as proven by a credential (protocol §2).
///
/// Indirect: each request copies the caller of its connection several times.
public indirect enum Caller: Sendable, Hashable {
    case nobody
    case user(User)
    /// Holder of the administrator key; passes every rule.
    case administrator
    /// Holder of a service key: an administrator for the methods of that key, and a caller without rights for others.
    /// Handlers of methods see the administrator instead.
    case service(Service)
    /// An administrator acts under the rules, which see exactly these members as `auth`: `as: {"variable": …}`.
    case variable(JSONObject)

    /// Another service of the same installation, or a program of its operators.
    public struct Service: Sendable, Hashable {
        /// The name of the key, for logs.
        public var name: String
        /// The methods it may call.
        public var methods: Set<String>
        /// Whether it may speak as a user.
        public var mayUseAs: Bool
        /// Whether its connections may speak for clients of other addresses (`session.forward`).
        public var mayForward: Bool

        public init(name: String, methods: Set<String>, mayUseAs: Bool = false, mayForward: Bool = false) {
            self.name = name
            self.methods = methods
            self.mayUseAs = mayUseAs
            self.mayForward = mayForward
        }
    }

    /// A signed-in user with the claims of the ID token.
    public struct User: Sendable, Hashable {
        /// The id of the user.
        public var uid: String
        /// All claims of the token: `auth.token` in rules.
        public var claims: JSONObject
        /// When the token expires, in milliseconds since 1970; nil for a user that an administrator impersonates.
        public var expiresAt: Int64?
        /// The id of the key that signed the token; nil for a user that an administrator impersonates.
        public var kid: String?

        /// The claim `sid`: the public id of the session of the token; nil when an administrator impersonates the user,
        /// and for a token of other software.
        public var session: String? { claims["sid"]?.string }

        public init(uid: String, claims: JSONObject = [:], expiresAt: Int64? = nil, kid: String? = nil) {
            self.uid = uid
            self.claims = claims
            self.expiresAt = expiresAt
            self.kid = kid
        }
    }

    /// The id of the user, the author of writes; nil for `nobody`, administrators, and a variable that has none.
    public var uid: String? {
        switch self {
        case .user(let user): user.uid
        case .variable(let members): members["uid"]?.string
        case .nobody, .administrator, .service: nil
        }
    }
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
    /// Rises when identities end before their tokens expire: their key was removed, or their user is refused.
    var endings: Int { get }
    /// Whether the identity of a user, proven before, has ended before its token expires.
    func hasEnded(_ user: Caller.User) -> Bool
    /// Calls after each rise of `endings`, on any thread; never waits.
    func onEndings(_ ended: @escaping @Sendable () -> Void)
}

/// Of an authenticator whose identities end with their tokens only.
extension Authenticator {
    public var endings: Int { 0 }
    public func hasEnded(_ user: Caller.User) -> Bool { false }
    public func onEndings(_ ended: @escaping @Sendable () -> Void) {}
}
