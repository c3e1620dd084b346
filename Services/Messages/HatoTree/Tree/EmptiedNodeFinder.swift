import HatoModel

/// Determines which nodes lose their last child by a write, from the deepest upwards: a node vanishes when everything
/// in it is removed or vanishes.
struct EmptiedNodeFinder {
    /// Keys of the ancestors of removed nodes that have nothing left.
    private(set) var vanished: Set<[UInt8]> = []

    private let reader: any TreeReader
    private let codec: TreeKeyCodec
    /// Keys of removed and vanished nodes, in order.
    private var gone: SortedKeys
    /// Keys of nodes that the write puts, in order.
    private let kept: SortedKeys

    /// A node that lost a child.
    private struct Candidate {
        var path: TreePath
        /// The key of one of the children it lost.
        var lostChild: [UInt8]
    }

    /// - Parameter changes: those of nodes, not of priorities.
    init(_ changes: [PathChange], reader: any TreeReader, codec: TreeKeyCodec) throws {
        self.reader = reader
        self.codec = codec
        let removed = changes.filter { $0.after?.isEmpty == true && !$0.path.isRoot }.map(\.path)
        kept = SortedKeys(changes.filter { $0.after?.isEmpty == false }.map { codec.key(of: $0.path) })
        gone = SortedKeys(removed.map { codec.key(of: $0) })
        try survey(removed)
    }

    /// The depth of the deepest ancestor of a removed node that still has children; 0 also when the root has none.
    func remainingDepth(above path: TreePath) -> Int {
        let encodedPath = EncodedPath(path, codec)
        var depth = max(path.depth - 1, 0)
        while depth > 0, vanished.contains(Array(encodedPath.key[..<encodedPath.ends[depth]])) { depth -= 1 }
        return depth
    }

    private mutating func survey(_ removed: [TreePath]) throws {
        var candidates: [Int: [[UInt8]: Candidate]] = [:]
        for path in removed { candidate(above: path, in: &candidates) }
        for depth in (0..<TreeLimits.depthMax).reversed() {
            let emptied = try (candidates[depth] ?? [:]).filter { try !hasRemainder($0.key, $0.value) }
            guard !emptied.isEmpty else { continue }
            for (node, candidate) in emptied {
                vanished.insert(node)
                if depth > 0 { self.candidate(above: candidate.path, in: &candidates) }
            }
            gone.add(emptied.keys)
        }
    }

    private func candidate(above path: TreePath, in candidates: inout [Int: [[UInt8]: Candidate]]) {
        let parent = path.prefix(path.depth - 1)
        candidates[parent.depth, default: [:]][codec.key(of: parent)] = Candidate(
            path: parent, lostChild: codec.key(of: path))
    }

    private func hasRemainder(_ node: [UInt8], _ candidate: Candidate) throws -> Bool {
        if kept.first(beginningWith: node) != nil { return true }
        // After the lost child first: where old children are removed one by one, the tombstones of the others are
        // before it.
        if let lower = TreeKeyCodec.upperBound(of: candidate.lostChild),
            try findsRow(lower: lower, upper: TreeKeyCodec.upperBound(of: node), reverse: false)
        {
            return true
        }
        let firstChild = node + [TreeKeyCodec.priorityMark + 1]
        return try findsRow(lower: firstChild, upper: candidate.lostChild, reverse: true)
    }

    /// Whether the range has a row that does not belong to a removed or vanished node.
    private func findsRow(lower: [UInt8], upper: [UInt8]?, reverse: Bool) throws -> Bool {
        var found = false
        try reader.scan(lower: lower, upper: upper, reverse: reverse) { row, _ in
            guard let node = goneNode(above: row.withUnsafeBufferPointer { Array($0) }) else {
                found = true
                return .stop
            }
            if reverse { return row.count == node.count ? .next : .seek(node) }
            return TreeKeyCodec.upperBound(of: node).map { .seek($0) } ?? .stop
        }
        return found
    }

    /// The removed or vanished node that a row belongs to. These may contain each other (a vanished node contains the
    /// removed ones), so every ancestor of the row is looked up.
    private func goneNode(above row: [UInt8]) -> [UInt8]? {
        var end = codec.prefix.count
        while end < row.count, let next = TreeKeyCodec.endOfKey(in: row.span, from: end) {
            if contains(row[..<next]) { return Array(row[..<next]) }
            end = next
            if end < row.count, row[end] == TreeKeyCodec.priorityMark { break }
        }
        return nil
    }

    private func contains(_ key: ArraySlice<UInt8>) -> Bool {
        let index = gone.lowerBound(of: key)
        return index < gone.keys.count && gone.keys[index].elementsEqual(key)
    }
}

/// Sorted keys of rows that can be searched by prefix: one write may have many paths.
struct SortedKeys {
    private(set) var keys: [[UInt8]]

    init(_ keys: [[UInt8]]) { self.keys = keys.sorted { $0.lexicographicallyPrecedes($1) } }

    mutating func add(_ more: some Sequence<[UInt8]>) { self = SortedKeys(keys + more) }

    /// The index of the first key that begins with `prefix`.
    func first(beginningWith prefix: [UInt8]) -> Int? {
        let index = lowerBound(of: prefix)
        return index < keys.count && keys[index].starts(with: prefix) ? index : nil
    }

    /// The number of keys that begin with `prefix`; 2 means two or more.
    func countOfTwo(beginningWith prefix: [UInt8]) -> Int {
        guard let first = first(beginningWith: prefix) else { return 0 }
        return first + 1 < keys.count && keys[first + 1].starts(with: prefix) ? 2 : 1
    }

    func lowerBound(of key: some Collection<UInt8>) -> Int {
        var low = 0
        var high = keys.count
        while low < high {
            let middle = (low + high) / 2
            if keys[middle].lexicographicallyPrecedes(key) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
