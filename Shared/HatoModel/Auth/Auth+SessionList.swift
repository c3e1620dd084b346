extension Auth {
    /// The sessions of accounts: one for each sign-in.
    public enum Sessions {
        /// One session, as its owner and administrators see it.
        public struct Entry: FieldObject, Hashable {
            public var session: String
            public var label: String?
            public var provider: String
            public var createdAt: Int64
            public var usedAt: Int64
            public var address: String?
            public var current: Bool

            public static let fields = Fields<Self>(
                blank: Self(session: "", provider: "", createdAt: 0, usedAt: 0),
                .required("session", \.session, "The id of the session: the claim `sid` of its ID tokens"),
                .optional("label", \.label, "The name of the device, as `label` of the sign-in gave it"),
                .required(
                    "provider", \.provider,
                    "How the user signed in: `password`, `anonymous`, `custom`, or the id of a provider"),
                .required("createdAt", \.createdAt, "When the user signed in, in milliseconds since 1970"),
                .required(
                    "usedAt", \.usedAt,
                    "The last `auth.refresh`, or the sign-in without one, in milliseconds since 1970"),
                .optional(
                    "address", \.address,
                    "The network of the device at that time: an IPv4 address, or the /64 of an IPv6 address"),
                .required("current", \.current, "Whether the call has an ID token of this session"))

            /// A session; times in milliseconds since 1970.
            public init(session: String, provider: String, createdAt: Int64, usedAt: Int64) {
                self.session = session
                self.provider = provider
                self.createdAt = createdAt
                self.usedAt = usedAt
                current = false
            }

            static var example: Entry {
                var entry = Entry(
                    session: "Yk3vWq0fTzK8mB5xN2cR7A", provider: "password", createdAt: 1_795_000_000_000,
                    usedAt: 1_795_000_360_000)
                entry.label = "マスオさんのiPhone"
                entry.address = "192.0.2.1"
                entry.current = true
                return entry
            }
        }

        /// An account has at most `sessions-per-account-max` sessions, 100 by default: then the first page has them
        /// all. The pages begin with the newest sign-ins, so that a session is on one page, however it is used
        /// meanwhile.
        public struct List: RPCRequest {
            public static let method = "auth.sessions.list"
            public static let summary = """
                Lists the sessions of the caller, page by page; those of any account for administrators, with `uid`
                """
            public static let access = Access.signedIn
            public static let effect = Effect.read
            public static var example: RPCExample<Self> { RPCExample(Self(), Result(sessions: [.example])) }

            public var uid: String?
            public var after: String?
            public var limit: Int?

            public static let fields = Fields<Self>(
                blank: Self(),
                .optional(
                    "uid", \.uid, "The id of the user; only for administrators, who must give it",
                    example: Auth.Account.example.uid),
                .optional(
                    "after", \.after, "The `after` of the previous page; the first page when absent",
                    example: "1795000000000-Yk3vWq0fTzK8mB5xN2cR7A"),
                .optional(
                    "limit", \.limit, "The maximum number of sessions, 1 to 1,000; 100 when absent", example: 20))

            public init(uid: String? = nil) { self.uid = uid }

            public struct Result: FieldObject, Hashable {
                public var sessions: [Entry]
                public var after: String?

                public static let fields = Fields<Self>(
                    blank: Self(sessions: []),
                    .required("sessions", \.sessions, "The sessions, within a page the one that was used last first"),
                    .optional("after", \.after, "The `after` of the next page; absent on the last one"))

                public init(sessions: [Entry], after: String? = nil) {
                    self.sessions = sessions
                    self.after = after
                }
            }
        }

        /// The refresh tokens of the session are refused from then on, and its ID tokens by the services that follow
        /// auth.
        public struct End: RPCRequest {
            public typealias Result = Empty
            public static let method = "auth.sessions.end"
            public static let summary = """
                Ends one session of the caller, or all others; those of any account for administrators, with `uid`
                """
            public static let access = Access.signedIn
            public static let effect = Effect.write
            public static var example: RPCExample<Self> {
                RPCExample(Self(session: Entry.example.session), Empty())
            }

            public var uid: String?
            public var session: String?
            public var others: Bool?

            public static let fields = Fields<Self>(
                blank: Self(),
                .optional(
                    "uid", \.uid, "The id of the user; only for administrators, who must give it",
                    example: Auth.Account.example.uid),
                .optional(
                    "session", \.session,
                    """
                    The `session` of `auth.sessions.list`; exactly one of `session` and `others`. No error if \
                    it has already ended
                    """
                ),
                .optional(
                    "others", \.others,
                    "True: all sessions but that of the caller's ID token; all of them for administrators",
                    example: true))

            public init(uid: String? = nil, session: String? = nil, others: Bool? = nil) {
                self.uid = uid
                self.session = session
                self.others = others
            }
        }

        /// A widget or an extension that shares the refresh token of its app would use it up for the other.
        public struct Fork: RPCRequest {
            public typealias Result = Auth.Session
            public static let method = "auth.sessions.fork"
            public static let summary = """
                Begins another session for the same user, such as that of a widget; the presented token stays valid
                """
            public static let access = Access.anyone
            public static let effect = Effect.write
            public static var example: RPCExample<Self> {
                var session = Auth.Session.example
                session.isNewUser = false
                return RPCExample(Self(refreshToken: session.refreshToken, label: "Widget"), session)
            }

            public var refreshToken: String
            public var label: String?

            public static let fields = Fields<Self>(
                blank: Self(refreshToken: ""),
                .required(
                    "refreshToken", \.refreshToken,
                    """
                    The newest refresh token of a session, or the one before it while `auth.refresh` would \
                    repeat it; it is not used up. Any other is refused (`INVALID_REFRESH_TOKEN`; `TOKEN_EXPIRED` if \
                    the session has ended). The new \
                    session ends when the sign-in does, and with the other sessions of the sign-in when a \
                    stolen token of one of them is used
                    """),
                .label(\.label))

            public init(refreshToken: String, label: String? = nil) {
                self.refreshToken = refreshToken
                self.label = label
            }

            public static func decode(_ params: JSONObject) throws(RPCError) -> Self {
                try params.requireAuthParameter("refreshToken", reason: "MISSING_REFRESH_TOKEN")
                return try decodeFields(params)
            }
        }
    }
}
