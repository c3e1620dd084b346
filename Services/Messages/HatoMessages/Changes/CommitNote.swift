import HatoModel
import HatoStorage
import HatoTree

/// One commit as listeners and followers see it: from the writer, or from its record.
final class CommitNote: Sendable {
    let version: UInt64
    let database: DatabaseID
    /// Milliseconds since 1970.
    let time: Int64
    /// The author; nil for an administrator and for a caller without a user.
    let uid: String?
    /// The changes for listeners: complete while the commit is new.
    let changes: [PathChange]
    /// The changes for followers: cut as in its record, so that followers get the same changes live and later.
    let cutChanges: [PathChange]
    /// Whether followers get a change without nodes: an import that must fire no triggers.
    let disablesTriggers: Bool
    /// Over 1 MiB: its record is cut.
    let isLarge: Bool
    /// About the size of its events.
    let byteCount: Int

    /// First byte of a record: what `ChangeRecord` does not know.
    private static let withoutTriggers: UInt8 = 1

    init(version: UInt64, database: DatabaseID, plan: WritePlan, cut: CutChanges, by write: Write) {
        self.version = version
        self.database = database
        time = plan.time
        uid = write.caller.uid
        changes = plan.changes
        cutChanges = cut.changes
        byteCount = cut.byteCount
        disablesTriggers = write.disablesTriggers
        isLarge = self.cutChanges.contains { $0.isTruncated }
    }

    private init(decoding record: [UInt8]) throws {
        let change = try ChangeRecord(decoding: Array(record.dropFirst()))
        guard let id = UInt32(change.database) else { throw RecordError(record: "change") }
        version = change.version
        database = DatabaseID(rawValue: id)
        time = change.time
        uid = change.uid
        changes = change.changes
        cutChanges = change.changes
        disablesTriggers = record.first == Self.withoutTriggers
        isLarge = changes.contains { $0.isTruncated }
        byteCount = record.count
    }

    /// The note of a commit, live or read back; nil when it changed no tree. Throws when the record cannot be read.
    static func of(_ commit: Commit) throws -> CommitNote? {
        if let note = commit.note as? CommitNote { return note }
        return commit.record.isEmpty ? nil : try CommitNote(decoding: commit.record)
    }

    /// What the store keeps of the commit. The database stands in it by its id, so that one created later under the
    /// same name has a history of its own.
    ///
    /// - Parameter cut: the changes of this note.
    func record(of cut: CutChanges) -> [UInt8] {
        let change = ChangeRecord(
            version: version, time: time, uid: uid, database: String(database.rawValue), changes: [])
        var bytes: [UInt8] = []
        bytes.reserveCapacity(cut.encoded.count + 65)
        bytes.append(disablesTriggers ? Self.withoutTriggers : 0)
        change.encode(cut.encoded, to: &bytes)
        return bytes
    }
}

/// Changes as followers get them.
struct CutChanges: Sendable {
    let changes: [PathChange]
    /// Of the nodes in the changes before they were cut.
    let byteCount: Int
    /// As a record has them.
    let encoded: [UInt8]

    init(_ changes: [PathChange]) {
        byteCount = ChangeRecord.byteCount(of: changes)
        self.changes = ChangeRecord.cut(changes, of: byteCount)
        encoded = ChangeRecord.encoded(self.changes)
    }
}
