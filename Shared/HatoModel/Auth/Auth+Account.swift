extension Auth {
    /// An account as its owner and administrators see it (spec auth §2). Times are milliseconds since 1970 unless they
    /// say otherwise.
    public struct Account: Codable, Sendable, Hashable {
        public var uid: String
        /// In lower case, its domain as people read it: neither full-width nor `xn--`.
        public var email: String?
        public var emailVerified: Bool
        /// In lower case; signs in like the e-mail.
        public var username: String?
        public var displayName: String?
        public var photoUrl: String?
        public var disabled: Bool
        public var createdAt: Int64
        /// Absent until the first sign-in.
        public var lastLoginAt: Int64?
        public var lastRefreshAt: Int64?
        public var passwordUpdatedAt: Int64?
        /// Seconds since 1970: ID tokens issued before are refused.
        public var validSince: Int64
        /// A JSON object as text, at most 1,000 characters: claims of the ID tokens.
        public var customAttributes: String?
        /// The e-mail the account had first.
        public var initialEmail: String?
        /// How the account signs in; empty for an anonymous one.
        public var providerUserInfo: [Provider]

        public init(uid: String, createdAt: Int64) {
            self.uid = uid
            self.createdAt = createdAt
            emailVerified = false
            disabled = false
            validSince = createdAt / 1000
            providerUserInfo = []
        }

        /// One way to sign in.
        public struct Provider: Codable, Sendable, Hashable {
            /// `password`.
            public var providerId: String
            /// What the provider knows the user by: the e-mail, or the username when there is none.
            public var rawId: String
            public var email: String?
            public var displayName: String?
            public var photoUrl: String?

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

    /// What `deleteAttributes` may name.
    public enum AccountAttribute: String, Codable, Sendable, Hashable, CaseIterable {
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
        public static let summary = "Reads the account of the caller"
        public static let access = Access.signedIn
        public static let effect = Effect.read
        public static var example: RPCExample<Self> { RPCExample(Self(), .example) }

        public init() {}
    }

    /// Changes what is named and leaves the rest. A new e-mail or password wants a recent sign-in, ends every other
    /// session and answers with a new one.
    ///
    /// Errors: as `auth.signUp`'s. A credential is whole or absent: an anonymous account is given a password with its name
    /// (`MISSING_PASSWORD`), and the last name and the password go together (`MISSING_EMAIL`, `MISSING_PASSWORD`, both of
    /// `deleteAttributes`).
    public struct Update: RPCRequest {
        public static let method = "auth.account.update"
        public static let summary = "Changes the account of the caller"
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
        public static let summary = "Deletes the account of the caller and ends its sessions"
        public static let access = Access.signedIn
        public static let effect = Effect.write
        public static var example: RPCExample<Self> { RPCExample(Self(), Empty()) }

        public init() {}
    }
}

extension Auth.Account.Update {
    /// The members of the account and those of a session, side by side.
    ///
    /// `idToken` carries the new claims. `refreshToken` is there when the e-mail or the password changed, which ended
    /// the earlier ones; otherwise the caller's stays good, and the ID token ends when the presented one would have.
    public struct Result: Codable, Sendable, Hashable {
        public var idToken: String
        public var refreshToken: String?
        public var expiresIn: Int
        public var isNewUser: Bool
        public var account: Auth.Account

        public init(idToken: String, refreshToken: String? = nil, expiresIn: Int, account: Auth.Account) {
            self.idToken = idToken
            self.refreshToken = refreshToken
            self.expiresIn = expiresIn
            self.account = account
            isNewUser = false
        }

        private enum CodingKeys: String, CodingKey {
            case idToken, refreshToken, expiresIn, isNewUser
        }

        public init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: CodingKeys.self)
            idToken = try members.decode(String.self, forKey: .idToken)
            refreshToken = try members.decodeIfPresent(String.self, forKey: .refreshToken)
            expiresIn = try members.decode(Int.self, forKey: .expiresIn)
            isNewUser = try members.decode(Bool.self, forKey: .isNewUser)
            account = try Auth.Account(from: decoder)
        }

        public func encode(to encoder: any Encoder) throws {
            var members = encoder.container(keyedBy: CodingKeys.self)
            try members.encode(idToken, forKey: .idToken)
            try members.encodeIfPresent(refreshToken, forKey: .refreshToken)
            try members.encode(expiresIn, forKey: .expiresIn)
            try members.encode(isNewUser, forKey: .isNewUser)
            try account.encode(to: encoder)
        }
    }
}
