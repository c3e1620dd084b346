import HatoModel
import HatoStorage
import HatoTree

/// One commit as listeners and followers see it: what the writer attached, or what its record tells.
final class CommitNote: Sendable {
    let version: UInt64
    let database: DatabaseID
    /// Milliseconds since 1970.
    let time: Int64
    /// Who wrote it; nil for an administrator and for nobody.
    let uid: String?
    let changes: [PathChange]
    let isHiddenFromFollowers: Bool

    init(version: UInt64, database: Database, plan: WritePlan, uid: String?, isHiddenFromFollowers: Bool) {
        self.version = version
        self.database = database.id
        time = plan.time
        self.uid = uid
        changes = plan.changes
        self.isHiddenFromFollowers = isHiddenFromFollowers
    }

    /// Reads a commit back; nil when it changed no tree. Throws when the record is not what `record` writes.
    init?(_ commit: Commit) throws {
        return nil
    }

    /// What the store keeps of the commit.
    func record(bytesMax: Int) -> [UInt8] { [] }
}
