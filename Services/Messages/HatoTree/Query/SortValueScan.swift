import HatoModel

/// Finds the sort keys of all children of a collection for a query without an index, in one scan of the collection's
/// rows: a look-up for each child takes several times as long.
struct SortValueScan {
    /// The prefix of the rows of the collection.
    private let base: [UInt8]
    /// What follows a child's key in the row of its sort value: nothing when a query orders by value; nil when it
    /// orders by key.
    private let target: [UInt8]?
    /// The child whose rows are read: its key, the prefix of its rows, and that of the rows of its sort value.
    private var key: TreeKey?
    private var child: [UInt8] = []
    private var wanted: [UInt8] = []
    /// Whether its sort key has been found.
    private var isFound = false
    /// How many of its rows were stepped over since the scan began with it, found its sort key or went on by a seek.
    private var passed = 0

    init(of path: TreePath, by order: TreeQuery.Order, _ codec: TreeKeyCodec) {
        base = codec.key(of: path)
        switch order {
        case .key: target = nil
        case .value: target = []
        case .priority: target = [TreeKeyCodec.priorityMark]
        case .child(let path):
            var encoded: [UInt8] = []
            for key in path.keys { TreeKeyCodec.append(key, to: &encoded) }
            target = encoded
        }
    }

    /// Visits the sort key of each child, in the order of the children's keys.
    mutating func run(_ reader: TreeRows, _ visit: (SortKey) throws -> Void) throws {
        // Behind the collection's own row and its priority.
        let lower = base + [TreeKeyCodec.priorityMark + 1]
        try reader.scan(lower: lower, upper: TreeKeyCodec.upperBound(of: base), reverse: false) { row, value in
            if child.isEmpty || !row.begins(with: child.span) {
                try end(visit)
                try begin(row)
                if target == nil { try found(.null, visit) }
            }
            return try step(row, value, visit)
        }
        try end(visit)
    }

    /// The first row of a child.
    private mutating func begin(_ row: Span<UInt8>) throws {
        guard let end = TreeKeyCodec.endOfKey(in: row, from: base.count),
            let key = TreeKeyCodec.decode(row.extracting(base.count..<end))
        else { throw TreeError.corrupted("a row whose key cannot be read") }
        self.key = key
        child.removeAll(keepingCapacity: true)
        row.extracting(0..<end).withUnsafeBufferPointer { child.append(contentsOf: $0) }
        wanted.removeAll(keepingCapacity: true)
        wanted.append(contentsOf: child)
        if let target { wanted.append(contentsOf: target) }
        isFound = false
        passed = 0
    }

    /// The last row of a child was read. A child without a row of its sort value sorts as null.
    private mutating func end(_ visit: (SortKey) throws -> Void) throws {
        if !isFound { try found(.null, visit) }
    }

    private mutating func found(_ value: SortValue, _ visit: (SortKey) throws -> Void) throws {
        isFound = true
        passed = 0
        if let key { try visit(SortKey(value, key)) }
    }

    private mutating func step(
        _ row: Span<UInt8>, _ value: Span<UInt8>, _ visit: (SortKey) throws -> Void
    ) throws -> TreeScanStep {
        if !isFound {
            if row.begins(with: wanted.span) {
                // A node's own row comes before those of its descendants.
                let isLeaf = row.count == wanted.count
                try found(isLeaf ? .leaf(try TreeLeafCodec.decode(value)) : .object, visit)
                return .next
            }
            if row.isBehind(wanted.span) { try found(.null, visit) }
        }
        passed += 1
        guard passed >= NodeReader.rowsPassedMax else { return .next }
        passed = 0
        return isFound ? TreeKeyCodec.upperBound(of: child).map { .seek($0) } ?? .stop : .seek(wanted)
    }
}
