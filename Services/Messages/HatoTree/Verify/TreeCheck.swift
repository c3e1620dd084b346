public import HatoModel

/// A problem that a check of stored rows found, with its path if that can be read.
public struct RowFinding {
    /// The path of the node; nil when the problem concerns no single node.
    public var path: TreePath?
    /// The index; nil when the problem is in the tree itself.
    public var index: IndexDefinition?
    /// The problem as a sentence.
    public var problem: String
    /// Whether the problem is in an index and the tree is correct.
    public var isOfIndex: Bool

    init(_ problem: String, path: TreePath? = nil, index: IndexDefinition? = nil, isOfIndex: Bool = false) {
        self.problem = problem
        self.path = path
        self.index = index
        self.isOfIndex = isOfIndex || index != nil
    }
}

/// Checks the rows of one tree: each has a key and a value that a write can produce, no value has children, a packed
/// node has no other rows, no priority is without its node, and each priority has its row in the automatic index.
public struct TreeCheck {
    private let reader: any TreeReader
    private let codec: TreeKeyCodec
    private let indexCodec: IndexKeyCodec
    private let report: (RowFinding) -> Void

    /// - Parameter report: called with every finding, in the order of the rows.
    public init(
        _ reader: any TreeReader, codec: TreeKeyCodec, indexCodec: IndexKeyCodec,
        report: @escaping (RowFinding) -> Void
    ) {
        self.reader = reader
        self.codec = codec
        self.indexCodec = indexCodec
        self.report = report
    }

    /// The state of the check at a row.
    private struct Progress {
        /// The key of the last leaf.
        var leaf: [UInt8]?
        /// The key of the last packed node.
        var packed: [UInt8]?
        /// A priority whose node has not been visited yet; the bytes are its node's key.
        var priority: (node: [UInt8], path: TreePath)?
        var priorities = 0
    }

    /// Reads every row. Returns the number of priorities. Throws the errors of the reader.
    ///
    /// - Parameter advance: called for every row.
    public func run(advance: () throws -> Void) throws -> Int {
        var progress = Progress()
        try reader.scan(
            lower: codec.prefix, upper: TreeKeyCodec.upperBound(of: codec.prefix), reverse: false
        ) { row, value in
            try advance()
            if PackedNode.isPacked(value) {
                try checkPacked(row, value, &progress)
            } else {
                if !isApart(row, progress) { progress.leaf = nil }
                try check(row, value, &progress)
            }
            return .next
        }
        settlePriority(&progress, before: nil)
        return progress.priorities
    }

    /// Checks the leaves of a packed node like rows of their own.
    private func checkPacked(_ row: Span<UInt8>, _ value: Span<UInt8>, _ progress: inout Progress) throws {
        _ = isApart(row, progress)
        let node = row.withUnsafeBufferPointer { Array($0) }
        progress.packed = node
        guard let leaves = try? PackedNode.leaves(in: value), leaves.count >= PackedNode.childrenMin else {
            return report(RowFinding("the values of the node cannot be read", path: codec.path(of: row)))
        }
        var last: [UInt8] = []
        for leaf in leaves {
            let key = value.extracting(leaf.key).withUnsafeBufferPointer { Array($0) }
            if !last.lexicographicallyPrecedes(key) {
                report(RowFinding("the values of the node are out of order", path: codec.path(of: row)))
            }
            last = key
            try check((node + key).span, value.extracting(leaf.value), &progress)
        }
    }

    /// A packed node may have no other row.
    private func isApart(_ row: Span<UInt8>, _ progress: Progress) -> Bool {
        guard let packed = progress.packed, row.begins(with: packed.span) else { return true }
        report(RowFinding("there is a row of a node that is one row", path: codec.path(of: row)))
        return false
    }

    private func check(_ row: Span<UInt8>, _ value: Span<UInt8>, _ progress: inout Progress) throws {
        settlePriority(&progress, before: row)
        guard let path = codec.path(of: row), codec.key(of: path).span.isEqual(to: row) else {
            return report(RowFinding("a row has a key that is no path: \(row.hexText)"))
        }
        let leaf: TreeLeaf
        do {
            leaf = try TreeLeafCodec.decode(value)
        } catch {
            return report(RowFinding("the value cannot be read: it has \(value.count) bytes", path: path))
        }
        if path.isPriority {
            try checkPriority(leaf, at: path, row, &progress)
        } else {
            if let above = progress.leaf, row.begins(with: above.span) {
                report(RowFinding("there is a value above this one", path: path))
            }
            progress.leaf = row.withUnsafeBufferPointer { Array($0) }
        }
    }

    private func checkPriority(
        _ leaf: TreeLeaf, at path: TreePath, _ row: Span<UInt8>, _ progress: inout Progress
    ) throws {
        let node = row.extracting(0..<row.count - 1)
        if progress.leaf.map({ !$0.span.isEqual(to: node) }) ?? true {
            progress.priority = (node.withUnsafeBufferPointer { Array($0) }, path)
        }
        guard let priority = TreePriority(leaf) else {
            return report(RowFinding("the priority is neither a number nor a string", path: path))
        }
        // The root has no parent: its priority is in no index.
        guard let key = path.keys.last else { return }
        progress.priorities += 1
        let collection = indexCodec.prefix(of: IndexKeyCodec.priorities, collection: path.keys.dropLast())
        if try reader.get(IndexKeyCodec.row(collection, SortKey(SortValue(priority), key)).span) == nil {
            report(RowFinding("the priority has no row in the index of priorities", path: path, isOfIndex: true))
        }
    }

    /// A priority precedes the rows below its node.
    private func settlePriority(_ progress: inout Progress, before row: Span<UInt8>?) {
        guard let priority = progress.priority else { return }
        progress.priority = nil
        if let row, row.begins(with: priority.node.span) { return }
        report(RowFinding("there is a priority, but no value", path: priority.path))
    }
}

extension Span<UInt8> {
    func isEqual(to other: Span<UInt8>) -> Bool { count == other.count && begins(with: other) }

    /// The first 64 bytes as hexadecimal digits.
    var hexText: String {
        var text = ""
        for index in 0..<Swift.min(count, 64) {
            text += String(self[index] >> 4, radix: 16) + String(self[index] & 15, radix: 16)
        }
        return count > 64 ? text + "…" : text
    }
}
