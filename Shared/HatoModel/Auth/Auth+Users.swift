extension Auth {
    /// What administrators do to accounts.
    public enum Users {}
}

extension Auth.Users {
    /// Errors as `auth.signUp`'s, and already_exists `DUPLICATE_LOCAL_ID`, invalid_argument `INVALID_LOCAL_ID`,
    /// `INVALID_CLAIMS`.
    public struct Create: RPCRequest {
        public typealias Result = Auth.Account
        public static let method = "auth.users.create"
        public static let summary = "Makes an account"
        public static let access = Access.administrator
        public static let effect = Effect.write
        public static var example: RPCExample<Self> {
            var request = Self()
            request.email = "masuo@example.com"
            request.displayName = "マスオさん"
            return RPCExample(request, .example)
        }

        /// 1 to 128 characters that can be a key of the tree (none of `. # $ / [ ]`); one is made when absent.
        public var uid: String?
        public var email: String?
        public var emailVerified: Bool?
        public var password: String?
        public var username: String?
        public var displayName: String?
        public var photoUrl: String?
        public var disabled: Bool?
        public var customAttributes: String?

        public init() {}
    }

    /// Exactly one of `uid`, `email`, `username`. Errors: not_found `USER_NOT_FOUND`.
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

        /// The uid the page begins after.
        public var after: String?
        /// 1 to 1,000; 1,000 when absent.
        public var limit: Int?

        public init(after: String? = nil, limit: Int? = nil) {
            self.after = after
            self.limit = limit
        }

        public struct Result: Codable, Sendable, Hashable {
            public var users: [Auth.Account]
            /// Where the next page begins; absent on the last.
            public var after: String?

            public init(users: [Auth.Account], after: String? = nil) {
                self.users = users
                self.after = after
            }
        }
    }

    /// Changes what is named and leaves the rest. Disabling an account, a new e-mail and a new password end its
    /// sessions. Taking the last name of an account that has a password takes `deleteAttributes` with `password` too
    /// (`MISSING_EMAIL` otherwise).
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
        public var disabled: Bool?
        /// A JSON object as text; `{}` takes the claims away.
        public var customAttributes: String?
        public var deleteAttributes: [Auth.AccountAttribute]?

        public init(uid: String) { self.uid = uid }
    }

    public struct Delete: RPCRequest {
        public typealias Result = Empty
        public static let method = "auth.users.delete"
        public static let summary = "Deletes an account and ends its sessions"
        public static let access = Access.administrator
        public static let effect = Effect.write
        public static var example: RPCExample<Self> { RPCExample(Self(uid: Auth.Account.example.uid), Empty()) }

        public var uid: String

        public init(uid: String) { self.uid = uid }
    }

    /// Ends every session of an account; ID tokens issued before are refused by this service from now on.
    public struct Revoke: RPCRequest {
        public typealias Result = Auth.Account
        public static let method = "auth.users.revoke"
        public static let summary = "Ends every session of an account"
        public static let access = Access.administrator
        public static let effect = Effect.write
        public static var example: RPCExample<Self> { RPCExample(Self(uid: Auth.Account.example.uid), .example) }

        public var uid: String

        public init(uid: String) { self.uid = uid }
    }
}
