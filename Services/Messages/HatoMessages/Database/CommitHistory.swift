import HatoModel
import HatoStorage
import HatoTree

/// What was written lately, for writes with `ifVersion`, for pushes that are repeated, and for writes that were planned
/// before their turn.
final class CommitHistory: ChangeHistory, Sendable {
    private let database: DatabaseID
    /// Of the commit that created it.
    private let firstVersion: UInt64
    private let store: any Store
    private let recent: RecentCommits
    /// The user of the write.
    private let uid: String?

    init(of database: Database, _ parts: ServiceParts, uid: String?) {
        self.database = database.id
        firstVersion = database.record.firstVersion
        store = parts.store
        recent = parts.recent
        self.uid = uid
    }

    func wasWritten(_ path: TreePath, after version: UInt64) throws -> Bool {
        if version > store.version {
            throw MessagesError.unknownVersion(newest: store.version, parameter: "ifVersion")
        }
        // Version 0 stands for the version before the first write of the path in this database.
        let version = version == 0 ? firstVersion : version
        // Then it was another database.
        if version < firstVersion { return true }
        return recent.wasWritten(path, of: database, after: version)
    }

    // MARK: Writes that were planned before their turn

    /// So many commits since, and so many bytes of them, are looked through in the turn of such a write.
    private static let commitsMax: UInt64 = 4_096
    private static let bytesMax = 4 << 20

    /// Whether a commit after `version` may have changed what something rests on; true also when that is no longer
    /// known, or would take long to find out.
    func touched(after version: UInt64, _ isTouched: ([PathChange]) -> Bool) throws -> Bool {
        func isFound(_ note: CommitNote) -> Bool {
            note.database == database && note.version > version && isTouched(note.changes)
        }
        if recent.pending.contains(where: isFound) { return true }
        var (position, bytes) = (version, 0)
        while position < store.version {
            guard position - version < Self.commitsMax, bytes < Self.bytesMax,
                let commits = try recorded(after: position, limit: 64)
            else { return true }
            guard let last = commits.last else { return false }
            for commit in commits {
                bytes += commit.record.count
                if let note = try CommitNote.of(commit), isFound(note) { return true }
            }
            position = last.version
        }
        return false
    }

    // MARK: Pushes

    /// A push is repeated soon, or not at all: it is looked for in so many commits, and so many bytes of them, a few at
    /// a time: a record has 1 MiB at most, and the store returns 4 MiB at a time.
    private static let pushCommitsMax: UInt64 = 1_024
    private static let pushBytesMax = 1 << 20
    private static let pushCommitsAtATime: UInt64 = 4

    /// Pushes of different callers without a user cannot be distinguished.
    func node(pushedAt path: TreePath, byteCount: Int) throws -> TreeNode? {
        guard let uid else { return nil }
        switch recent.creation(at: path, of: database, by: uid, byteCount: byteCount) {
        case nil: return nil
        case .pending(let node)?: return node
        case .durable(let version)?:
            guard let commit = try recorded(after: version - 1, limit: 1)?.first else { return nil }
            return try CommitNote.of(commit)?.creation(of: path)?.after
        }
    }

    /// The version at which the node at `path` came to be; nil when that was not lately. It reads records, so no write
    /// may call it in its turn.
    ///
    /// - Parameter isOwn: whether only what the writer himself put there counts.
    func version(pushedAt path: TreePath, upTo version: UInt64, isOwn: Bool) throws -> UInt64? {
        if isOwn, uid == nil { return nil }
        func isFirst(_ note: CommitNote) -> Bool {
            note.database == database && note.version <= version && (!isOwn || note.uid == uid)
                && note.creation(of: path) != nil
        }
        if let note = recent.pending.last(where: isFirst) { return note.version }
        // Usually the caller's own, which is found without a record.
        if let uid, case .durable(let own)? = recent.creation(at: path, of: database, by: uid), own <= version {
            return own
        }
        var end = min(store.version, version)
        let kept = store.keptCommits.oldest.map { $0 - 1 } ?? end
        let oldest = max(kept, end - min(end, Self.pushCommitsMax))
        var bytes = 0
        while end > oldest, bytes < Self.pushBytesMax {
            let start = max(oldest, end - min(end, Self.pushCommitsAtATime))
            // What is forgotten meanwhile is not known any more.
            let commits = try recorded(after: start, limit: Int(end - start)) ?? []
            for commit in commits.reversed() where commit.version <= end {
                bytes += commit.record.count
                if let note = try CommitNote.of(commit), isFirst(note) { return note.version }
            }
            end = start
        }
        return nil
    }

    /// The node with which the node at `path` came to be at this version; nil when that is not known any more. It reads
    /// a record, so no write may call it in its turn.
    func node(created path: TreePath, at version: UInt64) throws -> TreeNode? {
        guard version > 0, let commit = try recorded(after: version - 1, limit: 1)?.first, commit.version == version,
            let note = try CommitNote.of(commit), note.database == database
        else { return nil }
        return note.creation(of: path)?.after
    }

    /// Nil when they are no longer kept, or were never there.
    private func recorded(after version: UInt64, limit: Int) throws(StoreError) -> [Commit]? {
        do { return try store.commits(after: version, limit: limit) } catch {
            switch error {
            case .compacted, .unknownVersion: return nil
            default: throw error
            }
        }
    }
}
