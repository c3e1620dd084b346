import HatoModel
import HatoStorage

/// Where everything of this service stands in its store: the first byte of a key is its room.
///
/// ```
/// 01 name            a database: `DatabaseRecord`
/// 02                 the next database id
/// 03 id              the indexes of a database: `IndexCatalog` as JSON
/// 04 connection …    what a connection has left to be written when it ends: `DisconnectRecord`
/// 05 …               what it keeps of auth: `RefusalRows`
/// 06 …               the profiles of accounts: `ProfileRows`
/// 10 id …            the tree of a database, as `TreeKeyCodec` writes it
/// 20 id …            the index rows of a database, as `IndexKeyCodec` writes them
/// ```
/// Ids have four bytes and are never used twice, so that a database created under an old name never meets old rows.
enum StoreKeys {
    private enum KeySpace: UInt8 {
        case databases = 0x01
        case nextDatabase = 0x02
        case indexes = 0x03
        case disconnects = 0x04
        case refusals = 0x05
        case profiles = 0x06
        case tree = 0x10
        case indexRows = 0x20
    }

    static let databases = KeyRange(prefix: [KeySpace.databases.rawValue])
    static let nextDatabase: [UInt8] = [KeySpace.nextDatabase.rawValue]

    static func database(_ name: DatabaseName) -> [UInt8] { [KeySpace.databases.rawValue] + Array(name.rawValue.utf8) }

    static func indexes(of database: DatabaseID) -> [UInt8] { key(.indexes, database) }

    static func tree(of database: DatabaseID) -> [UInt8] { key(.tree, database) }

    static func indexRows(of database: DatabaseID) -> [UInt8] { key(.indexRows, database) }

    /// What all rows of `RefusalRows` begin with.
    static let refusals: [UInt8] = [KeySpace.refusals.rawValue]
    /// What all rows of `ProfileRows` begin with.
    static let profiles: [UInt8] = [KeySpace.profiles.rawValue]

    static let disconnects = KeyRange(prefix: [KeySpace.disconnects.rawValue])

    /// Everything that one connection has left: what follows is `DisconnectRecord`'s.
    static func disconnects(of connection: UInt64) -> [UInt8] {
        var encoder = ByteEncoder()
        encoder.append(KeySpace.disconnects.rawValue)
        encoder.append(connection)
        return encoder.bytes
    }

    /// Whose row a key is.
    enum RowOwner {
        /// A database's record, the next id, or what is kept of auth.
        case single
        /// What a connection has left: `DisconnectRecord`'s.
        case disconnect
        /// With all rows of that database in this room.
        case ofDatabase(DatabaseID, KeyRange)
    }

    /// Nil for a key that nothing here writes.
    static func owner(of key: Span<UInt8>) -> RowOwner? {
        guard key.count > 0, let room = KeySpace(rawValue: key[0]) else { return nil }
        switch room {
        case .databases: return key.count > 1 ? .single : nil
        case .nextDatabase: return key.count == 1 ? .single : nil
        case .disconnects: return .disconnect
        case .refusals, .profiles: return key.count > 1 ? .single : nil
        case .indexes, .tree, .indexRows:
            guard key.count >= 5 else { return nil }
            let bytes = key.extracting(0..<5).withUnsafeBufferPointer { Array($0) }
            let id = bytes.dropFirst().reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
            return .ofDatabase(DatabaseID(rawValue: id), KeyRange(prefix: bytes))
        }
    }

    /// Rows that lie side by side, with no other's between them, begin with so many bytes in common: those of the
    /// tree of a database, or of one of its indexes.
    static func sectionLength(of row: Span<UInt8>) -> Int {
        row.count > 0 && row[0] == KeySpace.indexRows.rawValue ? 9 : 5
    }

    private static func key(_ room: KeySpace, _ database: DatabaseID) -> [UInt8] {
        var encoder = ByteEncoder()
        encoder.append(room.rawValue)
        encoder.append(database.rawValue)
        return encoder.bytes
    }
}

/// What stands for a database in keys.
struct DatabaseID: Sendable, Hashable, RawRepresentable {
    var rawValue: UInt32
}
