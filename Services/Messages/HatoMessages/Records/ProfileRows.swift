import HatoFollow
import HatoModel
import HatoStorage

/// The rows of the profiles in the tree: how far the events of auth are handled, and of which accounts there is one.
///
/// ```
/// 06 01        the position, and the place of the profiles
/// 06 02 uid    an account with a profile
/// ```
enum ProfileRows {
    private static let positionKey = StoreKeys.profiles + [1]
    private static let uidPrefix = StoreKeys.profiles + [2]

    private struct Position: FieldObject {
        var number: Int
        var epoch: String
        var place: String
        /// The `DatabaseID`: one that was dropped and made again has no profiles.
        var database: Int

        static let fields = Fields<Self>(
            blank: Self(number: 0, epoch: "", place: "", database: 0),
            .required("number", \.number), .required("epoch", \.epoch), .required("place", \.place),
            .required("database", \.database))
    }

    /// Nil when there is none, or one of profiles at another place or in another database. Throws `RecordError`, and
    /// the errors of the store.
    static func position(
        of place: ProfilePlace, _ database: DatabaseID?, in rows: some StoreReading
    ) throws -> AccountPosition? {
        guard let bytes = try rows.get(positionKey) else { return nil }
        let position = try RecordCodec.decode(Position.self, bytes, of: "profile position", unknown: .rejected)
        guard position.place == place.description, position.database == database.map({ Int($0.rawValue) }) else {
            return nil
        }
        return AccountPosition(position.number, epoch: position.epoch)
    }

    static func put(
        _ position: AccountPosition, of place: ProfilePlace, _ database: DatabaseID, in rows: some StoreWriting
    ) {
        let record = Position(
            number: position.number, epoch: position.epoch, place: place.description,
            database: Int(database.rawValue))
        let bytes = RecordCodec.encode(record)
        rows.put(positionKey.span, bytes.span)
    }

    static func put(_ uid: String, isThere: Bool, in rows: some StoreWriting) {
        let key = uidPrefix + Array(uid.utf8)
        if isThere { rows.put(key.span, [UInt8]().span) } else { rows.delete(key.span) }
    }

    /// The accounts with a profile after the uid `start` (empty: from the first), through `end` (nil: to the last).
    static func uids(after start: [UInt8], through end: String?, in rows: some StoreReading) throws -> [String] {
        var range = KeyRange(prefix: uidPrefix)
        if !start.isEmpty { range.lower = uidPrefix + start + [0] }
        if let end { range.upper = uidPrefix + Array(end.utf8) + [0] }
        var uids: [String] = []
        try rows.scan(range, reverse: false) { key, _ in
            let bytes = key.extracting(uidPrefix.count...).withUnsafeBufferPointer { Array($0) }
            uids.append(String(decoding: bytes, as: UTF8.self))
            return .next
        }
        return uids
    }
}
