extension Messages {
    /// Reads a node, or the children of it that a query selects.
    public struct Get: RPCRequest {
        public static let method = "messages.get"
        public static let summary =
            "Reads a node, or the children of a node that a query selects; an empty query stands for the node itself"
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
            .required("path", \.path, "The path of the node, e.g. `/chats/c1`; `/` is the root"),
            .optional(
                "query", \.query,
                "Selects children: `orderBy` with bounds and a limit. Empty: the node itself",
                example: MessagesExamples.query),
            .optional(
                "shallow", \.shallow,
                "Children that are objects are read as `true`: the keys without the data",
                example: true),
            .optional("export", \.export, "Export form: priorities are kept, and there are no arrays", example: true),
            .optional("etag", \.etag, "Answers the etag of the node too", example: true))

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
                    "The value, `null` where nothing is; of a query always an object, its members in query "
                        + "order"),
                .optional(
                    "keys", \.keys,
                    "The keys of a query's result in query order: JSON readers reorder integer keys"),
                .optional("etag", \.etag, "The etag of the node, if asked for; `null_etag` where nothing is"),
                .required("version", \.version, "The version that was read"))

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
        public static let summary = "Sends the value of a node or query now, and from then on every change of it"
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
            .required("path", \.path, "The path of the node, e.g. `/chats/c1`; `/` is the root"),
            .optional(
                "query", \.query,
                "Selects children: `orderBy` with bounds and a limit. Empty: the node itself",
                example: MessagesExamples.query),
            .optional(
                "since", \.since,
                "Sends only what came after this version, that of the last event received; together with "
                    + "`epoch`",
                example: 17),
            .optional(
                "epoch", \.epoch,
                "The history `since` belongs to; in another one the whole value is sent",
                example: MessagesExamples.epoch),
            .optional(
                "etag", \.etag,
                "Leaves out the first value if the node still has this etag",
                example: MessagesExamples.etag),
            .optional(
                "coalesceMs", \.coalesceMs,
                "Sends the changes of so many milliseconds in one notification, 0 to 10,000; what the own "
                    + "connection writes is sent before the response of the write",
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

        /// The state that a listener already has.
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
                .required("subscription", \.subscription, "Names the listener on its connection"),
                .required("version", \.version, "The version the listener starts at"),
                .required(
                    "epoch", \.epoch,
                    "The history the version belongs to; another one after a backup is restored"),
                .optional("warning", \.warning, "`no_index`: the query has no index and reads every child"),
                .optional(
                    "unchanged", \.unchanged,
                    "True: the listener is up to date as of `version`, and no first event comes. Absent: the "
                        + "first event is the whole value"))

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
                "Accepted as everywhere; the subscription alone names the listener",
                example: .default),
            .required("subscription", \.subscription, "The subscription to end"))

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
            .required("subscription", \.subscription, "Names the subscription on its connection"),
            .required("version", \.version, "The version the listener has reached with this"),
            .required("events", \.events, "Changes in the order they are to be applied"))

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
                    "Export form, never arrays; of a patch an object whose keys are paths relative to `path`"))

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
        public static let summary = "A listener or follower ended: the right to read is lost, or its history is"

        public var subscription: String
        public var reason: String

        public static let fields = Fields<Self>(
            blank: Self(subscription: "", reason: ""),
            .required("subscription", \.subscription, "Names the subscription on its connection"),
            .required(
                "reason", \.reason,
                "`permission_denied`, `token_expired`, `database_dropped`, `too_big`, `compacted`; or "
                    + "`unavailable`: it could not be read, and may be listened to again"))

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
            Result(subscription: "1", version: 17, epoch: MessagesExamples.epoch))
    }
}

extension Messages.Unlisten {
    public static var example: RPCExample<Self> { RPCExample(Messages.Unlisten(subscription: "1"), Empty()) }
}

extension Messages.Event {
    public static var example: Messages.Event {
        Messages.Event(
            subscription: "1", version: 18,
            events: [
                Entry(
                    type: .put, path: "/\(MessagesExamples.key)",
                    data: MessagesExamples.value)
            ])
    }
}

extension Messages.Cancelled {
    public static var example: Messages.Cancelled { Messages.Cancelled(subscription: "1", reason: "token_expired") }
}
