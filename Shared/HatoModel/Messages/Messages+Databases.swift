extension Messages {
    /// The security rules of a database.
    public enum Rules {
        /// Reads the rules, as they were written.
        public struct Get: RPCRequest {
            public static let method = "messages.rules.get"
            public static let summary = "Reads the security rules of a database, as they were written"
            public static let access = Access.administrator
            public static let effect = Effect.read

            public var database: DatabaseName?

            public init(database: DatabaseName? = nil) { self.database = database }

            public struct Result: Codable, Sendable, Hashable {
                public var rules: String
                public init(rules: String) { self.rules = rules }
            }
        }

        /// Replaces the rules; what listens is judged again.
        public struct Set: RPCRequest {
            public static let method = "messages.rules.set"
            public static let summary = "Replaces the security rules of a database and the indexes they declare"
            public static let access = Access.administrator
            public static let effect = Effect.write

            public var database: DatabaseName?
            public var rules: String
            /// Only says whether the rules are right.
            public var dryRun: Bool?

            public init(database: DatabaseName? = nil, rules: String, dryRun: Bool? = nil) {
                self.database = database
                self.rules = rules
                self.dryRun = dryRun
            }

            public struct Result: Codable, Sendable, Hashable {
                public var version: UInt64
                public init(version: UInt64) { self.version = version }
            }
        }
    }

    /// The indexes that the rules declare with `.indexOn`.
    public enum Indexes {
        /// Lists the indexes of a database with their state.
        public struct List: RPCRequest {
            public static let method = "messages.indexes.list"
            public static let summary = "Lists the indexes of a database"
            public static let access = Access.administrator
            public static let effect = Effect.read

            public var database: DatabaseName?

            public init(database: DatabaseName? = nil) { self.database = database }

            public typealias Result = [Index]
        }

        public struct Index: Codable, Sendable, Hashable {
            /// Where the indexed collections are, e.g. `/chats/{chat}/messages`.
            public var pattern: String
            /// The child path, or `.value`.
            public var on: String
            public var state: State
            /// Rows of the index; while it is building, of the children that were there before it, those it has by now.
            public var entries: UInt64
            /// 0 to 1: the part of the data that the build has been through, by its size, about.
            public var progress: Double

            public init(pattern: String, on: String, state: State, entries: UInt64, progress: Double) {
                self.pattern = pattern
                self.on = on
                self.state = state
                self.entries = entries
                self.progress = progress
            }
        }

        public enum State: String, Sendable, Hashable, Codable, CaseIterable {
            case building
            case ready
        }
    }

    /// The databases of a service.
    public enum Databases {
        /// Lists the databases.
        public struct List: RPCRequest {
            public static let method = "messages.databases.list"
            public static let summary = "Lists the databases of the service"
            public static let access = Access.administrator
            public static let effect = Effect.read

            public init() {}

            public struct Result: Codable, Sendable, Hashable {
                public var databases: [Database]
                public init(databases: [Database]) { self.databases = databases }
            }
        }

        public struct Database: Codable, Sendable, Hashable {
            public var name: DatabaseName
            /// When it was created, in milliseconds since 1970.
            public var createdAt: Int64

            public init(name: DatabaseName, createdAt: Int64) {
                self.name = name
                self.createdAt = createdAt
            }
        }

        /// Creates a database; it denies everything to users until it gets rules.
        public struct Create: RPCRequest {
            public static let method = "messages.databases.create"
            public static let summary = "Creates a database, which denies everything to users until it gets rules"
            public static let access = Access.administrator
            public static let effect = Effect.write

            public var database: DatabaseName
            /// Absent: deny everything.
            public var rules: String?

            public init(database: DatabaseName, rules: String? = nil) {
                self.database = database
                self.rules = rules
            }

            public struct Result: Codable, Sendable, Hashable {
                public var version: UInt64
                public init(version: UInt64) { self.version = version }
            }
        }

        /// Drops a database with everything in it.
        public struct Drop: RPCRequest {
            public static let method = "messages.databases.drop"
            public static let summary = "Drops a database with everything in it"
            public static let access = Access.administrator
            public static let effect = Effect.write

            public var database: DatabaseName

            public init(database: DatabaseName) { self.database = database }

            public struct Result: Codable, Sendable, Hashable {
                public var version: UInt64
                public init(version: UInt64) { self.version = version }
            }
        }
    }

    /// Figures about the store and what it serves.
    public struct Stats: RPCRequest {
        public static let method = "messages.stats"
        public static let summary = "Tells sizes, versions and counts of the store and of what it serves"
        public static let access = Access.administrator
        public static let effect = Effect.read

        /// Taken like everywhere, and must be there; the figures are those of the whole store.
        public var database: DatabaseName?

        public init(database: DatabaseName? = nil) { self.database = database }

        public struct Result: Codable, Sendable, Hashable {
            public var version: UInt64
            public var epoch: String
            /// The oldest version whose changes can still be followed; absent: none is kept.
            public var oldestChange: UInt64?
            public var changeBytes: UInt64
            public var databases: Int
            public var listeners: Int
            public var followers: Int
            /// The store's own figures by name.
            public var store: [String: Double]

            public init(version: UInt64, epoch: String, store: [String: Double]) {
                self.version = version
                self.epoch = epoch
                self.store = store
                changeBytes = 0
                databases = 0
                listeners = 0
                followers = 0
            }
        }
    }
}

extension Messages.Rules.Get {
    public static var example: RPCExample<Self> {
        RPCExample(Messages.Rules.Get(), Result(rules: #"{"rules": {".read": "auth != null"}}"#))
    }
}

extension Messages.Rules.Set {
    public static var example: RPCExample<Self> {
        RPCExample(
            Messages.Rules.Set(rules: #"{"rules": {".read": "auth != null"}}"#, dryRun: true), Result(version: 17))
    }
}

extension Messages.Indexes.List {
    public static var example: RPCExample<Self> {
        RPCExample(
            Messages.Indexes.List(),
            [
                Messages.Indexes.Index(
                    pattern: "/chats/{chat}/messages", on: "date", state: .ready, entries: 56_961, progress: 1)
            ])
    }
}

extension Messages.Databases.List {
    public static var example: RPCExample<Self> {
        RPCExample(
            Messages.Databases.List(),
            Result(databases: [Messages.Databases.Database(name: .default, createdAt: 1_795_000_000_000)]))
    }
}

extension Messages.Databases.Create {
    public static var example: RPCExample<Self> {
        RPCExample(Messages.Databases.Create(database: .default), Result(version: 1))
    }
}

extension Messages.Databases.Drop {
    public static var example: RPCExample<Self> {
        RPCExample(Messages.Databases.Drop(database: .default), Result(version: 18))
    }
}

extension Messages.Stats {
    public static var example: RPCExample<Self> {
        var result = Result(
            version: 17, epoch: MessagesExamples.epoch, store: ["rocksdb.memtable_bytes": 65_536])
        result.databases = 1
        return RPCExample(Messages.Stats(), result)
    }
}
