extension Messages {
    /// Checks the integrity of the store: all of it is read, indexes are compared with their data, and the kept changes
    /// are read without a gap. The duration grows with the size of the data; writes and reads continue meanwhile.
    public struct Verify: RPCRequest {
        public static let method = "messages.verify"
        public static let summary = "Checks rows, indexes and kept changes of the store; returns the problems found"
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let isSlow = true

        public var database: DatabaseName?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "database", \.database, "Has no effect, but must exist: all databases are checked", example: .default))

        public init() {}

        public struct Result: FieldObject, Hashable {
            public var version: UInt64
            public var findings: [Finding]
            public var findingCount: Int
            public var checked: Checked

            public static let fields = Fields<Self>(
                blank: Self(version: 0, findings: [], findingCount: 0, checked: Checked.fields.blank),
                .required("version", \.version, "The version that was checked"),
                .required("findings", \.findings, "The problems found, at most 1,000; empty if there is none"),
                .required("findingCount", \.findingCount, "The number of problems, including those beyond 1,000"),
                .required("checked", \.checked, "How much was read"))

            public init(version: UInt64, findings: [Finding], findingCount: Int, checked: Checked) {
                self.version = version
                self.findings = findings
                self.findingCount = findingCount
                self.checked = checked
            }
        }

        /// A difference between what was written and what is read.
        public struct Finding: FieldObject, Hashable {
            /// The kind of the damaged data.
            public enum Kind: String, FieldChoice {
                /// The disk returns other bytes than were written, or none.
                case storage
                /// A row of the tree, or of the service's metadata of databases.
                case tree
                /// An index that differs from the tree.
                case index
                /// The record of a commit.
                case changes
            }

            public var kind: Kind
            public var database: String?
            public var path: String?
            public var index: String?
            public var version: UInt64?
            public var problem: String

            public static let fields = Fields<Self>(
                blank: Self(.storage, ""),
                .required(
                    "kind", \.kind,
                    """
                    `storage`: bytes differ from what was written; `tree`: a damaged row of the tree; `index`: \
                    an index differs from the tree; `changes`: a damaged record of a commit
                    """),
                .optional("database", \.database, "The database it is in"),
                .optional("path", \.path, "The path of the node"),
                .optional("index", \.index, "The index, e.g. `/chats/{chat}/messages on date`"),
                .optional("version", \.version, "The version of the commit"),
                .required("problem", \.problem, "What is wrong, as a sentence"))

            public init(
                _ kind: Kind, _ problem: String, database: String? = nil, path: String? = nil, index: String? = nil,
                version: UInt64? = nil
            ) {
                self.kind = kind
                self.problem = problem
                self.database = database
                self.path = path
                self.index = index
                self.version = version
            }
        }

        /// The amount of checked data.
        public struct Checked: FieldObject, Hashable {
            /// Databases that were read.
            public var databases = 0
            /// Rows of trees that were read.
            public var rows = 0
            /// Indexes that were read.
            public var indexes = 0
            /// Rows of indexes that were read.
            public var indexRows = 0
            /// Records of commits that were read.
            public var changes = 0

            public static let fields = Fields<Self>(
                blank: Self(),
                .required("databases", \.databases, "The number of databases read"),
                .required("rows", \.rows, "The number of rows of trees read"),
                .required("indexes", \.indexes, "The number of indexes read"),
                .required("indexRows", \.indexRows, "The number of rows of indexes read"),
                .required("changes", \.changes, "The number of records of commits read"))

            public init() {}
        }
    }
}

extension Messages.Verify {
    public static var example: RPCExample<Self> {
        var checked = Checked()
        (checked.databases, checked.rows, checked.indexes, checked.indexRows, checked.changes) = (1, 24, 1, 5, 19)
        let finding = Finding(
            .index, "a row at 1795000000000 is missing", database: "default",
            path: "/chats/family/messages/-NjEtLV-", index: "/chats/{chat}/messages on date")
        return RPCExample(
            Messages.Verify(), Result(version: 19, findings: [finding], findingCount: 1, checked: checked))
    }
}
