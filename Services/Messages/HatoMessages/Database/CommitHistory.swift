import HatoModel
import HatoStorage
import HatoTree
import Synchronization

/// Commits that are planned but not yet durable, which no record tells of; all of one group.
final class PendingChanges: Sendable {
    private let notes = Mutex<[CommitNote]>([])

    /// In write closures.
    func append(_ note: CommitNote) { notes.withLock { $0.append(note) } }

    func becameDurable(through version: UInt64) {
        notes.withLock { notes in
            if let last = notes.last, last.version <= version {
                notes.removeAll(keepingCapacity: true)
            } else {
                notes.removeAll { $0.version <= version }
            }
        }
    }

    func contains(_ isMeant: (CommitNote) -> Bool) -> Bool { notes.withLock { $0.contains(where: isMeant) } }
}

/// What was written lately, for writes with `ifVersion`: the kept records, then the commits that wait for the same
/// sync.
struct CommitHistory: ChangeHistory {
    var database: DatabaseID
    var store: any Store
    var pending: PendingChanges

    /// Looking through more commits would hold up every other write; so many changes count as a change.
    private static let commitsMax = 4_096

    func wasWritten(_ path: TreePath, after version: UInt64) throws -> Bool {
        if pending.contains({ touches($0, path, after: version) }) { return true }
        var position = version
        var looked = 0
        while position < store.version {
            let commits: [Commit]
            do { commits = try store.commits(after: position, limit: 256) } catch {
                switch error {
                case .compacted, .unknownVersion: return true
                default: throw error
                }
            }
            guard let last = commits.last else { return false }
            for commit in commits {
                if let note = try CommitNote.of(commit), touches(note, path, after: version) { return true }
            }
            position = last.version
            looked += commits.count
            if looked >= Self.commitsMax { return position < store.version }
        }
        return false
    }

    private func touches(_ note: CommitNote, _ path: TreePath, after version: UInt64) -> Bool {
        guard note.database == database, note.version > version else { return false }
        return note.changes.contains { $0.path.node.isAtOrAbove(path.node) || path.node.isAtOrAbove($0.path.node) }
    }
}
