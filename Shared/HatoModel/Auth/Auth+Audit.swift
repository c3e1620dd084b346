extension Auth {
    /// What has happened to accounts, sessions and settings, for people who look into it later.
    public enum Audit {
        /// The kind of an entry.
        public enum EntryType: String, FieldChoice {
            /// A user made the account.
            case signedUp
            case signedIn
            /// `reason` is that of the error.
            case signInFailed
            /// A session ended.
            case signedOut
            /// A used refresh token came again after its response was lost.
            case refreshLate
            /// A used refresh token came again as only a copy of it does: its sessions ended.
            case refreshReused
            /// An administrator made the account.
            case created
            case updated
            case deleted
            case disabled
            case enabled
            /// The earlier ID tokens and sessions of the account ended: a new password or address, or
            /// `auth.users.revoke`.
            case revoked
            /// An account got credentials, or `provider` an identity that signs in to it.
            case linked
            /// An identity of `provider` signs in to the account no more.
            case unlinked
            /// A session began with a refresh token of another one (`auth.sessions.fork`).
            case sessionForked
            /// A custom token was made for the account (`auth.customToken.create`).
            case customTokenCreated
            case providerSet
            case providerRemoved
            /// A code of a mail did what it is for: `reason` is its type.
            case codeApplied
            case imported
            case settingsChanged
            case keysRotated
            case keyRevoked
            /// Any other change by an administrator or a service.
            case administered
        }

        /// One entry.
        public struct Entry: FieldObject, Hashable {
            public var entry: String
            public var time: Int64
            public var type: EntryType
            public var uid: String?
            public var method: String?
            public var by: String?
            public var reason: String?
            public var provider: String?
            public var session: String?
            public var email: String?
            public var address: String?
            public var label: String?
            public var signer: String?
            public var count: Int?

            public static let fields = Fields<Self>(
                blank: Self(entry: "", time: 0, type: .updated),
                .required("entry", \.entry, "The id of the entry"),
                .required("time", \.time, "When it happened, in milliseconds since 1970"),
                .required("type", \.type, "What happened"),
                .optional("uid", \.uid, "The account; absent where none is concerned or known"),
                .optional("method", \.method, "The method that was called; absent for the service's own work"),
                .optional(
                    "by", \.by,
                    "`administrator`, or `service:` and the name of its key; absent for users and the service's own work"
                ),
                .optional(
                    "reason", \.reason,
                    """
                    Of `signInFailed` the reason of the error, also where the caller got a less exact one; of \
                    `codeApplied` the type of the code; of `updated` and `settingsChanged` the changed members; of \
                    `administered` what it was about
                    """),
                .optional(
                    "provider", \.provider,
                    """
                    How the user signed in: `password`, `custom`, …; of `linked`, `unlinked`, `providerSet` and \
                    `providerRemoved` the id of the provider
                    """),
                .optional("session", \.session, "The session, as in `auth.sessions.list`"),
                .optional(
                    "email", \.email,
                    """
                    Of the e-mail address, or the username, that was given: a code that only this service computes, the \
                    same for the same address
                    """),
                .optional(
                    "address", \.address,
                    """
                    The network of the client: an IPv4 address, or the /64 of an IPv6 one; with `count` its /48
                    """),
                .optional("label", \.label, "The name of the device"),
                .optional(
                    "signer", \.signer, "The registered service account whose custom token signed in, by its e-mail"),
                .optional(
                    "count", \.count,
                    "How many failures like this one the entry stands for, when they were too many to keep each"))

            /// - Parameter time: in milliseconds since 1970.
            public init(entry: String, time: Int64, type: EntryType) {
                self.entry = entry
                self.time = time
                self.type = type
            }

            static var example: Entry {
                var entry = Entry(entry: "AAABoe7nRAAAAAAAAAAQew", time: 1_795_000_000_000, type: .signedIn)
                entry.uid = Session.example.uid
                entry.method = SignIn.method
                entry.provider = "password"
                entry.address = "203.0.113.7"
                entry.label = "マスオさんのiPhone"
                return entry
            }
        }

        /// Entries are kept for 90 days, and of all together 1 GiB. A page ends at `limit` entries, or earlier where
        /// `type` leaves out very many: only the last page has no `after`.
        public struct List: RPCRequest {
            public static let method = "auth.audit.list"
            public static let summary = "Lists what has happened, the newest first, page by page"
            public static let access = Access.administrator
            public static let effect = Effect.read
            public static var example: RPCExample<Self> {
                var request = Self()
                request.uid = Session.example.uid
                request.limit = 10
                return RPCExample(request, Result(entries: [.example]))
            }

            public var uid: String?
            public var type: EntryType?
            public var from: Int64?
            public var until: Int64?
            public var after: String?
            public var limit: Int?

            public static let fields = Fields<Self>(
                blank: Self(),
                .optional("uid", \.uid, "Only entries of this account; all when absent"),
                .optional("type", \.type, "Only entries of this type; all when absent", example: .signInFailed),
                .optional(
                    "from", \.from, "Only entries at or after this time, in milliseconds since 1970",
                    example: 1_795_000_000_000),
                .optional(
                    "until", \.until, "Only entries before this time, in milliseconds since 1970",
                    example: 1_795_086_400_000),
                .optional(
                    "after", \.after, "The `after` of the previous page; the first page when absent",
                    example: Entry.example.entry),
                .optional("limit", \.limit, "The maximum number of entries, 1 to 1,000; 100 when absent"))

            public init() {}

            public struct Result: FieldObject, Hashable {
                public var entries: [Entry]
                public var after: String?

                public static let fields = Fields<Self>(
                    blank: Self(entries: []),
                    .required("entries", \.entries, "The entries, the newest first"),
                    .optional("after", \.after, "The `after` of the next page; absent on the last one"))

                public init(entries: [Entry], after: String? = nil) {
                    self.entries = entries
                    self.after = after
                }
            }
        }
    }
}
