/// The methods of the realtime message database (protocol §5).
///
/// Every method takes `database` (absent: `default`), and `path` where it concerns a node. Versions are counted per
/// store: a database sees gaps, never a repeat.
public enum Messages {
    public static let methods: [any RPCRequest.Type] = [
        Get.self, Set.self, Update.self, Push.self, Remove.self,
        Listen.self, Unlisten.self,
        OnDisconnect.Set.self, OnDisconnect.Update.self, OnDisconnect.Remove.self, OnDisconnect.Cancel.self,
        Follow.self, Unfollow.self,
        Rules.Get.self, Rules.Set.self, Rules.Check.self,
        Indexes.List.self,
        Databases.List.self, Databases.Create.self, Databases.Drop.self,
        Stats.self,
        Export.self, Import.self, Backup.self, Verify.self,
    ]

    public static let notifications: [any RPCNotification.Type] = [Event.self, Cancelled.self, Change.self]
}

/// The name of a database: `[a-z0-9-]{1,63}`.
public struct DatabaseName: Sendable, Hashable, RawRepresentable, CustomStringConvertible {
    /// The database when none is named.
    public static let `default` = DatabaseName(checked: "default")

    public let rawValue: String

    public init?(rawValue: String) {
        let bytes = rawValue.utf8
        guard !bytes.isEmpty, bytes.count <= 63 else { return nil }
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                continue
            default: return nil
            }
        }
        self.rawValue = rawValue
    }

    private init(checked name: String) { rawValue = name }

    /// Throws `ArgumentError` (`invalid_database`) when the text is no database name.
    public init(_ text: String) throws(ArgumentError) {
        guard let name = DatabaseName(rawValue: text) else {
            throw ArgumentError(
                reason: "invalid_database",
                "A database is named with 1 to 63 of the characters a-z, 0-9 and -, e.g. \"default\"")
        }
        self = name
    }

    public var description: String { rawValue }
}

extension DatabaseName: FieldText {}
