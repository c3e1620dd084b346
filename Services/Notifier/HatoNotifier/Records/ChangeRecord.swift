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

/// Where a change stands among all that were written down: those of one database are in the order of its commits.
struct ChangePosition: Sendable, Hashable, Comparable {
    /// The commit of the notifier's store that brought it.
    var sequence: UInt64
    /// Its number there.
    var index: UInt32

    static func < (one: Self, other: Self) -> Bool { (one.sequence, one.index) < (other.sequence, other.index) }
}

/// The key of a row with a change: who wrote it, and where it stands.
struct ChangeRow: Sendable, Hashable {
    var writer: UserDigest
    var position: ChangePosition
    var key: RecordKey

    init(_ database: DatabaseName, of writer: UserDigest, at position: ChangePosition) {
        (self.writer, self.position) = (writer, position)
        key = ChangeRecord.prefix(database, of: writer).with(position.sequence).with(position.index)
    }

    /// Nil when it is no such row.
    init?(_ key: RecordKey) {
        var reader = RecordKeyReader(key.bytes)
        guard reader.text() != nil, let writer = reader.number(), let sequence = reader.number(),
            let index = reader.shortNumber()
        else { return nil }
        (self.writer, self.key) = (UserDigest(writer), key)
        position = ChangePosition(sequence: sequence, index: index)
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
