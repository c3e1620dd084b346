extension Auth {
    /// Makes an account and signs it in. Without e-mail, username and password the account is anonymous; with the
    /// `idToken` of an anonymous one, that account gets the credentials and keeps its uid.
    ///
    /// Errors: invalid_argument `INVALID_EMAIL`, `WEAK_PASSWORD`, `MISSING_EMAIL`, `MISSING_PASSWORD`,
    /// `INVALID_USERNAME`, `INVALID_DISPLAY_NAME`, with `data.parameter` and, for forms, all of them in
    /// `data.problems`; already_exists `EMAIL_EXISTS`, `USERNAME_EXISTS`, `PROVIDER_ALREADY_LINKED`; resource_exhausted
    /// `TOO_MANY_ATTEMPTS_TRY_LATER`.
    public struct SignUp: RPCRequest {
        public typealias Result = Session
        public static let method = "auth.signUp"
        public static let summary = "Makes an account, anonymous or with credentials, and signs it in"
        public static let access = Access.anyone
        public static let effect = Effect.write
        public static let isSlow = true
        public static var example: RPCExample<Self> {
            RPCExample(
                Self(email: "masuo@example.com", password: "sazae-and-friends", displayName: "マスオさん"), .example)
        }

        public var email: String?
        public var password: String?
        public var username: String?
        public var displayName: String?
        /// An anonymous account's ID token.
        public var idToken: String?

        public init(email: String? = nil, password: String? = nil, username: String? = nil, displayName: String? = nil)
        {
            self.email = email
            self.password = password
            self.username = username
            self.displayName = displayName
        }
    }

    /// Errors: unauthenticated `INVALID_LOGIN_CREDENTIALS` (whether or not the account exists), `USER_DISABLED`;
    /// resource_exhausted `TOO_MANY_ATTEMPTS_TRY_LATER`; invalid_argument `MISSING_EMAIL`, `INVALID_EMAIL`,
    /// `MISSING_PASSWORD`.
    public struct SignIn: RPCRequest {
        public typealias Result = Session
        public static let method = "auth.signIn"
        public static let summary = "Signs in with e-mail or username, and password"
        public static let access = Access.anyone
        public static let effect = Effect.write
        public static let isSlow = true
        public static var example: RPCExample<Self> {
            var session = Session.example
            session.isNewUser = false
            return RPCExample(Self(email: "masuo@example.com", password: "sazae-and-friends"), session)
        }

        /// Exactly one of `email` and `username`.
        public var email: String?
        public var username: String?
        public var password: String

        public init(email: String? = nil, username: String? = nil, password: String) {
            self.email = email
            self.username = username
            self.password = password
        }

        public static func decode(_ params: JSONObject) throws -> Self {
            try params.requireAuthParameter("password", reason: "MISSING_PASSWORD")
            return try JSONCoding.decode(Self.self, from: params)
        }
    }

    /// A refresh token is good once. Presented again within the grace window (a lost answer, two tabs) it brings the
    /// same successor; presented later it ends the session, because then somebody has a copy.
    ///
    /// Errors: unauthenticated `INVALID_REFRESH_TOKEN`, `TOKEN_EXPIRED`, `USER_DISABLED`, `USER_NOT_FOUND`.
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

        public init(refreshToken: String) { self.refreshToken = refreshToken }

        public static func decode(_ params: JSONObject) throws -> Self {
            try params.requireAuthParameter("refreshToken", reason: "MISSING_REFRESH_TOKEN")
            return try JSONCoding.decode(Self.self, from: params)
        }
    }

    /// Ending a session that is not there (any more) is no error.
    public struct SignOut: RPCRequest {
        public typealias Result = Empty
        public static let method = "auth.signOut"
        public static let summary = "Ends the session a refresh token belongs to"
        public static let access = Access.anyone
        public static let effect = Effect.write
        public static var example: RPCExample<Self> {
            RPCExample(Self(refreshToken: Session.example.refreshToken), Empty())
        }

        public var refreshToken: String

        public init(refreshToken: String) { self.refreshToken = refreshToken }

        public static func decode(_ params: JSONObject) throws -> Self {
            try params.requireAuthParameter("refreshToken", reason: "MISSING_REFRESH_TOKEN")
            return try JSONCoding.decode(Self.self, from: params)
        }
    }
}
