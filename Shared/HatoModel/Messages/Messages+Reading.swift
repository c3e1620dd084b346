extension Messages {
    /// Reads a node, or what a query selects among its children.
    public struct Get: RPCRequest {
        public static let method = "messages.get"
        public static let summary =
            "Reads a node, or the children of a node that a query selects; an empty query stands for the node itself"
        public static let access = Access.rules
        public static let effect = Effect.read

        public var database: DatabaseName?
        public var path: TreePath
        public var query: TreeQuery?
        /// Children that are objects come as `true`: the names without the data.
        public var shallow: Bool?
        /// Export form: priorities are kept, and there are no arrays.
        public var export: Bool?
        /// Asks for the etag of the node too.
        public var etag: Bool?

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

        /// How the value is written.
        public enum Form: Sendable, Hashable {
            case plain
            case shallow
            case export
        }

        public struct Result: Codable, Sendable, Hashable {
            /// `null` where nothing is; of a query always an object, its members in query order.
            public var value: JSONValue
            /// The keys of a query's result, in query order: JSON readers reorder integer keys.
            public var keys: [String]?
            public var etag: String?
            /// The version that was read.
            public var version: UInt64

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
        /// Send only what came after this version, that of the last event that was received; together with `epoch`.
        public var since: UInt64?
        public var epoch: String?
        /// Skip the first value if it still has this etag.
        public var etag: String?
        /// Gather the changes of so many milliseconds into one notification; what its own connection writes is told at
        /// once, before the answer of the write, with what was gathered.
        public var coalesceMs: Int?

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

        /// What a listener already has.
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

        public struct Result: Codable, Sendable, Hashable {
            /// Names the listener on its connection.
            public var subscription: String
            public var version: UInt64
            public var epoch: String
            /// The query has no index: it works by reading every child.
            public var warning: Warning?
            /// True: nothing has changed up to `version` since `since`, or the value still has the etag, so no event tells of
            /// it; the next time, `since` may be `version`. Else the first event comes right behind.
            public var unchanged: Bool?

            public init(subscription: String, version: UInt64, epoch: String, warning: Warning? = nil) {
                self.subscription = subscription
                self.version = version
                self.epoch = epoch
                self.warning = warning
            }
        }

        public enum Warning: String, Sendable, Hashable, Codable, CaseIterable {
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

        /// Accepted like everywhere; the subscription alone says which one.
        public var database: DatabaseName?
        public var subscription: String

        public init(subscription: String) { self.subscription = subscription }

        public typealias Result = Empty
    }

    /// What happened under a listener's path: whole commits, in order.
    public struct Event: RPCNotification {
        public static let method = "messages.event"
        public static let summary = "Changes under the path of a listener"

        public var subscription: String
        /// The version the listener has reached with this.
        public var version: UInt64
        public var events: [Entry]

        public init(subscription: String, version: UInt64, events: [Entry]) {
            self.subscription = subscription
            self.version = version
            self.events = events
        }

        public struct Entry: Codable, Sendable, Hashable {
            public var type: EntryType
            /// Relative to the listener; `/` is the listener's own path.
            public var path: String
            /// Export form, never arrays. Of a patch: an object whose keys are paths relative to `path`.
            public var data: JSONValue

            public init(type: EntryType, path: String, data: JSONValue) {
                self.type = type
                self.path = path
                self.data = data
            }
        }

        public enum EntryType: String, Sendable, Hashable, Codable, CaseIterable {
            /// `data` replaces what is at `path`.
            case put
            /// Each member of `data` replaces what is at its path.
            case patch
        }
    }

    /// A listener or follower has ended without being asked to; what a client's listener then throws.
    public struct Cancelled: RPCNotification, Error {
        public static let method = "messages.cancelled"
        public static let summary = "A listener or follower ended: the right to read is lost, or its history is"

        public var subscription: String
        /// `permission_denied`, `token_expired`, `database_dropped`, `too_big`, `compacted`; or `unavailable`: it
        /// could not be read, and may be listened to again.
        public var reason: String

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
