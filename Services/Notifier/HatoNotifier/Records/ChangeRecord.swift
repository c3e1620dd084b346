import HatoModel

/// A change of a feed that fires a trigger, until all that it fires is accepted.
struct ChangeRecord: FieldObject, Hashable {
    var change: FeedChange
    // Of its commit.
    var version: UInt64
    var epoch: String
    var time: Int64

    static let fields = Fields<Self>(
        blank: Self(change: FeedChange.fields.blank, version: 0, epoch: "", time: 0),
        .required("version", \.version),
        .required("epoch", \.epoch),
        .required("time", \.time),
        .required("change", \.change))

    /// Its commit, without changes.
    var commit: FeedCommit { FeedCommit(version: version, epoch: epoch, time: time, changes: []) }

    static func prefix(_ database: DatabaseName) -> RecordKey { RecordKey(.change).with(database.rawValue) }

    static func prefix(_ database: DatabaseName, of writer: UserDigest) -> RecordKey {
        prefix(database).with(writer.value)
    }
}

/// The key of a row with a change: who wrote it, and its place among the changes of this writer.
struct ChangeRow: Sendable, Hashable {
    var writer: UserDigest
    /// The commit of the notifier's store that brought it.
    var sequence: UInt64
    var key: RecordKey

    init(_ database: DatabaseName, of writer: UserDigest, _ sequence: UInt64, _ index: Int) {
        (self.writer, self.sequence) = (writer, sequence)
        key = ChangeRecord.prefix(database, of: writer).with(sequence).with(UInt32(clamping: index))
    }

    /// Nil when it is no such row.
    init?(_ key: RecordKey) {
        var reader = RecordKeyReader(key.bytes)
        guard reader.text() != nil, let writer = reader.number(), let sequence = reader.number() else { return nil }
        (self.writer, self.sequence, self.key) = (UserDigest(writer), sequence, key)
    }
}

extension FeedChange: FieldObject {
    static let fields = Fields<Self>(
        blank: Self(pattern: "", parameters: [:], path: "", type: .created, before: nil, after: nil, uid: nil),
        .required("pattern", \.pattern),
        .required("parameters", \.parameters),
        .required("path", \.path),
        .required("type", \.type),
        .optionalJSON("before", \.before),
        .optionalJSON("after", \.after),
        .optional("uid", \.uid),
        .flag("isPartial", \.isPartial),
        .flag("isTruncated", \.isTruncated))

    /// The user that wrote it. All writes without a user are those of one.
    var writer: UserDigest { UserDigest(uid: uid ?? "") }
}
