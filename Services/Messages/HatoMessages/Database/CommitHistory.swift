import HatoModel
import HatoRules
import HatoStorage
import HatoTree
import Synchronization

/// Commits that are planned but not yet durable, which no record tells of: of the group that is planned, and of
/// the one before it.
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

    var all: [CommitNote] { notes.withLock { $0 } }
}

/// What was written lately, for writes with `ifVersion` and for pushes that are repeated: the kept records, then the
/// commits that wait for a sync.
final class CommitHistory: ChangeHistory, Sendable {
    private let database: DatabaseID
    /// Of the commit that created it.
    private let firstVersion: UInt64
    private let store: any Store
    private let pending: PendingChanges
    /// Who writes.
    private let uid: String?

    init(database: DatabaseID, firstVersion: UInt64, store: any Store, pending: PendingChanges, uid: String?) {
        self.database = database
        self.firstVersion = firstVersion
        self.store = store
        self.pending = pending
        self.uid = uid
    }

    /// Looking through more commits would hold up every other write; so many changes count as a change.
    private static let commitsMax = 4_096

    func wasWritten(_ path: TreePath, after version: UInt64) throws -> Bool {
        if version > store.version {
            throw MessagesError.unknownVersion(newest: store.version, parameter: "ifVersion")
        }
        // Nobody has read anything at version 0: it asks whether the place was ever written in this database.
        let version = version == 0 ? firstVersion : version
        // Then it was another database.
        if version < firstVersion { return true }
        return try contains(after: version) { note in
            note.changes.contains { $0.path.node.isAtOrAbove(path.node) || path.node.isAtOrAbove($0.path.node) }
        }
    }

    /// Whether a commit after `version` may have changed what something rests on; true also when that is no longer
    /// known.
    func touched(after version: UInt64, _ isTouched: ([PathChange]) -> Bool) throws -> Bool {
        try contains(after: version) { isTouched($0.changes) }
    }

    private func contains(after version: UInt64, _ isMeant: (CommitNote) -> Bool) throws -> Bool {
        func isFound(_ note: CommitNote) -> Bool {
            note.database == database && note.version > version && isMeant(note)
        }
        let newest = store.version
        if newest > version, newest - version > UInt64(Self.commitsMax) { return true }
        if pending.all.contains(where: isFound) { return true }
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
                if let note = try CommitNote.of(commit), isFound(note) { return true }
            }
            position = last.version
            looked += commits.count
            if looked >= Self.commitsMax { return position < store.version }
        }
        return false
    }

    // MARK: Pushes

    /// A push is repeated soon, or not at all: it is looked for in so many commits, and so many bytes of them, because
    /// meanwhile every other write waits (about 2 ms).
    private static let pushCommitsMax: UInt64 = 1_024
    private static let pushBytesMax = 8 << 20

    /// Nobody's pushes are not told from those of another nobody.
    func node(pushedAt path: TreePath) throws -> TreeNode? {
        guard let uid else { return nil }
        return try newest(upTo: .max) { note in note.uid == uid ? creation(of: path, by: note)?.after : nil }
    }

    /// The version at which the node at `path` came to be; nil when that was not lately.
    ///
    /// - Parameter isOwn: whether only what the writer himself put there counts.
    func version(pushedAt path: TreePath, upTo version: UInt64, isOwn: Bool) throws -> UInt64? {
        if isOwn, uid == nil { return nil }
        return try newest(upTo: version) { note in
            guard !isOwn || note.uid == uid, creation(of: path, by: note) != nil else { return nil }
            return note.version
        }
    }

    private func creation(of path: TreePath, by note: CommitNote) -> PathChange? {
        note.changes.first { $0.path == path && $0.before == .empty }
    }

    /// What is found in the newest commit of the database that has it.
    private func newest<Found>(upTo version: UInt64, _ find: (CommitNote) -> Found?) throws -> Found? {
        func found(_ note: CommitNote) -> Found? {
            note.database == database && note.version <= version ? find(note) : nil
        }
        for note in pending.all.reversed() {
            if let one = found(note) { return one }
        }
        var end = min(store.version, version)
        let kept = store.keptCommits.oldest.map { $0 - 1 } ?? end
        let oldest = max(kept, end - min(end, Self.pushCommitsMax))
        var bytes = 0
        while end > oldest, bytes < Self.pushBytesMax {
            let start = max(oldest, end - min(end, 64))
            // What is forgotten meanwhile is not known any more.
            let commits = try recorded(after: start, limit: 64) ?? []
            for commit in commits.reversed() where commit.version <= end {
                bytes += commit.record.count
                if let note = try CommitNote.of(commit), let one = found(note) { return one }
            }
            end = start
        }
        return nil
    }

    private func recorded(after version: UInt64, limit: Int) throws(StoreError) -> [Commit]? {
        do { return try store.commits(after: version, limit: limit) } catch {
            if case .compacted = error { return nil }
            throw error
        }
    }
}
