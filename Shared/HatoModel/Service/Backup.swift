/// The name of a backup and of its new folder: `[A-Za-z0-9._-]{1,100}`, not starting with a dot, so that no name leads
/// out of the folder for backups.
public struct BackupName: Sendable, Hashable, CustomStringConvertible {
    /// The text of the name.
    public let text: String

    /// Throws `ArgumentError` (`invalid_name`) when the text is no such name.
    public init(_ text: String) throws(ArgumentError) {
        guard (1...100).contains(text.utf8.count), !text.hasPrefix("."), text.utf8.allSatisfy(Self.isAllowed) else {
            throw ArgumentError(
                reason: "invalid_name",
                "A backup is named with 1 to 100 of A-Z a-z 0-9 . _ -, not starting with a dot, e.g. \"2026-11-21\"")
        }
        self.text = text
    }

    private init(checked text: String) { self.text = text }

    public var description: String { text }

    static let example = BackupName(checked: "2026-11-21")

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }
}

/// The result of a service's `backup` method.
public struct BackupResult: FieldObject, Hashable {
    public var name: BackupName
    public var version: UInt64

    public static let fields = Fields<Self>(
        blank: Self(name: .example, version: 0),
        .required("name", \.name, "The name of the backup"),
        .required("version", \.version, "The version of the store that the copy contains"))

    public init(name: BackupName, version: UInt64) {
        self.name = name
        self.version = version
    }

    static let example = BackupResult(name: .example, version: 19)
}

extension RPCError {
    /// The service's store has closed or failed: nothing can be served until the service is restarted.
    public static let storeClosed = RPCError.unavailable(reason: "store_closed", "The store is closed")

    /// The service was started without `--backup-dir`.
    public static let backupsOff = RPCError.failedPrecondition(
        reason: "backups_off", "The service has no backup folder; start it with --backup-dir")

    /// The copy could not be written, e.g. on a full disk; nothing of it is left. Only administrators make backups, so
    /// the error may contain the path.
    public static func backupFailed(_ why: String) -> RPCError {
        .unavailable(reason: "backup_failed", "The backup could not be written: \(why)")
    }

    /// There is one backup at a time.
    public static let backupRunning = RPCError.unavailable(
        reason: "backup_running", "Another backup is being written; there is one at a time")

    /// A file of the store is not as it was written: the service continues as long as it can, but a copy of it must not
    /// replace an intact backup.
    public static func storeDamaged(_ why: String) -> RPCError {
        .failedPrecondition(reason: "store_damaged", "No backup was made: \(why)")
    }

    /// -32004: a backup with this name exists.
    public static func backupExists(_ name: BackupName) -> RPCError {
        .alreadyExists(reason: "backup_exists", "There is a backup \"\(name)\" already; it is not written over")
    }
}

extension BackupName: FieldText {}
