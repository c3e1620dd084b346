extension Auth {
    /// Cookies that web servers set in place of ID tokens, which are valid for an hour at most.
    public enum SessionCookie {
        static let exampleCookie = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxYzl2MiIs…"

        /// A stolen ID token must not become a credential for two weeks: only servers make cookies, and should do so
        /// only when `auth_time` is a few minutes ago.
        public struct Create: RPCRequest {
            public static let method = "auth.sessionCookie.create"
            public static let summary = "Makes a session cookie with the claims of an ID token"
            public static let access = Access.administrator
            public static let effect = Effect.write
            public static var example: RPCExample<Self> {
                RPCExample(
                    Self(idToken: Session.example.idToken, validForSeconds: 432_000),
                    Result(sessionCookie: exampleCookie))
            }

            public var idToken: String
            public var validForSeconds: Int?

            public static let fields = Fields<Self>(
                blank: Self(idToken: ""),
                .required("idToken", \.idToken, "An ID token whose session has not ended, at most 16 KiB"),
                .optional(
                    "validForSeconds", \.validForSeconds,
                    "Seconds for which the cookie is valid, 300 to 1,209,600 (14 days); 1,209,600 when absent"))

            public init(idToken: String, validForSeconds: Int? = nil) {
                self.idToken = idToken
                self.validForSeconds = validForSeconds
            }

            public static func decode(_ params: JSONObject) throws(RPCError) -> Self {
                try params.requireToken("idToken", reason: "MISSING_ID_TOKEN")
                return try decodeFields(params)
            }

            public struct Result: FieldObject, Hashable {
                public var sessionCookie: String

                public static let fields = Fields<Self>(
                    blank: Self(sessionCookie: ""),
                    .required(
                        "sessionCookie", \.sessionCookie,
                        """
                        The cookie, a JWT signed with ES256 whose issuer is `https://session.firebase.google.com/` and \
                        the project; `auth.keys` verifies it, and no service takes it for an ID token
                        """))

                public init(sessionCookie: String) { self.sessionCookie = sessionCookie }
            }
        }

        /// The keys of `auth.keys` verify it without a call; `checkRevoked` needs one.
        public struct Verify: RPCRequest {
            public typealias Result = JSONObject
            public static let method = "auth.sessionCookie.verify"
            public static let summary = "Verifies a session cookie and returns its claims"
            public static let access = Access.anyone
            public static let effect = Effect.read
            public static var example: RPCExample<Self> {
                RPCExample(
                    Self(sessionCookie: exampleCookie, checkRevoked: true),
                    [
                        "iss": "https://session.firebase.google.com/hato", "aud": "hato", "sub": "masuo-1",
                        "user_id": "masuo-1", "auth_time": 1_795_000_000, "iat": 1_795_000_060, "exp": 1_795_432_060,
                    ])
            }

            public var sessionCookie: String
            public var checkRevoked: Bool?

            public static let fields = Fields<Self>(
                blank: Self(sessionCookie: ""),
                .required("sessionCookie", \.sessionCookie, "The cookie, at most 16 KiB"),
                .optional(
                    "checkRevoked", \.checkRevoked,
                    """
                    True: refuses the cookie, too, when its user was disabled (`USER_DISABLED`) or deleted \
                    (`USER_NOT_FOUND`), or its session has ended (`SESSION_COOKIE_REVOKED`)
                    """))

            public init(sessionCookie: String, checkRevoked: Bool? = nil) {
                self.sessionCookie = sessionCookie
                self.checkRevoked = checkRevoked
            }
        }
    }
}
