public import HatoModel

/// The paths of one topic that recent commits changed, each with the newest version that changed it: what listeners
/// lack, at whatever position they are. It is kept once for all of them, and a commit is noted once.
///
/// It holds the newest `pathsMax` paths, and up to twice as many entries before it is shortened. A listener at an older
/// position lacks everything.
public struct ChangedPaths: Sendable, Hashable {
    /// The maximum number of paths whose values a listener is sent one by one; beyond it the whole value is sent.
    public static let pathsMax = 256
    /// The maximum memory of the paths, in bytes.
    public static let bytesMax = 64 << 10

    /// What a listener at some position lacks.
    public enum Missing: Sendable, Hashable {
        case nothing
        /// Some paths; the first of them to be changed was changed at this version. Two listeners with the same first
        /// version lack the same.
        case paths(first: UInt64)
        case everything
    }

    private struct Entry: Sendable, Hashable {
        var version: UInt64
        /// Nil when the path was changed again later.
        var path: TreePath?
    }

    private let path: TreePath
    private let hasQuery: Bool
    /// Every change after this version is known.
    public private(set) var start: UInt64
    /// In the order of versions.
    private var entries: [Entry] = []
    /// Where the entry of a path is.
    private var indexes: [TreePath: Int] = [:]
    var entryCount: Int { entries.count }
    /// The memory of the paths, in bytes, approximately.
    public private(set) var byteCount = 0

    /// - Parameters:
    ///   - path: what is listened to.
    ///   - hasQuery: whether a query selects from it; then every change counts as a change of everything.
    ///   - version: changes after it are noted.
    public init(of path: TreePath, hasQuery: Bool = false, after version: UInt64) {
        self.path = path
        self.hasQuery = hasQuery
        start = version
    }

    // MARK: Changes

    /// Notes the changes of a commit. Commits come in the order of their versions.
    public mutating func add(_ changes: [PathChange], at version: UInt64) {
        for change in changes {
            // All of them are forgotten.
            if start >= version { return }
            let settled = change.settledPath
            if settled.isAtOrAbove(path) || hasQuery && path.isAtOrAbove(settled) {
                forget(through: version)
            } else if path.isAtOrAbove(settled) {
                add(settled, at: version)
            }
        }
    }

    /// Forgets which paths were changed up to a version: listeners at older positions lack everything.
    public mutating func forget(through version: UInt64) {
        guard version > start else { return }
        start = version
        rebuild(entries.filter { $0.version > version })
    }

    /// Adds what an earlier part of the history changed.
    ///
    /// - Parameters:
    ///   - earlier: of the same path.
    ///   - end: the last version that was looked at for it.
    public mutating func prepend(_ earlier: ChangedPaths, through end: UInt64) {
        guard earlier.start < start, end >= start else { return }
        let own = entries
        let ownStart = start
        start = earlier.start
        rebuild(earlier.entries.filter { $0.version <= ownStart } + own)
        shorten()
    }

    private mutating func add(_ path: TreePath, at version: UInt64) {
        if let index = indexes[path] {
            guard entries[index].version < version else { return }
            entries[index].path = nil
        } else {
            byteCount += Self.byteCount(of: path)
        }
        indexes[path] = entries.count
        entries.append(Entry(version: version, path: path))
        if entries.count > 2 * Self.pathsMax || byteCount > Self.bytesMax { shorten() }
    }

    /// Drops entries that later ones replace, then the oldest, until it is well within its limits.
    private mutating func shorten() {
        var kept = entries.filter { $0.path != nil }
        var bytes = byteCount
        let bytesMax = byteCount > Self.bytesMax ? Self.bytesMax / 2 : Self.bytesMax
        var dropped = 0
        while kept.count - dropped > Self.pathsMax || bytes > bytesMax, dropped < kept.count {
            bytes -= kept[dropped].path.map(Self.byteCount) ?? 0
            dropped += 1
        }
        if dropped > 0 {
            start = max(start, kept[dropped - 1].version)
            kept.removeAll { $0.version <= start }
        }
        rebuild(kept)
    }

    private mutating func rebuild(_ kept: [Entry]) {
        entries = []
        indexes = [:]
        byteCount = 0
        for entry in kept {
            guard let path = entry.path else { continue }
            if let index = indexes[path] {
                entries[index].path = nil
            } else {
                byteCount += Self.byteCount(of: path)
            }
            indexes[path] = entries.count
            entries.append(entry)
        }
    }

    private static func byteCount(of path: TreePath) -> Int {
        path.keys.reduce(128) { $0 + 32 + $1.text.utf8.count }
    }

    // MARK: Listeners

    /// What a listener lacks that has everything up to a position.
    public func missing(after position: UInt64) -> Missing {
        if position < start { return .everything }
        let first = entries[firstIndex(after: position)...].first { $0.path != nil }
        return first.map { .paths(first: $0.version) } ?? .nothing
    }

    /// The paths that were changed at a version or later.
    public func paths(from version: UInt64) -> MissedPaths {
        guard version > start else { return MissedPaths(of: path, nil) }
        let changed = Set(entries[firstIndex(after: version - 1)...].lazy.compactMap(\.path))
        return MissedPaths(of: path, changed.count > Self.pathsMax ? nil : changed)
    }

    private func firstIndex(after position: UInt64) -> Int {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = low + (high - low) / 2
            if entries[middle].version > position { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
