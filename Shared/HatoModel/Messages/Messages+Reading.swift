extension Messages {
    /// Reads a node, or the children of it that a query selects; an empty query selects the node itself.
    public struct Get: RPCRequest {
        public static let method = "messages.get"
        public static let summary =
            """
            Reads a node, or the children of a node that a query selects. A query by a child path or \
            `$value` requires an `.indexOn` in the rules (`index_not_defined` otherwise)
            """
        public static let access = Access.rules
        public static let effect = Effect.read

        public var database: DatabaseName?
        public var path: TreePath
        public var query: TreeQuery?
        public var shallow: Bool?
        public var export: Bool?
        public var etag: Bool?

        public static let fields = Fields<Self>(
            blank: Self(path: .root),
            .database(\.database),
            .path(\.path),
            .optional(
                "query", \.query,
                """
                Selects and orders children; the whole node when absent or `{}`. A wrong query gets a \
                message of Firebase as `reason`
                """,
                example: MessagesExamples.query),
            .optional(
                "shallow", \.shallow,
                """
                True: the value is an object with `true` for each child, or for each that `query` selects; a \
                leaf is its value. Not together with `export`; false when absent
                """,
                example: true),
            .optional(
                "export", \.export,
                """
                True: returns the value with its priorities, as `.value` and `.priority`, and never as an \
                array; false when absent
                """, example: true),
            .optional(
                "etag", \.etag, "True: returns `etag` too. Not together with `query`; false when absent", example: true)
        )

        /// A read of the node at `path` or of the children that `query` selects.
        public init(
            database: DatabaseName? = nil, path: TreePath, query: TreeQuery? = nil, form: Form = .plain,
            etag: Bool? = nil
        ) {
            self.database = database
            self.path = path
            self.query = query
            self.shallow = form == .shallow ? true : nil
            self.export = form == .export ? true : nil
            self.etag = etag
        }

        /// The format of the value.
        public enum Form: Sendable, Hashable {
            case plain
            case shallow
            case export
        }

        public struct Result: FieldObject, Hashable {
            public var value: JSONValue
            public var keys: [String]?
            public var etag: String?
            public var version: UInt64

            public static let fields = Fields<Self>(
                blank: Self(value: .null, version: 0),
                .required(
                    "value", \.value,
                    """
                    The value; `null` if there is none. The result of a query is always an object, in query \
                    order
                    """),
                .optional(
                    "keys", \.keys,
                    """
                    The keys of a query's result in query order, since JSON readers reorder integer keys; \
                    present with a query
                    """),
                .optional("etag", \.etag, "The etag of the node, if asked for; `null_etag` if there is no value"),
                .required("version", \.version, "The version that was read: the number of the newest commit"))

            public init(value: JSONValue, keys: [String]? = nil, etag: String? = nil, version: UInt64) {
                self.value = value
                self.keys = keys
                self.etag = etag
                self.version = version
            }
        }
    }

    /// Starts a listener: the value now, then every change.
    public struct Listen: RPCRequest {
        public static let method = "messages.listen"
        public static let summary = """
            Sends the value of a node or query now, and from then on every change of it. At most 10,000 \
            listeners of one connection, 100,000 of one user (of one address without a user) and 1,000,000 in \
            all; their memory is limited too (`too_many_listeners`)
            """
        public static let access = Access.rules
        public static let effect = Effect.read
        public static let hasSideEffect = true

        public var database: DatabaseName?
        public var path: TreePath
        public var query: TreeQuery?
        public var since: UInt64?
        public var epoch: String?
        public var etag: String?
        public var coalesceMs: Int?

        public static let fields = Fields<Self>(
            blank: Self(path: .root),
            .database(\.database),
            .path(\.path),
            .optional(
                "query", \.query,
                """
                Selects and orders children; the whole node when absent or `{}`. A wrong query gets a \
                message of Firebase as `reason`
                """,
                example: MessagesExamples.query),
            .optional(
                "since", \.since,
                """
                The `version` of the last event received: sends only what changed since. Without `epoch` it \
                is ignored. The whole value is sent if that is shorter, or if the changes are no longer kept \
                (7 days or 10 GiB)
                """,
                example: 17),
            .optional(
                "epoch", \.epoch,
                """
                The `epoch` of the response that `since` comes from; if the store has another one now, the \
                whole value is sent
                """,
                example: MessagesExamples.epoch),
            .optional(
                "etag", \.etag,
                """
                The etag of the value the client has: the first event is omitted if the node still has it. \
                Without effect for a query; not needed with `since`
                """,
                example: MessagesExamples.etag),
            .optional(
                "coalesceMs", \.coalesceMs,
                """
                Merges the changes of this many milliseconds into one notification: 0 to 10,000; 0 (each \
                commit at once) when absent. Events of the connection's own writes still come before the \
                responses of these writes
                """,
                example: 100))

        public init(
            database: DatabaseName? = nil, path: TreePath, query: TreeQuery? = nil, resume: Resume? = nil
        ) {
            self.database = database
            self.path = path
            self.query = query
            self.since = resume?.since
            self.epoch = resume?.epoch
            self.etag = resume?.etag
        }

        /// What a client already has of the value: the version and the epoch of its last event, or the etag.
        public struct Resume: Sendable, Hashable {
            public var since: UInt64?
            public var epoch: String?
            public var etag: String?

            public init(since: UInt64, epoch: String) {
                self.since = since
                self.epoch = epoch
            }

            public init(etag: String) { self.etag = etag }
        }

        public struct Result: FieldObject, Hashable {
            public var subscription: String
            public var version: UInt64
            public var epoch: String
            public var warning: Warning?
            public var unchanged: Bool?

            public static let fields = Fields<Self>(
                blank: Self(subscription: "", version: 0, epoch: ""),
                .required(
                    "subscription", \.subscription,
                    """
                    The id of the listener, unique on this connection: `messages.unlisten` and `messages.event` \
                    name it
                    """),
                .required("version", \.version, "The version the listener starts at: the number of the newest commit"),
                .epoch(\.epoch),
                .optional(
                    "warning", \.warning,
                    """
                    `no_index`: the rules have no index for the query, so every child is read; `messages.get` \
                    refuses such a query
                    """),
                .optional(
                    "unchanged", \.unchanged,
                    """
                    True: the listener is up to date as of `version`, and no first event comes. Absent: the \
                    first event is a `put` of `/` with the whole value, or, with `since` and `epoch`, may be \
                    what changed since then
                    """))

            public init(subscription: String, version: UInt64, epoch: String, warning: Warning? = nil) {
                self.subscription = subscription
                self.version = version
                self.epoch = epoch
                self.warning = warning
            }
        }

        /// A remark in the result about the query.
        public enum Warning: String, FieldChoice {
            case noIndex = "no_index"
        }
    }

    /// Ends a listener.
    public struct Unlisten: RPCRequest {
        public static let method = "messages.unlisten"
        public static let summary = "Ends a listener of this connection"
        public static let access = Access.anyone
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
            .required("subscription", \.subscription, "The `subscription` of the response that opened the listener"))

        public init(subscription: String) { self.subscription = subscription }

        public typealias Result = Empty
    }

    /// Changes under a listener's path: whole commits, in order.
    public struct Event: RPCNotification {
        public static let method = "messages.event"
        public static let summary = "Changes under the path of a listener"

        public var subscription: String
        public var version: UInt64
        public var events: [Entry]

        public static let fields = Fields<Self>(
            blank: Self(subscription: "", version: 0, events: []),
            .required("subscription", \.subscription, "The `subscription` of the response that opened the listener"),
            .required(
                "version", \.version, "The version of the tree after these events: the `since` with which to resume"),
            .required("events", \.events, "The changes, to be applied in this order"))

        public init(subscription: String, version: UInt64, events: [Entry]) {
            self.subscription = subscription
            self.version = version
            self.events = events
        }

        /// A change under the path of a listener.
        public struct Entry: FieldObject, Hashable {
            public var type: EntryType
            public var path: String
            public var data: JSONValue

            public static let fields = Fields<Self>(
                blank: Self(type: .put, path: "", data: .null),
                .required(
                    "type", \.type,
                    "`put`: `data` replaces the node at `path`; `patch`: each member of `data` replaces the "
                        + "node at its path"),
                .required("path", \.path, "Relative to the listener's path; `/` is that path"),
                .required(
                    "data", \.data,
                    """
                    `put`: the new value in export form, never an array, null if there is none; `patch`: an \
                    object of new values by path relative to `path`
                    """))

            public init(type: EntryType, path: String, data: JSONValue) {
                self.type = type
                self.path = path
                self.data = data
            }
        }

        /// How `data` is applied.
        public enum EntryType: String, FieldChoice {
            /// `data` replaces what is at `path`.
            case put
            /// Each member of `data` replaces what is at its path.
            case patch
        }
    }

    /// The end of a listener or follower that the client did not request; a client's listener throws it.
    public struct Cancelled: RPCNotification, Error {
        public static let method = "messages.cancelled"
        public static let summary = "The service ended a listener or follower"

        public var subscription: String
        public var reason: String

        public static let fields = Fields<Self>(
            blank: Self(subscription: "", reason: ""),
            .required(
                "subscription", \.subscription,
                "The `subscription` of the response that opened the listener or follower"),
            .required(
                "reason", \.reason,
                """
                `permission_denied`: the rules no longer allow the read, or the follower's connection is no \
                longer an administrator's; `token_expired`: the ID token expired; `token_revoked`: auth ended its \
                session, or the account is disabled or deleted; `database_dropped`; \
                `too_big`: the value or the result of the query exceeds a limit; `compacted`: a follower is \
                behind the oldest kept change; `unavailable`: the value could not be read, listen again
                """))

        public init(subscription: String, reason: String) {
            self.subscription = subscription
            self.reason = reason
        }
    }
}

extension Messages.Get {
    public static var example: RPCExample<Self> {
        RPCExample(
            Messages.Get(path: MessagesExamples.title),
            Result(value: "磯野家", version: 17))
    }
}

extension Messages.Listen {
    public static var example: RPCExample<Self> {
        RPCExample(
            Messages.Listen(path: MessagesExamples.messages),
            Result(subscription: MessagesExamples.subscription, version: 17, epoch: MessagesExamples.epoch))
    }
}

extension Messages.Unlisten {
    public static var example: RPCExample<Self> {
        RPCExample(Messages.Unlisten(subscription: MessagesExamples.subscription), Empty())
    }
}

extension Messages.Event {
    public static var example: Messages.Event {
        Messages.Event(
            subscription: MessagesExamples.subscription, version: 18,
            events: [
                Entry(
                    type: .put, path: "/\(MessagesExamples.key)",
                    data: MessagesExamples.value)
            ])
    }
}

extension Messages.Cancelled {
    public static var example: Messages.Cancelled {
        Messages.Cancelled(subscription: MessagesExamples.subscription, reason: "token_expired")
    }
}
