/// The identity of a connection, for calls without an identity of their own, and what it forwards (protocol §2).
public enum Session {
    public static let methods: [any RPCRequest.Type] = [Authenticate.self, End.self, Forward.self]

    /// Sets the identity of the connection for all later calls without `auth`.
    public struct Authenticate: RPCRequest {
        public static let method = "session.authenticate"
        public static let summary =
            """
            Sets the identity of the connection, which applies to calls without `auth`. Until a valid \
            credential was presented, a line may have at most 64 KiB (setting \
            `unauthenticated-line-bytes-max`)
            """
        public static let access = Access.anyone
        public static let effect = Effect.write

        public var auth: String
        public var `as`: JSONValue?

        public static let fields = Fields<Self>(
            blank: Self(auth: ""),
            .required("auth", \.auth, "An ID token or the administrator key, at most 16 KiB"),
            .optionalJSON(
                "as", \.`as`,
                """
                With the administrator key: the user as whom calls are made, `{"uid", "token"?}`; null: no \
                user; `{"variable": {…}}`: calls are made under rules that see exactly this object as `auth`, and \
                its `uid`, if it is a string, is the author of writes. The token and the variable have at most \
                16 KiB of JSON
                """))

        public struct Result: FieldObject, Hashable {
            public var uid: String?
            public var admin: Bool
            public var expiresAt: Int64?

            public static let fields = Fields<Self>(
                blank: Self(uid: nil, admin: false, expiresAt: nil),
                .nullable("uid", \.uid, "The user; null for an administrator, with `as: null` and without `uid`"),
                .required("admin", \.admin, "Whether the identity is the administrator"),
                .nullable(
                    "expiresAt", \.expiresAt,
                    """
                    When the token expires, in milliseconds since 1970; null for the administrator and with `as`
                    """))

            public init(uid: String?, admin: Bool, expiresAt: Int64?) {
                self.uid = uid
                self.admin = admin
                self.expiresAt = expiresAt
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

        public static let fields = Fields<Self>(blank: Self())

        public init() {}
    }

    /// Makes the connection one that speaks for clients of other addresses.
    public struct Forward: RPCRequest {
        public typealias Result = Empty

        public static let method = "session.forward"
        public static let summary =
            """
            Makes the connection one that forwards the calls of others, as a gateway does. From then on it does not \
            count among the connections of its address and is not closed when idle, and its calls may have `from`. \
            Such connections leave a tenth of the connections of the service (setting `connections-max`) to others. \
            Memory for requests counts for the `from` of this call, not for that of later ones. \
            It gives no right to any method and does not change the identity of the connection. Called again, it \
            replaces `from`. With `clientLines` the connection is passed on to one client: its later lines have the \
            rights and limits of a connection that does not forward
            """
        public static let access = Access.anyone
        public static let effect = Effect.write
        public static let errors = [
            MethodError(.resourceExhausted, "too_many_forwarding_connections", data: ["retryAfterMs"])
        ]

        public var auth: String
        public var from: String?
        public var clientLines: Bool?

        public static let fields = Fields<Self>(
            blank: Self(auth: ""),
            .required("auth", \.auth, "The administrator key, or a service key that has `forward: true`"),
            .optional(
                "from", \.from,
                """
                The IP address of the client that makes all calls without `from`; absent: these count for the address \
                of the socket
                """, example: "203.0.113.7"),
            .optional(
                "clientLines", \.clientLines,
                """
                True: all later lines are written by the client of `from`, which must be given. They cannot use \
                `from` or `session.forward`, and have at most 64 KiB (setting `unauthenticated-line-bytes-max`) until \
                a call has shown a credential; false when absent
                """, example: true))

        public static let example = RPCExample(
            Forward(auth: "V3Nq0mT8y2LrX6cJ9dKf4WgHs1ZbAeUo", from: "203.0.113.7"), Empty())

        public init(auth: String, from: String? = nil, clientLines: Bool? = nil) {
            self.auth = auth
            self.from = from
            self.clientLines = clientLines
        }
    }
}
