import HatoModel
import HatoTree

/// Which paths were written by recent commits, for writes that ask for it in their turn. Bounded, whatever the commits
/// wrote: it holds hashes of paths, and of the older half of the commits nothing once it is full.
///
/// Two paths with one hash are taken for the same path: a write is then refused that need not be. The hashes differ
/// with every process, so no client can look for such paths.
struct WrittenPaths {
    private struct Commits {
        /// All commits after this version are here or in the next half.
        var start: UInt64
        /// The newest version that wrote a path, that wrote below it, or that created a node.
        var versions: HashedVersions

        init(start: UInt64, countMax: Int) {
            self.start = start
            versions = HashedVersions(countMax: countMax, newest: start)
        }
    }

    private var older: Commits
    private var newer: Commits
    private let halfMax: Int
    /// Hashes of commits that are being noted, which are not in `newer` yet.
    private var gathered: [(hash: UInt64, version: UInt64)] = []
    /// Where the last change is among them that wrote below the node at each depth: the next change has often the same
    /// nodes above it, of which only its own version is noted then.
    private var lastBelow: [Int] = []
    private let seed = UInt64.random(in: .min ... .max)

    /// - Parameters:
    ///   - start: commits up to this version are not known.
    ///   - countMax: how many hashes it holds; about seven of each push.
    init(start: UInt64, countMax: Int = 32_768) {
        halfMax = max(1, countMax / 2)
        older = Commits(start: start, countMax: halfMax)
        newer = older
    }

    /// So many hashes are set together, about.
    private static let gatheredMax = 1_024

    /// Notes commits, in the order of their versions; those that changed no tree need not be among them.
    mutating func append(_ notes: [CommitNote]) {
        for note in notes {
            // A span copies no change.
            let cut = note.cutChanges
            let changes = cut.span
            for index in changes.indices {
                gather(changes[index].path, createdByteCount: changes[index].createdByteCount, of: note)
                if gathered.count >= Self.gatheredMax { moveGathered() }
            }
        }
        moveGathered()
    }

    private mutating func moveGathered() {
        for (hash, version) in gathered {
            if newer.versions.isFull(at: version) {
                older = newer
                newer = Commits(start: older.versions.newest, countMax: halfMax)
            }
            newer.versions.set(hash, version)
        }
        gathered.removeAll(keepingCapacity: gathered.count <= 2 * Self.gatheredMax)
        lastBelow.removeAll(keepingCapacity: true)
    }

    private mutating func gather(_ path: TreePath, createdByteCount: Int?, of note: CommitNote) {
        var hash = PathHash(seed, note.database)
        for depth in path.keys.indices {
            gatherBelow(hash.below, depth, note.version)
            hash.append(path.keys[depth].text)
        }
        gathered.append((hash.at, note.version))
        if let uid = note.uid, let createdByteCount {
            let creation = hash.creation(by: uid)
            gathered.append((creation.any, note.version))
            gathered.append((creation.of(createdByteCount), note.version))
        }
    }

    private mutating func gatherBelow(_ hash: UInt64, _ depth: Int, _ version: UInt64) {
        if depth < lastBelow.count {
            if gathered[lastBelow[depth]].hash == hash { return gathered[lastBelow[depth]].version = version }
            lastBelow[depth] = gathered.count
        } else {
            lastBelow.append(gathered.count)
        }
        gathered.append((hash, version))
    }

    /// Whether a commit after `version` wrote at, above or below `path`; true also when that is no longer known.
    func contains(_ path: TreePath, of database: DatabaseID, after version: UInt64) -> Bool {
        if version < older.start { return true }
        var hash = PathHash(seed, database)
        for key in path.keys {
            if isAfter(version, hash.at) { return true }
            hash.append(key.text)
        }
        return isAfter(version, hash.at) || isAfter(version, hash.below)
    }

    private func isAfter(_ version: UInt64, _ hash: UInt64) -> Bool {
        newest(hash).map { $0 > version } ?? false
    }

    /// The version of the newest commit in which this user put a node at `path` where there was none; nil when it is
    /// not known.
    ///
    /// - Parameter byteCount: of the node (`TreeNode.byteCount`); nil: any.
    func creation(at path: TreePath, of database: DatabaseID, by uid: String, byteCount: Int? = nil) -> UInt64? {
        var hash = PathHash(seed, database)
        for key in path.keys { hash.append(key.text) }
        let creation = hash.creation(by: uid)
        let newest = newest(creation.any)
        guard let byteCount else { return newest }
        // The node may have been removed, and created again with another size.
        return self.newest(creation.of(byteCount)) == newest ? newest : nil
    }

    private func newest(_ hash: UInt64) -> UInt64? { newer.versions[hash] ?? older.versions[hash] }
}

/// The newest version for each of many hashes (`PathHash`).
///
/// A hash table small enough for a processor's cache: each write sets a few hashes in it. A slot has eight bytes: the
/// mark of a hash, which is not 0, and the lower half of a version.
private struct HashedVersions {
    private let countMax: Int
    private var slots: [UInt64] = []
    private var count = 0
    private let oldest: UInt64
    /// The newest version that was set.
    private(set) var newest: UInt64

    init(countMax: Int, newest: UInt64) {
        self.countMax = countMax
        self.newest = newest
        oldest = newest
    }

    /// Versions of a table are no further apart.
    private static let spanMax: UInt64 = 1 << 31

    /// Whether nothing of this version may be set.
    func isFull(at version: UInt64) -> Bool { count >= countMax || version > oldest && version - oldest > Self.spanMax }

    subscript(hash: UInt64) -> UInt64? {
        guard !slots.isEmpty else { return nil }
        let slot = slots[index(of: hash)]
        guard slot != 0 else { return nil }
        return newest &- UInt64(UInt32(truncatingIfNeeded: newest) &- UInt32(truncatingIfNeeded: slot))
    }

    /// - Precondition: It is not full.
    mutating func set(_ hash: UInt64, _ version: UInt64) {
        // Three eighths of the slots stay free, so that searches are short.
        if slots.isEmpty { slots = Array(repeating: 0, count: (countMax / 5 * 8 + 8).roundedUpToPowerOfTwo) }
        newest = max(newest, version)
        let index = index(of: hash)
        if slots[index] == 0 { count += 1 }
        slots[index] = PathHash.mark(of: hash) | UInt64(UInt32(truncatingIfNeeded: version))
    }

    /// The slot of a hash, or the free one where it belongs.
    private func index(of hash: UInt64) -> Int {
        let mask = slots.count &- 1
        var index = Int(truncatingIfNeeded: hash) & mask
        while true {
            let slot = slots[index]
            if slot == 0 || PathHash.mark(of: slot) == PathHash.mark(of: hash) { return index }
            index = (index &+ 1) & mask
        }
    }
}

extension Int {
    fileprivate var roundedUpToPowerOfTwo: Int { 1 << (Int.bitWidth - (self - 1).leadingZeroBitCount) }
}

extension PathChange {
    /// Whether it put a node where there was none.
    var isCreation: Bool { if case .empty? = before, !path.isPriority { after?.isEmpty == false } else { false } }

    /// The byte count of a node that it put where there was none.
    fileprivate var createdByteCount: Int? { isCreation ? after?.byteCount : nil }
}

/// The hash of a path that grows key by key: each word of eight bytes is folded in by a multiplication with a random
/// factor of this process.
///
/// The lower half of the hashes of a path is where they belong in a table: next to one another, since they are set
/// together. The upper half is the mark that distinguishes them.
private struct PathHash {
    private let seed: UInt64
    private var state: UInt64

    init(_ seed: UInt64, _ database: DatabaseID) {
        self.seed = seed
        state = Self.folded(seed ^ UInt64(database.rawValue), 0x9E37_79B9_7F4A_7C15)
    }

    mutating func append(_ text: String) {
        let bytes = text.utf8.span.bytes
        var offset = 0
        while offset < bytes.byteCount {
            var word: UInt64 = 0
            let end = min(offset + 8, bytes.byteCount)
            if end - offset == 8 {
                word = bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
            } else {
                for index in offset..<end {
                    word = word << 8 | UInt64(bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self))
                }
            }
            append(word)
            offset = end
        }
        append(UInt64(truncatingIfNeeded: bytes.byteCount))
    }

    private mutating func append(_ word: UInt64) { state = Self.folded(state ^ word, seed | 1) }

    private static func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low &+ left
    }

    /// Never 0.
    static func mark(of hash: UInt64) -> UInt64 { hash & 0xFFFF_FFFF_0000_0000 }

    private func hash(marked mark: UInt64) -> UInt64 { Self.mark(of: mark) | 1 << 32 | state & 0xFFFF_FFFF }

    /// Of a write at the path, and below it.
    var at: UInt64 { hash(marked: Self.folded(state ^ 1, seed | 1)) }
    var below: UInt64 { hash(marked: Self.folded(state ^ 2, seed | 1)) }

    /// Of a node that a user created at the path.
    func creation(by uid: String) -> Creation {
        var created = self
        created.append(uid)
        return Creation(path: self, created: created)
    }

    struct Creation {
        fileprivate let path: PathHash
        fileprivate let created: PathHash

        /// Of a node of any size.
        var any: UInt64 { path.hash(marked: folded(created)) }

        func of(_ byteCount: Int) -> UInt64 {
            var created = created
            created.append(UInt64(truncatingIfNeeded: byteCount))
            return path.hash(marked: folded(created))
        }

        private func folded(_ hash: PathHash) -> UInt64 { PathHash.folded(hash.state ^ 3, hash.seed | 1) }
    }
}
