extension Auth {
    /// Writes a copy of the store, signing keys included, under the service's `--backup-dir`, and nowhere else.
    public struct Backup: RPCRequest {
        public static let method = "auth.backup"
        public static let summary = """
            Writes a copy of the store into a new folder under `--backup-dir`. Restore it with \
            `hato-auth restore`. It contains password hashes and signing keys
            """
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let hasSideEffect = true
        public static let isSlow = true
        public static let example = RPCExample(Backup(name: .example), BackupResult.example)

        public typealias Result = BackupResult

        public var name: BackupName

        public static let fields = Fields<Self>(
            blank: Self(name: .example),
            .required(
                "name", \.name,
                "The name of the backup, a new folder: 1 to 100 of A-Z a-z 0-9 . _ -, not starting with a dot"))

        public init(name: BackupName) { self.name = name }
    }
}
