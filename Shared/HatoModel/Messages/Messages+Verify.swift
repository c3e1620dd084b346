extension Messages {
    /// Checks that the store is what was written: all of it is read, indexes are compared with the data they are of, and
    /// the kept changes are read without a gap. Takes as long as there is data; writes and reads go on meanwhile.
    public struct Verify: RPCRequest {
        public static let method = "messages.verify"
        public static let summary = "Checks rows, indexes and kept changes of the store; says what is wrong, and where"
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let isSlow = true

        /// Taken like everywhere, and must be there; all databases are checked.
        public var database: DatabaseName?

        public init() {}

        public struct Result: Codable, Sendable, Hashable {
            /// What was checked is the state at this version.
            public var version: UInt64
            /// Empty when all is well. At most 1,000; `findingCount` counts all.
            public var findings: [Finding]
            public var findingCount: Int
            public var checked: Checked

            public init(version: UInt64, findings: [Finding], findingCount: Int, checked: Checked) {
                self.version = version
                self.findings = findings
                self.findingCount = findingCount
                self.checked = checked
            }
        }

        /// Something that is not as it was written.
        public struct Finding: Codable, Sendable, Hashable {
            public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
                /// What the disk gives back is not what was written, or cannot be read.
                case storage
                /// A row of the tree, or of what the service knows of its databases.
                case tree
                /// An index that says other things than the tree.
                case index
                /// The record of a commit.
                case changes
            }

            public var kind: Kind
            public var database: String?
            /// The place in the tree.
            public var path: String?
            /// The index, e.g. `/chats/{chat}/messages on date`.
            public var index: String?
            /// The commit.
            public var version: UInt64?
            public var problem: String

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

        /// How much was looked at.
        public struct Checked: Codable, Sendable, Hashable {
            public var databases = 0
            /// Rows of trees.
            public var rows = 0
            public var indexes = 0
            public var indexRows = 0
            /// Records of commits.
            public var changes = 0

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
