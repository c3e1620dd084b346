extension Messages {
    /// Sends every commit that matches a pattern, from a position on.
    public struct Follow: RPCRequest {
        public static let method = "messages.follow"
        public static let summary = "Sends every change that matches a pattern, from a position in the history on"
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let hasSideEffect = true

        public var database: DatabaseName?
        /// The last version already handled; absent: from now on; 0: from the oldest that is kept.
        public var after: UInt64?
        /// The history `after` belongs to: in another one nothing is sent, and the answer is `unknown_version`. Without it,
        /// a store that was restored since then is not told from the one before.
        public var epoch: String?
        /// What to send; absent: every written path.
        public var patterns: [FeedPattern]?

        public init(
            database: DatabaseName? = nil, after: UInt64? = nil, epoch: String? = nil, patterns: [FeedPattern]? = nil
        ) {
            self.database = database
            self.after = after
            self.epoch = epoch
            self.patterns = patterns
        }

        public struct Result: Codable, Sendable, Hashable {
            public var subscription: String
            /// Everything up to this version is behind the follower, or on its way to it.
            public var version: UInt64
            public var epoch: String

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

        /// Accepted like everywhere; the subscription alone says which one.
        public var database: DatabaseName?
        public var subscription: String

        public init(subscription: String) { self.subscription = subscription }

        public typealias Result = Empty
    }

    /// One commit, as a follower sees it.
    public struct Change: RPCNotification {
        public static let method = "messages.change"
        public static let summary = "One commit, reduced to what matches the patterns of a follower"

        public var subscription: String
        public var version: UInt64
        public var epoch: String
        /// When it was committed, in milliseconds since 1970.
        public var time: Int64
        public var changes: [Entry]
        /// The commit is an import with `disableTriggers`: it changed what the follower follows, and `changes` is empty.
        public var disableTriggers: Bool?

        public init(subscription: String, version: UInt64, epoch: String, time: Int64, changes: [Entry]) {
            self.subscription = subscription
            self.version = version
            self.epoch = epoch
            self.time = time
            self.changes = changes
        }

        public struct Entry: Codable, Sendable, Hashable {
            /// The pattern that matched; absent when the follower gave none.
            public var pattern: String?
            /// The keys its wildcards stand for.
            public var params: [String: String]?
            public var path: String
            public var type: EntryType
            /// Export form; `null`: nothing was there.
            public var before: JSONValue?
            /// Export form; `null`: nothing is there.
            public var after: JSONValue?
            /// Who wrote it; absent for an administrator and for nobody.
            public var uid: String?
            /// `before` and `after` hold only the children that changed.
            public var partial: Bool?
            /// `before` and `after` were cut: the commit was too big to keep.
            public var truncated: Bool?
            /// More nodes below `path` matched than are told one by one.
            public var many: Bool?

            public init(path: String, type: EntryType) {
                self.path = path
                self.type = type
            }
        }

        public enum EntryType: String, Sendable, Hashable, Codable, CaseIterable {
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
            Result(subscription: "2", version: 17, epoch: MessagesExamples.epoch))
    }
}

extension Messages.Unfollow {
    public static var example: RPCExample<Self> { RPCExample(Messages.Unfollow(subscription: "2"), Empty()) }
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
            subscription: "2", version: 18, epoch: MessagesExamples.epoch, time: 1_795_000_000_000,
            changes: [entry])
    }
}
