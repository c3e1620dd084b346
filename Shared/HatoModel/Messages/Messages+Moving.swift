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
        public var snapshot: String?
        public var after: String?
        public var limit: Int?

        public static let fields = Fields<Self>(
            blank: Self(path: .root),
            .database(\.database),
            .required("path", \.path, "The path of the node, e.g. `/chats/c1`; `/` is the root"),
            .optional(
                "snapshot", \.snapshot,
                "The handle of the snapshot, from the previous page; absent: a new snapshot",
                example: "1-3w5e11264sgsf"),
            .optional("after", \.after, "`after` of the previous page", example: "/messages/m1"),
            .optional("limit", \.limit, "Rows of the page, 1 to 10,000; 1,000 when absent", example: 1_000))

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

        public struct Result: FieldObject, Hashable {
            public var snapshot: String
            public var rows: [[JSONValue]]
            public var after: String?

            public static let fields = Fields<Self>(
                blank: Self(snapshot: "", rows: []),
                .required(
                    "snapshot", \.snapshot,
                    "The handle for the next page; it ends ten minutes after its last use"),
                .required(
                    "rows", \.rows,
                    "Pairs of a path relative to `path` and its primitive; the path of a priority ends in "
                        + "`/.priority`"),
                .optional("after", \.after, "`after` of the next page; absent on the last one"))

            public init(snapshot: String, rows: [[JSONValue]], after: String? = nil) {
                self.snapshot = snapshot
                self.rows = rows
                self.after = after
            }
        }
    }

    /// Writes rows as exported, or a JSON tree. A call is one commit, written whole or not at all; larger imports take
    /// several calls.
    public struct Import: RPCRequest {
        public static let method = "messages.import"
        public static let summary = "Writes rows as they were exported, or a JSON tree, below a path"
        public static let access = Access.administrator
        public static let effect = Effect.write
        public static let isSlow = true

        public var database: DatabaseName?
        public var path: TreePath
        public var rows: [[JSONValue]]?
        public var value: JSONValue?
        public var disableTriggers: Bool?

        public static let fields = Fields<Self>(
            blank: Self(),
            .database(\.database),
            .required("path", \.path, "The path of the node, e.g. `/chats/c1`; `/` is the root"),
            .optional(
                "rows", \.rows,
                "Pairs of a path relative to `path` and its primitive, at most 10,000: a page of an export fits"),
            .optionalJSON(
                "value", \.value,
                "Instead of `rows`: a tree in export form, which replaces the node at `path`; null removes it",
                example: ["title": "磯野家"]),
            .optional(
                "disableTriggers", \.disableTriggers,
                "No triggers fire: followers are notified with `disableTriggers` and without `changes`",
                example: true))

        private init() { path = .root }

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

        public struct Result: FieldObject, Hashable {
            public var version: UInt64

            public static let fields = Fields<Self>(
                blank: Self(version: 0),
                .required("version", \.version, "The version of the commit: grows with each commit of the store"))
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

        public var database: DatabaseName?
        public var name: BackupName

        public static let fields = Fields<Self>(
            blank: Self(name: .example),
            .optional("database", \.database, "Must exist if named; a copy holds all databases", example: .default),
            .required(
                "name", \.name,
                "The name of the backup, a new folder: 1 to 100 of A-Z a-z 0-9 . _ -, not starting with a dot"))

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
    /// A null `value` beside `rows`, even null `rows`, means that there is no value.
    public static func decode(_ params: JSONObject) throws(RPCError) -> Messages.Import {
        var request = try decodeFields(params)
        if request.value == .null, params["rows"] != nil { request.value = nil }
        return request
    }

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
