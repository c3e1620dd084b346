extension Auth {
    /// The methods of administrators for accounts.
    public enum Users {}
}

extension Auth.Users {
    public struct Create: RPCRequest {
        public typealias Result = Auth.Account
        public static let method = "auth.users.create"
        public static let summary = "Creates an account"
        public static let access = Access.administrator
        public static let effect = Effect.write
        public static var example: RPCExample<Self> {
            var request = Self()
            request.email = "masuo@example.com"
            request.displayName = "マスオさん"
            return RPCExample(request, .example)
        }

        public var uid: String?
        public var email: String?
        public var emailVerified: Bool?
        public var password: String?
        public var username: String?
        public var displayName: String?
        public var photoUrl: String?
        public var phoneNumber: String?
        public var disabled: Bool?
        public var customAttributes: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "uid", \.uid,
                """
                1 to 128 Unicode code points without control characters; one with `. # $ / [ ]` cannot be a key of the \
                tree. Generated when absent
                """, example: "masuo-1"),
            .optional("email", \.email, "The e-mail address, at most 254 bytes"),
            .optional(
                "emailVerified", \.emailVerified,
                "Whether the owner has proved to receive mail at `email`; false when absent", example: true),
            .password(
                \.password,
                adding: """
                    . Without `email` and `username` it is kept, and signs in as soon as the account has one of them
                    """),
            .username(\.username),
            .displayName(\.displayName),
            .photoUrl(\.photoUrl),
            .phoneNumber(\.phoneNumber),
            .optional(
                "disabled", \.disabled, "Whether signing in is denied (`USER_DISABLED`); false when absent",
                example: false),
            .optional(
                "customAttributes", \.customAttributes,
                """
                Custom claims of the ID tokens: a JSON object as a string, at most 1,000 Unicode code points; \
                reserved claims are refused (`FORBIDDEN_CLAIM`)
                """, example: "{\"staff\":true}")
        )

        public init() {}
    }

    /// Exactly one of `uid`, `email`, `username`, `phoneNumber`, and `provider` with `providerUid`.
    public struct Get: RPCRequest {
        public typealias Result = Auth.Account
        public static let method = "auth.users.get"
        public static let summary = "Reads one account"
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static var example: RPCExample<Self> { RPCExample(Self(email: "masuo@example.com"), .example) }

        public var uid: String?
        public var email: String?
        public var username: String?
        public var phoneNumber: String?
        public var provider: String?
        public var providerUid: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "uid", \.uid, "The id of the user; exactly one of the parameters",
                example: Auth.Account.example.uid),
            .optional(
                "email", \.email,
                """
                The e-mail address, at most 254 bytes; exactly one of the parameters
                """),
            .optional(
                "username", \.username, "The username; exactly one of the parameters",
                example: "masuo"),
            .optional(
                "phoneNumber", \.phoneNumber, "The phone number, in the form of E.164", example: "+819012345678"),
            .optional(
                "provider", \.provider, "The id of a provider, together with `providerUid`", example: "google.com"),
            .optional(
                "providerUid", \.providerUid, "The user's id at that provider: `rawId` of `providerUserInfo`",
                example: "110169484474386276334"))

        public init(uid: String? = nil, email: String? = nil, username: String? = nil) {
            self.uid = uid
            self.email = email
            self.username = username
        }
    }

    public struct List: RPCRequest {
        public static let method = "auth.users.list"
        public static let summary = "Lists accounts in the order of their uids, page by page"
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static var example: RPCExample<Self> {
            RPCExample(Self(limit: 1), Result(users: [.example], after: Auth.Account.example.uid))
        }

        public var after: String?
        public var limit: Int?
        public var total: Bool?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "after", \.after, "The `after` of the previous page; the first page when absent",
                example: Auth.Account.example.uid),
            .optional("limit", \.limit, "The maximum number of entries, 1 to 1,000; 1,000 when absent"),
            .optional("total", \.total, "True: the result says how many accounts there are", example: true))

        public init(after: String? = nil, limit: Int? = nil) {
            self.after = after
            self.limit = limit
        }

        public struct Result: FieldObject, Hashable {
            public var users: [Auth.Account]
            public var after: String?
            public var total: Int?

            public static let fields = Fields<Self>(
                blank: Self(users: []),
                .required("users", \.users, "The accounts in the order of their uids"),
                .optional("after", \.after, "The `after` of the next page; absent on the last one"),
                .optional(
                    "total", \.total, "With `total`: the number of all accounts, at the same time as the page"))

            public init(users: [Auth.Account], after: String? = nil) {
                self.users = users
                self.after = after
            }
        }
    }

    /// Changes the given attributes and leaves the others. Enabling a disabled account, a new e-mail and a new password
    /// end its sessions. Removing the last name of an account that has a password requires `password` in
    /// `deleteAttributes` too (`MISSING_EMAIL` otherwise).
    public struct Update: RPCRequest {
        public typealias Result = Auth.Account
        public static let method = "auth.users.update"
        public static let summary = "Changes an account"
        public static let access = Access.administrator
        public static let effect = Effect.write
        public static var example: RPCExample<Self> {
            var request = Self(uid: Auth.Account.example.uid)
            request.displayName = "マスオさん"
            return RPCExample(request, .example)
        }

        public var uid: String
        public var email: String?
        public var emailVerified: Bool?
        public var password: String?
        public var username: String?
        public var displayName: String?
        public var photoUrl: String?
        public var phoneNumber: String?
        public var disabled: Bool?
        public var customAttributes: String?
        public var deleteAttributes: [Auth.AccountAttribute]?
        public var deleteProviders: [String]?
        public var linkProviderUserInfo: Auth.Account.Provider?

        public static let fields = Fields<Self>(
            blank: Self(uid: ""),
            .required("uid", \.uid, "The id of the user"),
            .optional(
                "email", \.email, "The new e-mail address, at most 254 bytes; another one ends the sessions",
                example: "masuo@example.com"),
            .optional(
                "emailVerified", \.emailVerified,
                """
                Whether the owner has proved to receive mail at `email`; becomes false when `email` changes \
                and this is absent
                """, example: true),
            .optional(
                "password", \.password,
                """
                The new password, normalised with NFKC: at least 15 Unicode code points (setting \
                `password-length-min`; 6 in `hato-dev`), at most 4,096 bytes of UTF-8; common passwords, \
                repetitions, sequences and the user's own names are refused (`WEAK_PASSWORD`). Ends the \
                sessions of the account. Without `email` and `username` it is kept, and signs in as soon as the \
                account has one of them
                """),
            .username(\.username),
            .displayName(\.displayName),
            .photoUrl(\.photoUrl),
            .phoneNumber(\.phoneNumber),
            .optional(
                "disabled", \.disabled,
                """
                Whether signing in is denied (`USER_DISABLED`). False for a disabled account ends the sessions \
                that began before
                """,
                example: true),
            .optional(
                "customAttributes", \.customAttributes,
                """
                Custom claims of the ID tokens: a JSON object as a string, at most 1,000 Unicode code points; \
                reserved claims are refused (`FORBIDDEN_CLAIM`); `{}` removes them. New ID tokens have them
                """,
                example: "{\"staff\":true}"),
            .optional(
                "deleteAttributes", \.deleteAttributes,
                """
                Attributes to remove; removing `email` or `password` ends all sessions. The last of `email` \
                and `username` can only be removed together with `password` (`MISSING_EMAIL`); an attribute \
                that is also set is refused (`INVALID_REQ_TYPE`)
                """, example: [.photoUrl]),
            .optional(
                "deleteProviders", \.deleteProviders,
                """
                Ids of providers whose identities no longer sign in to the account; also the last way to sign in. \
                `phone` removes the phone number, and `password` the password
                """,
                example: ["google.com"]),
            .optional(
                "linkProviderUserInfo", \.linkProviderUserInfo,
                """
                An identity that signs in to the account from now on, such as of `google.com`: each text at most 2,048 \
                bytes, `rawId` 255. Refused where another account has it (`FEDERATED_USER_ID_ALREADY_LINKED`), or the \
                account another one of the provider (`PROVIDER_ALREADY_LINKED`)
                """, example: Auth.Account.Provider(providerId: "google.com", rawId: "110169484474386276334")))

        public init(uid: String) { self.uid = uid }
    }

    public struct Delete: RPCRequest {
        public typealias Result = Empty
        public static let method = "auth.users.delete"
        public static let summary = """
            Deletes an account and ends its sessions; messages and notifier refuse its ID tokens as soon as \
            they hear of it
            """
        public static let access = Access.administrator
        public static let effect = Effect.write
        public static var example: RPCExample<Self> { RPCExample(Self(uid: Auth.Account.example.uid), Empty()) }

        public var uid: String

        public static let fields = Fields<Self>(
            blank: Self(uid: ""),
            .required("uid", \.uid, "The id of the user"))

        public init(uid: String) { self.uid = uid }
    }

    /// Ends every session of an account; the service refuses ID tokens issued before from now on.
    public struct Revoke: RPCRequest {
        public typealias Result = Auth.Account
        public static let method = "auth.users.revoke"
        public static let summary = """
            Ends every session of an account: its refresh tokens are refused at once. auth refuses its \
            ID tokens from before; messages and notifier do so as soon as they hear of it
            """
        public static let access = Access.administrator
        public static let effect = Effect.write
        public static var example: RPCExample<Self> { RPCExample(Self(uid: Auth.Account.example.uid), .example) }

        public var uid: String

        public static let fields = Fields<Self>(
            blank: Self(uid: ""),
            .required("uid", \.uid, "The id of the user"))

        public init(uid: String) { self.uid = uid }
    }
}
