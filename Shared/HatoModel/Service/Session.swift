/// Who a connection speaks for, when a call does not say so itself (protocol §2).
public enum Session {
    public static let methods: [any RPCRequest.Type] = [Authenticate.self, End.self]

    /// Sets the identity of the connection for all calls without `auth` that come after.
    public struct Authenticate: RPCRequest {
        public static let method = "session.authenticate"
        public static let summary =
            "Sets the identity of the connection for calls that carry no auth; lines over 64 KiB "
            + "(unauthenticated-line-bytes-max) are taken only once the connection has shown one"
        public static let access = Access.anyone
        public static let effect = Effect.write
        public static let parameterNotes = [
            "auth": "an ID token, or the administrator key",
            "as": "for administrators: the user to be judged as by the rules, `null` for nobody",
        ]

        public var auth: String
        /// `{"uid","token"?}`, or null: an administrator speaks as that user, as nobody.
        public var `as`: JSONValue?

        public struct Result: Codable, Sendable, Hashable {
            /// Nil for nobody and for administrators.
            public var uid: String?
            public var admin: Bool
            /// Milliseconds since 1970; nil when the identity does not end by itself.
            public var expiresAt: Int64?

            public init(uid: String?, admin: Bool, expiresAt: Int64?) {
                self.uid = uid
                self.admin = admin
                self.expiresAt = expiresAt
            }

            // Absent values are written as null here: the protocol says so.
            public func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: CodingKeys.self)
                try container.encode(uid, forKey: .uid)
                try container.encode(admin, forKey: .admin)
                try container.encode(expiresAt, forKey: .expiresAt)
            }
        }

        public static let example = RPCExample(
            Authenticate(auth: "eyJhbGciOiJFUzI1NiIs…"),
            Result(uid: "masuo", admin: false, expiresAt: 1_795_000_000_000))

        public init(auth: String, as: JSONValue? = nil) {
            self.auth = auth
            self.as = `as`
        }
    }

    /// Clears the identity of the connection.
    public struct End: RPCRequest {
        public typealias Result = Empty

        public static let method = "session.end"
        public static let summary = "Clears the identity of the connection"
        public static let access = Access.anyone
        public static let effect = Effect.write
        public static let example = RPCExample(End(), Empty())

        public init() {}
    }
}
