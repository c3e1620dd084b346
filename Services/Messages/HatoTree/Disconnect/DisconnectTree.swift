public import HatoModel

/// The writes for the end of a connection: a sparse tree of entries (spec realtime-database §8.7).
///
/// - `set` at a path drops the entries at and below it. If there is an entry above, the value is written into that
///   entry, so that the later call wins and nothing is written twice.
/// - `cancel` drops the entries at and below a path. An entry above is split: its values for the siblings stay, each
///   sibling in an entry of its own. A removal has no values for siblings, so it is dropped as a whole.
/// - Every entry has an owner, whose rights are checked when it is written. Nothing is ever written into an entry of
///   another owner: it becomes an entry below that one, and is written after it.
///
/// A caller that also stores the entries gets a small call into a large entry as an amendment to the stored entry, and
/// the whole entry again only when its amendments have become large. A call into an entry takes time by the depth of
/// its path, not by the size of the entry.
public struct DisconnectTree<Owner: Hashable & Sendable>: Sendable {
    private var root = SparseNode()
    private var lastAmendment: UInt64 = 0

    /// The amendments of an entry have at most this fraction of its bytes, so that they take little space besides it
    /// and it is returned again once for that many bytes.
    private static var amendedShare: Int { 4 }

    public init() {}

    /// Whether there is nothing to write.
    public var isEmpty: Bool { root.isEmpty }

    /// The number of entries.
    public var count: Int { root.total.entries }

    /// About the size of the entries in memory.
    public var byteCount: Int { root.total.bytes }

    /// Returns what changed about which entries, for a caller that also stores them.
    @discardableResult
    public mutating func set(_ write: DeferredWrite, by owner: Owner) -> [DisconnectStep<Owner>] {
        let path = write.path
        var steps: [DisconnectStep<Owner>] = []
        root.change(at: path.keys[...]) { node in
            steps = node.entries(at: path).map(\.removal)
            if path.isPriority { node.priority = nil } else { node = SparseNode() }
        }
        guard let cover = root.cover(of: path), cover.owner == owner else {
            let entry = DisconnectEntry(write: write, owner: owner)
            insert(entry)
            return steps + [.added(entry)]
        }
        let entryPath = path.prefix(cover.depth)
        let amendment = DisconnectAmendment(number: lastAmendment + 1, entryPath: entryPath, write: write)
        root.change(at: entryPath.keys[...]) { node in
            node.entry?.amend(amendment)
        }
        if let kept = keepAmended(at: entryPath) {
            steps += kept
        } else {
            lastAmendment = amendment.number
            steps.append(.amended(amendment))
        }
        return steps
    }

    /// Keeps an entry as a whole whose last amendment was one too many. Returns nil while its amendments are few.
    private mutating func keepAmended(at path: TreePath) -> [DisconnectStep<Owner>]? {
        var steps: [DisconnectStep<Owner>]?
        root.change(at: path.keys[...]) { node in
            guard let entry = node.entry, entry.amendedBytes > entry.node.byteCount / Self.amendedShare else { return }
            let removal = DisconnectStep<Owner>.removed(
                path, entry.owner, amendments: Array(entry.amendments.dropLast()))
            node.entry?.amendments = []
            node.entry?.amendedBytes = 0
            steps = [removal] + (node.entry.map { [.added($0.kept(at: path))] } ?? [])
        }
        return steps
    }

    /// - Parameter path: of a node.
    @discardableResult
    public mutating func cancel(at path: TreePath) -> [DisconnectStep<Owner>] {
        // Splitting an entry changes nothing outside of it; an entry that stays is not changed.
        let scope = path.prefix(root.depthOfFirstEntry(on: path) ?? path.depth)
        let before = entries(atOrBelow: scope)
        root.cancel(at: path.keys[...])
        let after = entries(atOrBelow: scope)
        let (old, new) = (Set(before.map(\.write.path)), Set(after.map(\.write.path)))
        return before.filter { !new.contains($0.write.path) }.map(\.removal)
            + after.filter { !old.contains($0.write.path) }.map { .added($0) }
    }

    /// At least how many entries there would be after `cancel(at:)`: an entry above the path becomes one for each of
    /// its children. Takes time by the depth of the path, where the split itself takes time by the number of children.
    public func entriesMin(afterCancelAt path: TreePath) -> Int {
        var node: SparseNode? = root
        var written: DeferredNode?
        var count = 0
        for key in path.keys {
            // What is below an entry is of other owners: those entries stay.
            written = node?.entry?.node ?? written
            count += max(0, (written?.children.count ?? 0) - 1 - (node?.childCount ?? 0))
            written = written?.children[key]
            node = node?.child(key)
        }
        return count
    }

    /// Every entry.
    public var entries: [DisconnectEntry<Owner>] { entries(atOrBelow: .root) }

    /// Restores a tree from the entries and the amendments that it has returned.
    public init(entries: [DisconnectEntry<Owner>], amendments: [DisconnectAmendment] = []) {
        for entry in entries { insert(entry) }
        for amendment in amendments.sorted(by: { $0.number < $1.number }) {
            root.change(at: amendment.entryPath.keys[...]) { node in node.entry?.amend(amendment) }
            lastAmendment = amendment.number
        }
    }

    private func entries(atOrBelow path: TreePath) -> [DisconnectEntry<Owner>] {
        root.node(at: path.keys[...])?.entries(at: path) ?? []
    }

    private mutating func insert(_ new: DisconnectEntry<Owner>) {
        let path = new.write.path
        let pathBytes = path.keys.reduce(0) { $0 + $1.text.utf8.count }
        let entry = Entry(node: new.write.node, owner: new.owner, pathBytes: pathBytes)
        root.change(at: path.keys[...]) { node in
            if path.isPriority { node.priority = entry } else { node.entry = entry }
        }
    }

    /// The writes, batch after batch: the paths of one batch are not above each other, and a batch precedes the writes
    /// of other owners below its paths. Usually there is one batch.
    public var batches: [DisconnectBatch<Owner>] {
        var gathered = BatchBuilder()
        root.gather(into: &gathered, keys: [], layer: 0)
        return gathered.batches.sorted { $0.layer < $1.layer }.map(\.batch)
    }
}

/// The write of one owner at one path.
public struct DisconnectEntry<Owner: Hashable & Sendable>: Sendable {
    public var write: DeferredWrite
    /// The owner of the write.
    public var owner: Owner
    /// The numbers of the amendments that `write` includes.
    public fileprivate(set) var amendments: [UInt64] = []

    public init(write: DeferredWrite, owner: Owner) {
        self.write = write
        self.owner = owner
    }

    /// The removal of the write and its amendments.
    public var removal: DisconnectStep<Owner> { .removed(write.path, owner, amendments: amendments) }
}

/// A call into an entry, for a caller that stores the entry without it.
public struct DisconnectAmendment: Sendable, Hashable {
    /// Rises from call to call.
    public var number: UInt64
    /// The path of the entry.
    public var entryPath: TreePath
    /// A write below the entry, or of its priority.
    public var write: DeferredWrite

    public init(number: UInt64, entryPath: TreePath, write: DeferredWrite) {
        self.number = number
        self.entryPath = entryPath
        self.write = write
    }

    fileprivate var byteCount: Int {
        write.node.byteCount + write.path.keys.reduce(0) { $0 + $1.text.utf8.count }
    }
}

/// The change of one entry by a call. An entry that is returned again is removed and added.
public enum DisconnectStep<Owner: Hashable & Sendable>: Sendable {
    case removed(TreePath, Owner, amendments: [UInt64])
    case added(DisconnectEntry<Owner>)
    case amended(DisconnectAmendment)
}

/// Writes that are made together, by one owner.
public struct DisconnectBatch<Owner: Hashable & Sendable>: Sendable {
    /// The owner of the writes.
    public let owner: Owner
    /// The writes in the order in which they are made.
    public var writes: [DeferredWrite]
    /// Amendments by the path of a write.
    fileprivate var amendments: [TreePath: [UInt64]]

    fileprivate init(_ owner: Owner, _ writes: [DeferredWrite], _ amendments: [TreePath: [UInt64]]) {
        self.owner = owner
        self.writes = writes
        self.amendments = amendments
    }

    /// The removals when all of it is written.
    public var removals: [DisconnectStep<Owner>] {
        writes.map { .removed($0.path, owner, amendments: amendments[$0.path] ?? []) }
    }

    /// All writes in one commit.
    public var mutation: Mutation {
        if writes.count == 1 { return .set(writes[0].node.json, at: writes[0].path) }
        let members = writes.map { JSONObject.Member(String($0.path.text.dropFirst()), $0.node.json) }
        return .update(JSONObject(uniqueMembers: members), at: .root)
    }

    /// Its two halves; none when it has a single write. A batch that is refused as a whole is tried again by halves,
    /// until each refused write is alone.
    public var halves: [DisconnectBatch] {
        guard writes.count > 1 else { return [] }
        let middle = writes.count / 2
        return [writes[..<middle], writes[middle...]].map { DisconnectBatch(owner, Array($0), amendments) }
    }
}

// MARK: - The tree

extension DisconnectTree {
    private struct Total: Sendable {
        var entries = 0
        var bytes = 0

        static func += (left: inout Total, right: Total) {
            left.entries += right.entries
            left.bytes += right.bytes
        }

        static func -= (left: inout Total, right: Total) {
            left.entries -= right.entries
            left.bytes -= right.bytes
        }
    }

    private struct Entry: Sendable {
        var node: DeferredNode
        var owner: Owner
        var pathBytes: Int
        var amendments: [UInt64] = []
        var amendedBytes = 0

        mutating func amend(_ amendment: DisconnectAmendment) {
            guard let inner = amendment.write.path.relative(to: amendment.entryPath) else { return }
            node.set(amendment.write.node, at: inner)
            amendments.append(amendment.number)
            amendedBytes += amendment.byteCount
        }

        var total: Total { Total(entries: 1, bytes: pathBytes + node.byteCount) }

        func kept(at path: TreePath) -> DisconnectEntry<Owner> {
            var entry = DisconnectEntry(write: DeferredWrite(path: path, node: node), owner: owner)
            entry.amendments = amendments
            return entry
        }
    }

    private struct CoveringEntry {
        var depth: Int
        var owner: Owner
    }

    private struct BatchBuilder {
        var batches: [(layer: Int, batch: DisconnectBatch<Owner>)] = []
        private var indexes: [Int: [Owner: Int]] = [:]

        mutating func append(_ entry: DisconnectEntry<Owner>, layer: Int) {
            let (write, owner) = (entry.write, entry.owner)
            let index: Int
            if let known = indexes[layer]?[owner] {
                index = known
            } else {
                index = batches.count
                indexes[layer, default: [:]][owner] = index
                batches.append((layer, DisconnectBatch(owner, [], [:])))
            }
            batches[index].batch.writes.append(write)
            if !entry.amendments.isEmpty { batches[index].batch.amendments[write.path] = entry.amendments }
        }
    }

    /// A node of the sparse tree. Below an entry, and beside it as its priority, are only entries of other owners.
    private struct SparseNode: Sendable {
        var entry: Entry?
        var priority: Entry?
        private var children: [TreeKey: SparseNode] = [:]
        private var below = Total()

        var childCount: Int { children.count }

        func child(_ key: TreeKey) -> SparseNode? { children[key] }

        var isEmpty: Bool { entry == nil && priority == nil && children.isEmpty }

        /// What one takes in memory beside its entries and its key: a deep path of short keys is mostly that.
        private static var bytes: Int { 2 * MemoryLayout<SparseNode>.stride }

        var total: Total {
            var total = below
            if !isEmpty { total.bytes += Self.bytes }
            if let entry { total += entry.total }
            if let priority { total += priority.total }
            return total
        }

        /// The nearest entry at or above a path.
        func cover(of path: TreePath) -> CoveringEntry? {
            var node = self
            var cover: CoveringEntry?
            for depth in 0...path.depth {
                if let entry = node.entry { cover = CoveringEntry(depth: depth, owner: entry.owner) }
                guard depth < path.depth, let child = node.children[path.keys[depth]] else { break }
                node = child
            }
            return cover
        }

        /// The depth of the first node on `path` with an entry.
        func depthOfFirstEntry(on path: TreePath) -> Int? {
            var node = self
            for depth in 0...path.depth {
                if node.entry != nil { return depth }
                guard depth < path.depth, let child = node.children[path.keys[depth]] else { return nil }
                node = child
            }
            return nil
        }

        func node(at keys: ArraySlice<TreeKey>) -> SparseNode? {
            guard let key = keys.first else { return self }
            return children[key]?.node(at: keys.dropFirst())
        }

        /// The entries here and below; at a priority path, only that of the priority.
        func entries(at path: TreePath) -> [DisconnectEntry<Owner>] {
            var entries: [DisconnectEntry<Owner>] = []
            if let entry, !path.isPriority { entries.append(entry.kept(at: path)) }
            if let priority {
                entries.append(priority.kept(at: TreePath(uncheckedKeys: path.keys, isPriority: true)))
            }
            guard !path.isPriority else { return entries }
            for (key, child) in children {
                entries += child.entries(at: TreePath(uncheckedKeys: path.keys + [key]))
            }
            return entries
        }

        mutating func change(at keys: ArraySlice<TreeKey>, _ body: (inout SparseNode) -> Void) {
            guard let key = keys.first else { return body(&self) }
            // Removed while it changes, so that it is not copied.
            var child = children.removeValue(forKey: key) ?? SparseNode()
            below -= child.total
            child.change(at: keys.dropFirst(), body)
            below += child.total
            if !child.isEmpty { children[key] = child }
        }

        mutating func cancel(at keys: ArraySlice<TreeKey>) {
            guard let key = keys.first else {
                self = SparseNode()
                return
            }
            takeApart()
            change(at: [key]) { child in child.cancel(at: keys.dropFirst()) }
        }

        /// Replaces an entry by one for each of its children. An existing entry of another owner came later, so it
        /// stays.
        private mutating func takeApart() {
            guard let entry, !entry.node.isLeaf else { return }
            self.entry = nil
            for (key, node) in entry.node.children {
                change(at: [key]) { child in
                    guard child.entry == nil else { return }
                    let pathBytes = entry.pathBytes + key.text.utf8.count
                    child.entry = Entry(node: node, owner: entry.owner, pathBytes: pathBytes)
                }
            }
        }

        func gather(into gathered: inout BatchBuilder, keys: [TreeKey], layer: Int) {
            var layer = layer
            if let entry {
                gathered.append(entry.kept(at: TreePath(uncheckedKeys: keys)), layer: layer)
                layer += 1
            }
            for (key, child) in children.sorted(by: { $0.key < $1.key }) {
                child.gather(into: &gathered, keys: keys + [key], layer: layer)
            }
            if let priority {
                gathered.append(priority.kept(at: TreePath(uncheckedKeys: keys, isPriority: true)), layer: layer)
            }
        }
    }
}
