extension Auth {
    /// An account as its owner and administrators see it (spec auth §2). Times are milliseconds since 1970 unless
    /// stated otherwise.
    public struct Account: FieldObject, Hashable {
        public var uid: String
        public var email: String?
        public var emailVerified: Bool
        public var username: String?
        public var displayName: String?
        public var photoUrl: String?
        public var phoneNumber: String?
        public var disabled: Bool
        public var createdAt: Int64
        public var lastLoginAt: Int64?
        public var lastRefreshAt: Int64?
        public var passwordUpdatedAt: Int64?
        public var validSince: Int64
        public var customAttributes: String?
        public var initialEmail: String?
        public var emailLinkSignin: Bool?
        public var customAuth: Bool?
        public var providerUserInfo: [Provider]

        public static let fields = Fields<Self>(
            blank: Self(uid: "", createdAt: 0),
            .required("uid", \.uid, "The id of the user"),
            .optional(
                "email", \.email,
                """
                The e-mail address in lower case; an internationalised domain is in Unicode, not in Punycode \
                (`xn--`)
                """),
            .required("emailVerified", \.emailVerified, "Whether the owner has proved to receive mail at `email`"),
            .optional(
                "username", \.username,
                "The username, in lower case; `auth.signIn` accepts it instead of the e-mail address"),
            .optional(
                "displayName", \.displayName,
                "The name that apps show for the user; absent if none is set"),
            .optional(
                "photoUrl", \.photoUrl,
                "The URL of a picture of the user, or another text that apps set for it; absent if none is set"),
            .optional(
                "phoneNumber", \.phoneNumber, "The phone number, in the form of E.164; absent if none is set"),
            .required("disabled", \.disabled, "Whether signing in is denied"),
            .required("createdAt", \.createdAt, "When the account was created, in milliseconds since 1970"),
            .optional(
                "lastLoginAt", \.lastLoginAt,
                "The last sign-in, in milliseconds since 1970; absent until the first one"),
            .optional(
                "lastRefreshAt", \.lastRefreshAt,
                "The last `auth.refresh`, in milliseconds since 1970; absent until the first one"),
            .optional(
                "passwordUpdatedAt", \.passwordUpdatedAt,
                "When the password was set, in milliseconds since 1970; absent without a password"),
            .required(
                "validSince", \.validSince,
                "In seconds since 1970 (not milliseconds): auth refuses ID tokens issued before this time"),
            .optional(
                "customAttributes", \.customAttributes,
                "Custom claims of the ID tokens: a JSON object as a string"),
            .optional("initialEmail", \.initialEmail, "The first e-mail address of the account"),
            .optional(
                "emailLinkSignin", \.emailLinkSignin,
                "True when the user has signed in with a code of a mail; absent otherwise"),
            .optional(
                "customAuth", \.customAuth, "True when the user has signed in with a custom token; absent otherwise"),
            .required(
                "providerUserInfo", \.providerUserInfo,
                "The ways to sign in to the account; empty for an anonymous one"))

        /// A new account without credentials; `createdAt` in milliseconds since 1970.
        public init(uid: String, createdAt: Int64) {
            self.uid = uid
            self.createdAt = createdAt
            emailVerified = false
            disabled = false
            validSince = createdAt / 1000
            providerUserInfo = []
        }

        /// One way to sign in.
        public struct Provider: FieldObject, Hashable {
            public var providerId: String
            public var rawId: String
            public var email: String?
            public var displayName: String?
            public var photoUrl: String?

            public static let fields = Fields<Self>(
                blank: Self(providerId: "", rawId: ""),
                .required(
                    "providerId", \.providerId, "`password`, `phone`, or the id of a provider, such as `google.com`"),
                .required(
                    "rawId", \.rawId,
                    """
                    The user's id at the provider, the `sub` of its ID tokens; for `password` the e-mail address, \
                    or the username without one; for `phone` the number
                    """),
                .optional("email", \.email, "The e-mail address at the provider"),
                .optional("displayName", \.displayName, "The displayed name at the provider"),
                .optional("photoUrl", \.photoUrl, "The URL of the picture at the provider"))

            public init(providerId: String, rawId: String) {
                self.providerId = providerId
                self.rawId = rawId
            }
        }

        static var example: Account {
            var account = Account(uid: Session.example.uid, createdAt: 1_795_000_000_000)
            account.email = "masuo@example.com"
            account.displayName = "マスオさん"
            account.lastLoginAt = account.createdAt
            var provider = Provider(providerId: "password", rawId: "masuo@example.com")
            provider.email = account.email
            provider.displayName = account.displayName
            account.providerUserInfo = [provider]
            return account
        }
    }

    /// The attributes that `deleteAttributes` may name.
    public enum AccountAttribute: String, FieldChoice {
        case email
        case password
        case username
        case displayName
        case photoUrl
    }
}

extension Auth.Account {
    public struct Get: RPCRequest {
        public typealias Result = Auth.Account
        public static let method = "auth.account.get"
        public static let summary =
            "Reads the account of the caller; with the administrator key only together with `as`"
        public static let access = Access.signedIn
        public static let effect = Effect.read
        public static var example: RPCExample<Self> { RPCExample(Self(), .example) }

        public static let fields = Fields<Self>(blank: Self())

        public init() {}
    }

    /// Changes the given attributes and leaves the others. A new e-mail or password requires a recent sign-in, ends
    /// every session and returns a new one.
    ///
    /// A user's credential stays complete or absent: an anonymous account is given a password together with its name
    /// (`MISSING_PASSWORD`), and the last name and the password are removed together (`MISSING_EMAIL`,
    /// `MISSING_PASSWORD`, both of `deleteAttributes`). Administrators may give an account a password without a name.
    public struct Update: RPCRequest {
        public static let method = "auth.account.update"
        public static let summary =
            "Changes the account of the caller; with the administrator key only together with `as`"
        public static let access = Access.signedIn
        public static let effect = Effect.write
        public static var example: RPCExample<Self> {
            RPCExample(
                Self(displayName: "マスオさん"),
                Result(idToken: Auth.Session.example.idToken, expiresIn: 3600, account: .example))
        }

        public var email: String?
        public var password: String?
        public var username: String?
        public var displayName: String?
        public var photoUrl: String?
        public var deleteAttributes: [Auth.AccountAttribute]?
        public var deleteProviders: [String]?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "email", \.email,
                """
                The new e-mail address, at most 254 bytes. Requires a sign-in in the last 5 minutes \
                (`CREDENTIAL_TOO_OLD_LOGIN_AGAIN`); ends all sessions of the account, and the result has a \
                new one. `emailVerified` becomes false. Where the service sends mails, a verified address is replaced \
                with a code only (`EMAIL_CHANGE_NEEDS_VERIFICATION`)
                """,
                example: "masuo@example.com"),
            .optional(
                "password", \.password,
                """
                The new password, as in `auth.signUp`. Requires a sign-in in the last 5 minutes \
                (`CREDENTIAL_TOO_OLD_LOGIN_AGAIN`); ends all sessions of the account, and the result has a \
                new one
                """
            ),
            .optional(
                "username", \.username,
                """
                The new username: 3 to 32 of a-z, 0-9, `_` and `.`; upper case is stored as lower case. \
                `auth.signIn` accepts it instead of the e-mail address. Requires a sign-in in the last 5 \
                minutes
                """,
                example: "masuo"),
            .displayName(\.displayName),
            .photoUrl(\.photoUrl),
            .optional(
                "deleteAttributes", \.deleteAttributes,
                """
                Attributes to remove. `email`, `password` and `username` require a sign-in in the last 5 \
                minutes; removing `email` or `password` ends all sessions. The last of `email` and \
                `username` can only be removed together with `password` (`MISSING_EMAIL`), and only where a way to \
                sign in is left that the settings allow (`LAST_SIGN_IN_METHOD`); an attribute that is also set is \
                refused (`INVALID_REQ_TYPE`)
                """, example: [.photoUrl]),
            .optional(
                "deleteProviders", \.deleteProviders,
                """
                Ids of providers whose identities no longer sign in to the account; `phone` removes the phone number, \
                and `password` the password. Requires a sign-in in the last 5 minutes; refused if no other way to \
                sign in is left that the settings allow (`LAST_SIGN_IN_METHOD`)
                """, example: ["google.com"]))

        public init(
            email: String? = nil, password: String? = nil, displayName: String? = nil,
            deleteAttributes: [Auth.AccountAttribute]? = nil
        ) {
            self.email = email
            self.password = password
            self.displayName = displayName
            self.deleteAttributes = deleteAttributes
        }
    }

    public struct Delete: RPCRequest {
        public typealias Result = Empty
        public static let method = "auth.account.delete"
        public static let summary = """
            Deletes the account of the caller and ends its sessions; with the administrator key only \
            together with `as`. Requires a sign-in in the last 5 minutes, except of an anonymous account
            """
        public static let access = Access.signedIn
        public static let effect = Effect.write
        public static var example: RPCExample<Self> { RPCExample(Self(), Empty()) }

        public static let fields = Fields<Self>(blank: Self())

        public init() {}
    }
}

extension Auth.Account.Update {
    /// The members of the account and those of a session, in one object.
    ///
    /// `idToken` carries the new claims. `refreshToken` is present when the e-mail or the password changed, which ended
    /// the earlier ones; otherwise the caller's stays valid, and the ID token expires when the presented one would
    /// have.
    public struct Result: FieldObject, Hashable {
        public var idToken: String
        public var refreshToken: String?
        public var expiresIn: Int
        public var isNewUser: Bool
        /// The account after the change; its members are in the same object as those of the session.
        public var account: Auth.Account

        public static let fields = Fields<Self>(
            blank: Self(idToken: "", expiresIn: 0, account: Auth.Account.fields.blank),
            .required(
                "idToken", \.idToken,
                """
                An ID token with the new claims; without a new session it expires when the presented one \
                does
                """),
            .optional(
                "refreshToken", \.refreshToken,
                """
                The refresh token of the new session, which replaces the caller's; present when the change \
                ended the sessions: a new e-mail address or password, or their removal
                """),
            .required("expiresIn", \.expiresIn, "Seconds until `idToken` expires; 3,600 for a new session"),
            .required("isNewUser", \.isNewUser, "Always false")
        )
        .inlining(\.account)

        public init(idToken: String, refreshToken: String? = nil, expiresIn: Int, account: Auth.Account) {
            self.idToken = idToken
            self.refreshToken = refreshToken
            self.expiresIn = expiresIn
            self.account = account
            isNewUser = false
        }
    }
}
