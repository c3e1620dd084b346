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
            public var strict: Bool?

            public static let fields = Fields<Self>(
                blank: Self(),
                .database(\.database),
                .optional(
                    "strict", \.strict,
                    """
                    True: the same rules as JSON, without comments and trailing commas, line breaks in strings escaped; \
                    false when absent
                    """, example: true))

            public init(database: DatabaseName? = nil, strict: Bool? = nil) {
                self.database = database
                self.strict = strict
            }

            public struct Result: FieldObject, Hashable {
                public var rules: String

                public static let fields = Fields<Self>(
                    blank: Self(rules: ""),
                    .required("rules", \.rules, "The rules, as they were written; with `strict: true` as JSON"))
                public init(rules: String) { self.rules = rules }
            }
        }

        /// Replaces the rules; every listener is authorised again.
        public struct Set: RPCRequest {
            public static let method = "messages.rules.set"
            public static let summary = """
                Replaces the security rules of a database and the indexes they declare; listeners that lose \
                read access are cancelled
                """
            public static let access = Access.administrator
            public static let effect = Effect.write

            public var database: DatabaseName?
            public var rules: String
            public var dryRun: Bool?

            public static let fields = Fields<Self>(
                blank: Self(rules: ""),
                .database(\.database),
                .required(
                    "rules", \.rules,
                    """
                    The security rules as text: JSON with comments, at most 512 KiB, with at most 200 indexes
                    """),
                .optional("dryRun", \.dryRun, "True: checks the rules and changes nothing; false when absent"))

            public init(database: DatabaseName? = nil, rules: String, dryRun: Bool? = nil) {
                self.database = database
                self.rules = rules
                self.dryRun = dryRun
            }

            public struct Result: FieldObject, Hashable {
                public var version: UInt64

                public static let fields = Fields<Self>(
                    blank: Self(version: 0),
                    .required("version", \.version, "The version of the commit; of a dry run the current one"))
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

            public static let fields = Fields<Self>(
                blank: Self(),
                .database(\.database))

            public init(database: DatabaseName? = nil) { self.database = database }

            public typealias Result = [Index]
        }

        /// An index that the rules declare.
        public struct Index: FieldObject, Hashable {
            public var pattern: String
            public var on: String
            public var state: State
            public var entries: UInt64
            public var progress: Double

            public static let fields = Fields<Self>(
                blank: Self(pattern: "", on: "", state: .building, entries: 0, progress: 0),
                .required("pattern", \.pattern, "The paths of the indexed collections, e.g. `/chats/{chat}/messages`"),
                .required("on", \.on, "The child path that is indexed, or `.value`"),
                .required("state", \.state, "Whether queries may use it: `ready`, or `building` until it is complete"),
                .required(
                    "entries", \.entries,
                    """
                    The number of rows; one above 10,000 may be a minute old. While the index is being built: \
                    the number of children processed so far
                    """),
                .required("progress", \.progress, "0 to 1: the part of the data the build has read, estimated by size"))

            public init(pattern: String, on: String, state: State, entries: UInt64, progress: Double) {
                self.pattern = pattern
                self.on = on
                self.state = state
                self.entries = entries
                self.progress = progress
            }
        }

        /// Whether queries may use an index.
        public enum State: String, FieldChoice {
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

            public static let fields = Fields<Self>(blank: Self())

            public init() {}

            public struct Result: FieldObject, Hashable {
                public var databases: [Database]

                public static let fields = Fields<Self>(
                    blank: Self(databases: []),
                    .required("databases", \.databases, "The databases in the order of their names"))
                public init(databases: [Database]) { self.databases = databases }
            }
        }

        /// A database of the service.
        public struct Database: FieldObject, Hashable {
            public var name: DatabaseName
            public var createdAt: Int64

            public static let fields = Fields<Self>(
                blank: Self(name: .default, createdAt: 0),
                .required("name", \.name, "The name: 1 to 63 of a-z, 0-9 and -"),
                .required("createdAt", \.createdAt, "When it was created, in milliseconds since 1970"))

            public init(name: DatabaseName, createdAt: Int64) {
                self.name = name
                self.createdAt = createdAt
            }
        }

        /// Creates a database; it denies everything to users until it gets rules.
        public struct Create: RPCRequest {
            public static let method = "messages.databases.create"
            public static let summary = """
                Creates a database, which denies everything to users until it gets rules. A service has at \
                most 1,000 databases (`too_many_databases`)
                """
            public static let access = Access.administrator
            public static let effect = Effect.write

            public var database: DatabaseName
            public var rules: String?

            public static let fields = Fields<Self>(
                blank: Self(database: .default),
                .required("database", \.database, "The name of the new database: 1 to 63 of a-z, 0-9 and -"),
                .optional(
                    "rules", \.rules,
                    """
                    The security rules as text, as in `messages.rules.set`; users are denied everything when \
                    absent
                    """,
                    example: MessagesExamples.rules))

            public init(database: DatabaseName, rules: String? = nil) {
                self.database = database
                self.rules = rules
            }

            public struct Result: FieldObject, Hashable {
                public var version: UInt64

                public static let fields = Fields<Self>(
                    blank: Self(version: 0),
                    .required(
                        "version", \.version,
                        """
                        The version of the commit; versions grow with each commit of any database, so those of one \
                        database have gaps
                        """))
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

            public static let fields = Fields<Self>(
                blank: Self(database: .default),
                .required(
                    "database", \.database,
                    """
                    The database to drop; `default` can be dropped too, and created again with \
                    `messages.databases.create`
                    """))

            public init(database: DatabaseName) { self.database = database }

            public struct Result: FieldObject, Hashable {
                public var version: UInt64

                public static let fields = Fields<Self>(
                    blank: Self(version: 0),
                    .commitVersion(\.version))
                public init(version: UInt64) { self.version = version }
            }
        }
    }

    /// Statistics of the store and of what it serves.
    public struct Stats: RPCRequest {
        public static let method = "messages.stats"
        public static let summary = "Returns sizes, versions and counts of the store and of what it serves"
        public static let access = Access.administrator
        public static let effect = Effect.read

        public var database: DatabaseName?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "database", \.database,
                "Has no effect, but must exist: the result covers all databases",
                example: .default))

        public init(database: DatabaseName? = nil) { self.database = database }

        public struct Result: FieldObject, Hashable {
            public var version: UInt64
            public var epoch: String
            public var oldestChange: UInt64?
            public var changeBytes: UInt64
            public var databases: Int
            public var listeners: Int
            public var followers: Int
            public var store: [String: Double]

            public static let fields = Fields<Self>(
                blank: Self(version: 0, epoch: "", store: [:]),
                .required("version", \.version, "The newest version of the store"),
                .epoch(\.epoch),
                .optional(
                    "oldestChange", \.oldestChange,
                    "The oldest version whose changes are kept; absent when none is"),
                .required("changeBytes", \.changeBytes, "Bytes of the kept changes"),
                .required("databases", \.databases, "The number of databases"),
                .required("listeners", \.listeners, "The number of open listeners"),
                .required("followers", \.followers, "The number of open followers"),
                .required(
                    "store", \.store,
                    """
                    Figures of the storage engine by name, for diagnosis; those of names that end in `_bytes` \
                    are bytes; names may change
                    """))

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
        RPCExample(Messages.Databases.Create(database: MessagesExamples.otherDatabase), Result(version: 1))
    }
}

extension Messages.Databases.Drop {
    public static var example: RPCExample<Self> {
        RPCExample(Messages.Databases.Drop(database: MessagesExamples.otherDatabase), Result(version: 18))
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
