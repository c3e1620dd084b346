extension Messages {
    /// Sends every commit that matches a pattern, from a position on.
    public struct Follow: RPCRequest {
        public static let method = "messages.follow"
        public static let summary = """
            Follows the commits of a database from now on, or after a given version: sends each one that \
            matches a pattern as `messages.change`. At most 16 followers of one connection and 256 in all \
            (`too_many_followers`)
            """
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let hasSideEffect = true

        public var database: DatabaseName?
        public var after: UInt64?
        public var epoch: String?
        public var patterns: [FeedPattern]?

        public static let fields = Fields<Self>(
            blank: Self(),
            .database(\.database),
            .optional(
                "after", \.after,
                """
                The version up to which changes are already handled; only later changes when absent. 0: from \
                the oldest kept one (7 days or 10 GiB, whichever is less). If it is older than that: \
                failed_precondition `compacted` with `data.oldest`
                """,
                example: 17),
            .optional(
                "epoch", \.epoch,
                """
                The `epoch` that `after` comes from; if the store has another one, failed_precondition \
                `unknown_version`. Without it, changes are missed silently after a backup is restored
                """,
                example: MessagesExamples.epoch),
            .optional(
                "patterns", \.patterns,
                """
                The paths to follow, at most 100, e.g. `/chats/{chat}/messages/{id}`: a name in braces \
                stands for any one key. Every written path when absent
                """,
                example: [MessagesExamples.pattern]))

        public init(
            database: DatabaseName? = nil, after: UInt64? = nil, epoch: String? = nil, patterns: [FeedPattern]? = nil
        ) {
            self.database = database
            self.after = after
            self.epoch = epoch
            self.patterns = patterns
        }

        public struct Result: FieldObject, Hashable {
            public var subscription: String
            public var version: UInt64
            public var epoch: String

            public static let fields = Fields<Self>(
                blank: Self(subscription: "", version: 0, epoch: ""),
                .required(
                    "subscription", \.subscription,
                    """
                    The id of the follower, unique on this connection: `messages.unfollow` and `messages.change` \
                    name it
                    """),
                .required(
                    "version", \.version,
                    """
                    The version after which changes are sent: `after`; the newest one when `after` is absent; \
                    the one before the oldest kept change when it is 0
                    """),
                .epoch(\.epoch))

            public init(subscription: String, version: UInt64, epoch: String) {
                self.subscription = subscription
                self.version = version
                self.epoch = epoch
            }
        }
    }

    /// Ends a follower.
    public struct Unfollow: RPCRequest {
        public static let method = "messages.unfollow"
        public static let summary = "Ends a follower of this connection"
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let hasSideEffect = true

        public var database: DatabaseName?
        public var subscription: String

        public static let fields = Fields<Self>(
            blank: Self(subscription: ""),
            .optional(
                "database", \.database,
                "Has no effect: `subscription` alone decides",
                example: .default),
            .required("subscription", \.subscription, "The `subscription` of the response that opened the follower"))

        public init(subscription: String) { self.subscription = subscription }

        public typealias Result = Empty
    }

    /// One commit in the form that followers receive.
    public struct Change: RPCNotification {
        public static let method = "messages.change"
        public static let summary = """
            One commit, reduced to what matches the patterns of a follower; or, with empty `changes`, a \
            new position
            """

        public var subscription: String
        public var version: UInt64
        public var epoch: String
        public var time: Int64
        public var changes: [Entry]
        public var disableTriggers: Bool?

        public static let fields = Fields<Self>(
            blank: Self(subscription: "", version: 0, epoch: "", time: 0, changes: []),
            .required("subscription", \.subscription, "The `subscription` of the response that opened the follower"),
            .required(
                "version", \.version,
                """
                The version of the commit: every change up to it was sent; the `after` with which to resume
                """),
            .epoch(\.epoch),
            .required("time", \.time, "When it was committed, in milliseconds since 1970"),
            .required(
                "changes", \.changes,
                """
                What the commit changed of the followed paths. Empty without `disableTriggers`: nothing \
                matched up to `version`; sent once a minute and every 1,000 versions, so that `after` does \
                not become too old
                """),
            .optional(
                "disableTriggers", \.disableTriggers,
                "The commit is an import with `disableTriggers`: it changed followed paths, and `changes` is "
                    + "empty"))

        public init(subscription: String, version: UInt64, epoch: String, time: Int64, changes: [Entry]) {
            self.subscription = subscription
            self.version = version
            self.epoch = epoch
            self.time = time
            self.changes = changes
        }

        /// A node that a commit changed.
        public struct Entry: FieldObject, Hashable {
            public var pattern: String?
            public var params: [String: String]?
            public var path: String
            public var type: EntryType
            public var before: JSONValue?
            public var after: JSONValue?
            public var uid: String?
            public var partial: Bool?
            public var truncated: Bool?
            public var many: Bool?

            public static let fields = Fields<Self>(
                blank: Self(path: "", type: .created),
                .optional("pattern", \.pattern, "The pattern that matched; absent when the follower gave none"),
                .optional("params", \.params, "The keys that the wildcards of the pattern stand for"),
                .required("path", \.path, "The path of the node that changed"),
                .required("type", \.type, "Whether the node was created, updated or deleted"),
                .optionalJSON(
                    "before", \.before,
                    """
                    The value before, in export form; `null`: there was none; absent with `many`, or with \
                    `truncated`
                    """),
                .optionalJSON(
                    "after", \.after,
                    """
                    The value after, in export form; `null`: there is none; absent with `many`, or with \
                    `truncated`
                    """),
                .optional(
                    "uid", \.uid,
                    "The user that wrote it; absent for an administrator and for a caller without credential"),
                .optional(
                    "partial", \.partial, "True: `before` and `after` have only the children that the commit wrote"),
                .optional(
                    "truncated", \.truncated,
                    """
                    True: `before`, `after` or both are absent because the values of the commit exceed 1 MiB; \
                    with `many`, it is not known which nodes match
                    """),
                .optional(
                    "many", \.many, "True: more than 1,000 nodes below `path` match; one entry stands for all of them"))

            public init(path: String, type: EntryType) {
                self.path = path
                self.type = type
            }
        }

        /// The kind of change of the node.
        public enum EntryType: String, FieldChoice {
            case created
            case updated
            case deleted
        }
    }
}

extension Messages.Follow {
    public static var example: RPCExample<Self> {
        RPCExample(
            Messages.Follow(
                after: 17, epoch: MessagesExamples.epoch, patterns: [MessagesExamples.pattern]),
            Result(subscription: MessagesExamples.subscription, version: 17, epoch: MessagesExamples.epoch))
    }
}

extension Messages.Unfollow {
    public static var example: RPCExample<Self> {
        RPCExample(Messages.Unfollow(subscription: MessagesExamples.subscription), Empty())
    }
}

extension Messages.Change {
    public static var example: Messages.Change {
        var entry = Entry(path: MessagesExamples.message.text, type: .created)
        entry.pattern = "/chats/{chat}/messages/{id}"
        entry.params = ["chat": "c1", "id": MessagesExamples.key.text]
        entry.before = .null
        entry.after = MessagesExamples.value
        entry.uid = "masuo"
        return Messages.Change(
            subscription: MessagesExamples.subscription, version: 18, epoch: MessagesExamples.epoch,
            time: 1_795_000_000_000,
            changes: [entry])
    }
}
