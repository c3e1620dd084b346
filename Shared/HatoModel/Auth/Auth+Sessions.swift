extension Auth {
    /// Creates an account and signs it in. Without e-mail, username and password the account is anonymous; with the
    /// `idToken` of an account without password, that account gets the credentials and keeps its uid.
    ///
    /// With `dryRun` it checks the form and does nothing: an empty result means that the form is right. With the
    /// setting `signUpAlwaysAccepts` an e-mail address gives no session: the code of a mail to it makes the account
    /// (`auth.code.apply`).
    public struct SignUp: RPCRequest {
        public static let method = "auth.signUp"
        public static let summary = "Creates an account, anonymous or with credentials, and signs it in"
        public static let access = Access.anyone
        public static let effect = Effect.write
        public static let isSlow = true
        public static var example: RPCExample<Self> {
            RPCExample(
                Self(email: "masuo@example.com", password: "sazae-and-friends", displayName: "マスオさん"),
                Result(.example))
        }

        public var email: String?
        public var password: String?
        public var username: String?
        public var displayName: String?
        public var idToken: String?
        public var label: String?
        public var dryRun: Bool?
        public var locale: String?
        public var continueUrl: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "email", \.email,
                """
                The e-mail address, at most 254 bytes. With `email` or `username`, `password` is required, \
                and the reverse; without all three the account is anonymous
                """),
            .password(\.password),
            .username(\.username),
            .displayName(\.displayName),
            .optional(
                "idToken", \.idToken,
                """
                The ID token of an account without password, at most 16 KiB: that account gets the credentials and \
                keeps its uid; its earlier sessions end. `password` is required, and a name if it has none. One that is not anonymous must have \
                signed in recently. `PROVIDER_ALREADY_LINKED` if it has a password
                """,
                example: Auth.Session.example.idToken),
            .label(\.label),
            .optional(
                "dryRun", \.dryRun,
                """
                Whether only the form is checked: every problem comes at once, a taken username among them, and a \
                taken e-mail address where `hidesWhoExists` is off. Nothing is hashed or kept, and the result is empty
                """, example: false),
            .optional("locale", \.locale, "With `signUpAlwaysAccepts`, the language of the mail", example: "ja"),
            .optional(
                "continueUrl", \.continueUrl,
                "With `signUpAlwaysAccepts`, the page of the mail's link, or where that goes on: of `continueDomains`",
                example: "https://chat.example.com/signed-up"))

        public init(email: String? = nil, password: String? = nil, username: String? = nil, displayName: String? = nil)
        {
            self.email = email
            self.password = password
            self.username = username
            self.displayName = displayName
        }

        /// The session; empty for a dry run; `accepted` alone where a mail says how to go on.
        public struct Result: FieldObject, Hashable {
            public var uid: String?
            public var idToken: String?
            public var refreshToken: String?
            public var expiresIn: Int?
            public var isNewUser: Bool?
            public var accepted: Bool?

            public static let fields = Fields<Self>(
                blank: Self(nil),
                .optional("uid", \.uid, "The id of the user; absent for a dry run, as are the others"),
                .optional(
                    "idToken", \.idToken,
                    "The ID token, a JWT signed with ES256: the `auth` of calls to every service"),
                .optional("refreshToken", \.refreshToken, "The refresh token, for `auth.refresh`"),
                .optional("expiresIn", \.expiresIn, "Seconds until `idToken` expires; 3,600 for a new session"),
                .optional(
                    "isNewUser", \.isNewUser,
                    """
                    True when this call created the account; false when it gave credentials to the account of \
                    `idToken`
                    """),
                .optional(
                    "accepted", \.accepted,
                    "True, alone, with the setting `signUpAlwaysAccepts`: the mail to the address says how to go on"))

            /// - Parameter session: nil for a dry run.
            public init(_ session: Session?) {
                uid = session?.uid
                idToken = session?.idToken
                refreshToken = session?.refreshToken
                expiresIn = session?.expiresIn
                isNewUser = session?.isNewUser
            }

            /// Of a sign-up that goes on with a mail.
            public static var accepted: Self {
                var result = Self(nil)
                result.accepted = true
                return result
            }

            /// Nil for a dry run, and where a mail says how to go on.
            public var session: Session? {
                guard let uid, let idToken, let refreshToken, let expiresIn, let isNewUser else { return nil }
                return Session(
                    uid: uid, idToken: idToken, refreshToken: refreshToken, expiresIn: expiresIn, isNewUser: isNewUser)
            }
        }
    }

    /// The error of a wrong name and of a wrong password is the same, `INVALID_LOGIN_CREDENTIALS`, unless the setting
    /// `hide-who-exists` is off.
    public struct SignIn: RPCRequest {
        public typealias Result = Session
        public static let method = "auth.signIn"
        public static let summary = """
            Signs in with e-mail or username, and password. `EMAIL_NOT_FOUND` and `INVALID_PASSWORD` \
            occur only with the setting `hide-who-exists` off
            """
        public static let access = Access.anyone
        public static let effect = Effect.write
        public static let isSlow = true
        public static var example: RPCExample<Self> {
            var session = Session.example
            session.isNewUser = false
            return RPCExample(Self(email: "masuo@example.com", password: "sazae-and-friends"), session)
        }

        public var email: String?
        public var username: String?
        public var password: String
        public var label: String?

        public static let fields = Fields<Self>(
            blank: Self(password: ""),
            .optional("email", \.email, "The e-mail address, at most 254 bytes; exactly one of `email` and `username`"),
            .optional("username", \.username, "The username; exactly one of `email` and `username`", example: "masuo"),
            .required(
                "password", \.password,
                "The password; one of more than 4,096 bytes counts as wrong"),
            .label(\.label))

        public init(email: String? = nil, username: String? = nil, password: String) {
            self.email = email
            self.username = username
            self.password = password
        }

        public static func decode(_ params: JSONObject) throws(RPCError) -> Self {
            try params.requireAuthParameter("password", reason: "MISSING_PASSWORD")
            return try decodeFields(params)
        }
    }

    /// A refresh token is valid once. Presented again, because a response was lost or two tabs refresh, it returns the
    /// newest token (spec auth §9); a token that may have been stolen ends the session.
    public struct Refresh: RPCRequest {
        public typealias Result = Session
        public static let method = "auth.refresh"
        public static let summary = "Exchanges a refresh token for a new ID token and the next refresh token"
        public static let access = Access.anyone
        public static let effect = Effect.write
        public static var example: RPCExample<Self> {
            var session = Session.example
            session.isNewUser = false
            return RPCExample(Self(refreshToken: session.refreshToken), session)
        }

        public var refreshToken: String

        public static let fields = Fields<Self>(
            blank: Self(refreshToken: ""),
            .required(
                "refreshToken", \.refreshToken,
                """
                The refresh token, 64 characters. Presented again within 30 seconds of its use it returns the \
                newest token of the session; later, for 7 days, the same successor if that was never \
                presented. Everything else ends the session (`INVALID_REFRESH_TOKEN`), as a third late \
                repetition in a row does. A session also ends after 30 days without a refresh. The token of one that has \
                ended, or that is not known, says `TOKEN_EXPIRED`
                """
            ))

        public init(refreshToken: String) { self.refreshToken = refreshToken }

        public static func decode(_ params: JSONObject) throws(RPCError) -> Self {
            try params.requireAuthParameter("refreshToken", reason: "MISSING_REFRESH_TOKEN")
            return try decodeFields(params)
        }
    }

    /// Ending a session that does not exist (any more) is no error.
    public struct SignOut: RPCRequest {
        public typealias Result = Empty
        public static let method = "auth.signOut"
        public static let summary = """
            Ends the session that a refresh token belongs to; its ID token stays valid until it expires
            """
        public static let access = Access.anyone
        public static let effect = Effect.write
        public static var example: RPCExample<Self> {
            RPCExample(Self(refreshToken: Session.example.refreshToken), Empty())
        }

        public var refreshToken: String

        public static let fields = Fields<Self>(
            blank: Self(refreshToken: ""),
            .required(
                "refreshToken", \.refreshToken,
                """
                A refresh token of the session that ends, at most 8 refreshes before the newest; another token \
                ends no session
                """))

        public init(refreshToken: String) { self.refreshToken = refreshToken }

        public static func decode(_ params: JSONObject) throws(RPCError) -> Self {
            try params.requireAuthParameter("refreshToken", reason: "MISSING_REFRESH_TOKEN")
            return try decodeFields(params)
        }
    }
}
