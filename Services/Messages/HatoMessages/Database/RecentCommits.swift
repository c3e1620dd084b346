import HatoModel
import HatoStorage
import HatoTree
import Synchronization

/// The recent commits, for writes that look back at them in their turn: all other writes wait meanwhile, so no record
/// is read for it.
///
/// Of commits that are planned but not yet durable, which have no record yet, it holds the notes; of durable ones which
/// paths they wrote.
///
/// While a commit becomes durable it is in both. A look-up in both takes the pending ones first: in the other order it
/// could miss a commit that becomes durable in between.
final class RecentCommits: Sendable {
    /// Of commits that are planned but not yet durable, in the order of their versions.
    private let notes = Mutex<[CommitNote]>([])
    private let durable: Mutex<WrittenPaths>

    /// A service that starts reads so many records, and so many bytes of them: some milliseconds, and memory beside
    /// the replay of the log. A record has 1 MiB at most.
    private static let startCommitsMax: UInt64 = 4_096
    private static let startBytesMax = 1 << 20
    private static let commitsAtATime: UInt64 = 4

    /// Takes in the newest commits of a store that is not written yet.
    init(_ store: any Store) {
        let (notes, start) = Self.newest(of: store)
        var durable = WrittenPaths(start: start)
        durable.append(notes.reversed())
        self.durable = Mutex(durable)
    }

    /// The newest first, and the version before them. What is behind a record that cannot be read is not known.
    private static func newest(of store: any Store) -> (notes: [CommitNote], start: UInt64) {
        var (notes, start, bytes): ([CommitNote], UInt64, Int) = ([], store.version, 0)
        let oldest = max(store.keptCommits.oldest.map { $0 - 1 } ?? start, start - min(start, startCommitsMax))
        while start > oldest, bytes < startBytesMax {
            let first = max(oldest, start - min(start, commitsAtATime))
            guard let commits = try? store.commits(after: first, limit: Int(start - first)),
                commits.last?.version == start
            else { break }
            for commit in commits.reversed() {
                do { if let note = try CommitNote.of(commit) { notes.append(note) } } catch { return (notes, start) }
                bytes += commit.record.count
                start = commit.version - 1
            }
        }
        return (notes, start)
    }

    /// In write closures.
    func append(_ note: CommitNote) { notes.withLock { $0.append(note) } }

    /// The next commits are planned at the same time: while the written paths are noted, the lock that `append` needs
    /// is not held.
    func becameDurable(through version: UInt64) {
        let ended = notes.withLock { notes in Array(notes.prefix { $0.version <= version }) }
        durable.withLock { $0.append(ended) }
        notes.withLock { $0.removeFirst(ended.count) }
    }

    /// Those that are planned but not yet durable.
    var pending: [CommitNote] { notes.withLock { $0 } }

    /// Whether a commit after `version` wrote at, above or below `path`; true also when that is no longer known.
    func wasWritten(_ path: TreePath, of database: DatabaseID, after version: UInt64) -> Bool {
        let isPending = pending.contains { note in
            note.database == database && note.version > version
                && note.changes.contains {
                    $0.path.node.isAtOrAbove(path.node) || path.node.isAtOrAbove($0.path.node)
                }
        }
        return isPending || durable.withLock { $0.contains(path, of: database, after: version) }
    }

    enum Creation {
        case pending(TreeNode?)
        /// By the commit of this version.
        case durable(UInt64)
    }

    /// The newest commit in which this user put a node at `path` where there was none; nil when it is not known.
    ///
    /// - Parameter byteCount: of the node (`TreeNode.byteCount`), for durable commits; nil: any.
    func creation(at path: TreePath, of database: DatabaseID, by uid: String, byteCount: Int? = nil) -> Creation? {
        for note in pending.reversed() where note.database == database && note.uid == uid {
            if let change = note.creation(of: path) { return .pending(change.after) }
        }
        return durable.withLock { $0.creation(at: path, of: database, by: uid, byteCount: byteCount) }
            .map { .durable($0) }
    }
}

extension CommitNote {
    /// The change that put a node at `path` where there was none.
    func creation(of path: TreePath) -> PathChange? { changes.first { $0.path == path && $0.isCreation } }
}
