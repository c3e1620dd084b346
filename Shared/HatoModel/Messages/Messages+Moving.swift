extension Messages {
    /// Reads the leaves of a subtree page by page, all of one version.
    public struct Export: RPCRequest {
        public static let method = "messages.export"
        public static let summary =
            "Reads the leaves below a path page by page; all pages of a snapshot show one version"
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let isSlow = true

        public var database: DatabaseName?
        public var path: TreePath
        /// The handle of the page before; absent: a new snapshot.
        public var snapshot: String?
        /// Where the page before ended.
        public var after: String?
        /// Rows a page, at most 10,000; absent: 1,000.
        public var limit: Int?

        public init(
            database: DatabaseName? = nil, path: TreePath, snapshot: String? = nil, after: String? = nil,
            limit: Int? = nil
        ) {
            self.database = database
            self.path = path
            self.snapshot = snapshot
            self.after = after
            self.limit = limit
        }

        public struct Result: Codable, Sendable, Hashable {
            /// Hand it in again for the next page; it ends ten minutes after its last use.
            public var snapshot: String
            /// Pairs of a path relative to `path` and its primitive; the path of a priority ends in `/.priority`.
            public var rows: [[JSONValue]]
            /// Absent on the last page.
            public var after: String?

            public init(snapshot: String, rows: [[JSONValue]], after: String? = nil) {
                self.snapshot = snapshot
                self.rows = rows
                self.after = after
            }
        }
    }

    /// Writes rows as exported, or a JSON tree. A call is one commit, written whole or not at all; what is larger goes in
    /// several calls.
    public struct Import: RPCRequest {
        public static let method = "messages.import"
        public static let summary = "Writes rows as they were exported, or a JSON tree, below a path"
        public static let access = Access.administrator
        public static let effect = Effect.write
        public static let isSlow = true

        public var database: DatabaseName?
        public var path: TreePath
        /// Pairs of a path relative to `path` and its primitive, at most 10,000: a page of an export fits.
        public var rows: [[JSONValue]]?
        /// Instead of `rows`: a tree in export form, which replaces what is at `path`; null removes it.
        public var value: JSONValue?
        /// No triggers fire: followers are told that something they follow was written, with `disableTriggers` and
        /// without `changes`.
        public var disableTriggers: Bool?

        public init(database: DatabaseName? = nil, path: TreePath, rows: [[JSONValue]], disableTriggers: Bool? = nil) {
            self.database = database
            self.path = path
            self.rows = rows
            self.disableTriggers = disableTriggers
        }

        public init(database: DatabaseName? = nil, path: TreePath, value: JSONValue, disableTriggers: Bool? = nil) {
            self.database = database
            self.path = path
            self.value = value
            self.disableTriggers = disableTriggers
        }

        public struct Result: Codable, Sendable, Hashable {
            public var version: UInt64
            public init(version: UInt64) { self.version = version }
        }
    }

    /// Writes a copy of the store.
    public struct Backup: RPCRequest {
        public static let method = "messages.backup"
        public static let summary = "Writes a copy of the store under the service's backup folder"
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let hasSideEffect = true
        public static let isSlow = true

        /// Taken like everywhere, and must be there; a copy holds all databases.
        public var database: DatabaseName?
        public var name: BackupName

        public init(name: BackupName) { self.name = name }

        public typealias Result = BackupResult
    }
}

extension Messages.Export {
    public static var example: RPCExample<Self> {
        RPCExample(
            Messages.Export(path: MessagesExamples.room, limit: 2),
            Result(snapshot: "1", rows: [["/members/masuo", true], ["/title", "磯野家"]]))
    }
}

extension Messages.Import {
    public static var example: RPCExample<Self> {
        RPCExample(
            Messages.Import(path: MessagesExamples.room, rows: [["/members/masuo", true], ["/title", "磯野家"]]),
            Result(version: 19))
    }
}

extension Messages.Backup {
    public static var example: RPCExample<Self> {
        RPCExample(Messages.Backup(name: .example), .example)
    }
}
