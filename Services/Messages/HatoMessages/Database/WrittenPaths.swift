import HatoModel
import HatoTree

/// Which paths were written by recent commits, for writes that ask for it in their turn. Bounded, whatever the commits
/// wrote: it holds hashes of paths, and of the older half of the commits nothing once it is full.
///
/// Two paths with one hash are taken for the same path: a write is then refused that need not be. The hashes differ
/// with every process, so no client can look for such paths.
struct WrittenPaths {
    private struct Commits {
        /// These are all commits after this version, up to those of the next half.
        var start: UInt64
        /// The newest version that wrote a path, or below it.
        var at: [Int: UInt64] = [:]
        var below: [Int: UInt64] = [:]
        var creations: [Int: Creation] = [:]

        var count: Int { at.count + below.count + creations.count }
    }

    /// Of a node that a user put where there was none, and that its record has.
    struct Creation: Hashable {
        var version: UInt64
        /// `TreeNode.byteCount` of the node.
        var byteCount: Int
    }

    private var older: Commits
    private var newer: Commits
    private let countMax: Int

    /// - Parameters:
    ///   - start: commits up to this version are not known.
    ///   - countMax: how many hashes it holds, about.
    init(start: UInt64, countMax: Int = 65_536) {
        older = Commits(start: start)
        newer = Commits(start: start)
        self.countMax = countMax
    }

    /// Notes a commit; commits come in the order of their versions, and those that changed no tree need not.
    mutating func append(_ note: CommitNote) {
        if newer.count >= countMax / 2 {
            older = newer
            newer = Commits(start: note.version - 1)
        }
        for change in note.cutChanges {
            var path = PathHash(note.database)
            for key in change.path.keys {
                newer.below[path.value] = note.version
                path.append(key)
            }
            newer.at[path.value] = note.version
            if let uid = note.uid, let after = change.after, change.isCreation {
                newer.creations[path.value(uid)] = Creation(version: note.version, byteCount: after.byteCount)
            }
        }
    }

    /// Whether a commit after `version` wrote at, above or below `path`; true also when that is no longer known.
    func contains(_ path: TreePath, of database: DatabaseID, after version: UInt64) -> Bool {
        if version < older.start { return true }
        func isAfter(_ found: UInt64?) -> Bool { found.map { $0 > version } ?? false }
        var hash = PathHash(database)
        for key in path.keys {
            if isAfter(newer.at[hash.value]) || isAfter(older.at[hash.value]) { return true }
            hash.append(key)
        }
        return [newer, older].contains { isAfter($0.at[hash.value]) || isAfter($0.below[hash.value]) }
    }

    /// The newest commit in which this user put a node at `path` where there was none; nil when it is not known.
    func creation(at path: TreePath, of database: DatabaseID, by uid: String) -> Creation? {
        var hash = PathHash(database)
        for key in path.keys { hash.append(key) }
        let value = hash.value(uid)
        return newer.creations[value] ?? older.creations[value]
    }
}

extension PathChange {
    /// Whether it put a node where there was none.
    var isCreation: Bool { if case .empty? = before, !path.isPriority { after?.isEmpty == false } else { false } }
}

/// The hash of a path that grows key by key.
private struct PathHash {
    private var hasher = Hasher()

    init(_ database: DatabaseID) { hasher.combine(database) }

    mutating func append(_ key: TreeKey) { hasher.combine(key) }

    var value: Int { hasher.finalized }

    func value(_ uid: String) -> Int {
        var copy = hasher
        copy.combine(uid)
        return copy.finalized
    }
}

extension Hasher {
    fileprivate var finalized: Int {
        let copy = self
        return copy.finalize()
    }
}
