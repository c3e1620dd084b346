extension Messages {
    /// Reads the leaves of a subtree page by page, all of one version.
    public struct Export: RPCRequest {
        public static let method = "messages.export"
        public static let summary =
            """
            Reads the leaves below a path page by page; all pages of a snapshot show one version. At most 16 \
            snapshots are open at a time (`too_many_exports`)
            """
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
            .path(\.path),
            .optional(
                "snapshot", \.snapshot,
                "The `snapshot` of the previous page; the first page of a new snapshot when absent",
                example: "1-3w5e11264sgsf"),
            .optional(
                "after", \.after, "The `after` of the previous page; only with its `snapshot`", example: "/messages/m1"),
            .optional(
                "limit", \.limit,
                """
                The maximum number of rows, 1 to 10,000; 1,000 when absent. A page may have fewer: it has at \
                most 4 MiB
                """, example: 1_000))

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
                    """
                    The `snapshot` of the next page: it expires 10 minutes after its last use \
                    (`export_not_found`), and at the last page
                    """),
                .required(
                    "rows", \.rows,
                    """
                    Pairs `[path, value]`: the path relative to `path`, and a string, number or boolean. The \
                    path of a priority ends in `/.priority`
                    """),
                .optional("after", \.after, "The `after` of the next page; absent on the last one"))

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
        public static let summary = """
            Writes exported rows, or a JSON tree, below a path in one commit. Exactly one of `rows` and \
            `value` is required
            """
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
            .path(\.path),
            .optional(
                "rows", \.rows,
                """
                Pairs `[path, value]` as `messages.export` returns them, at most 10,000; nodes that are not in \
                them stay. Limits as in `messages.set`
                """),
            .optionalJSON(
                "value", \.value,
                """
                Instead of `rows`: a tree in export form, which replaces the node at `path`; null removes it. \
                Limits as in `messages.set`
                """,
                example: ["title": "磯野家"]),
            .optional(
                "disableTriggers", \.disableTriggers,
                """
                True: triggers do not fire. Followers get a change with `disableTriggers` and empty \
                `changes`; false when absent
                """,
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
                .required(
                    "version", \.version,
                    """
                    The version of the commit; versions grow with each commit of any database, so those of one \
                    database have gaps
                    """))
            public init(version: UInt64) { self.version = version }
        }
    }

    /// Writes a copy of the store.
    public struct Backup: RPCRequest {
        public static let method = "messages.backup"
        public static let summary = """
            Writes a copy of the store into a new folder under `--backup-dir`. Restore it with \
            `hato-messages restore`
            """
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let hasSideEffect = true
        public static let isSlow = true

        public var database: DatabaseName?
        public var name: BackupName

        public static let fields = Fields<Self>(
            blank: Self(name: .example),
            .optional(
                "database", \.database, "Has no effect, but must exist: a backup contains all databases",
                example: .default),
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
            Result(snapshot: "1-3w5e11264sgsf", rows: [["/members/masuo", true], ["/title", "磯野家"]]))
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
