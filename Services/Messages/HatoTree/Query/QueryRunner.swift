public import HatoModel

/// Executes queries on the rows of one state of a database.
///
/// With an index it reads the index rows of the selected children and then those children, whatever the number of other
/// children.
public struct QueryRunner {
    let nodes: NodeReader
    let indexCodec: IndexKeyCodec
    let bytesMax: Int
    /// The cache of the starts of last rows; nil: none. One for each database.
    public var newest: NewestRows?

    /// - Parameter bytesMax: the limit of one result, as JSON.
    public init(_ reader: any TreeReader, codec: TreeKeyCodec, indexCodec: IndexKeyCodec, bytesMax: Int = .max) {
        self.init(NodeReader(reader, codec: codec), indexCodec: indexCodec, bytesMax: bytesMax)
    }

    /// The same on the rows of a reader of nodes.
    public init(_ nodes: NodeReader, indexCodec: IndexKeyCodec, bytesMax: Int = .max) {
        self.nodes = nodes
        self.indexCodec = indexCodec
        self.bytesMax = bytesMax
    }

    /// The children of `path` that the query selects, in query order.
    ///
    /// - Parameter sortKeyBytesMax: the limit of the bytes of all their keys and sort values.
    /// - Throws: `TreeError.tooBig` as soon as they exceed it: a result with these children would be larger.
    public func sortKeys(
        _ query: TreeQuery, at path: TreePath, by plan: QueryPlan, sortKeyBytesMax: Int = .max
    ) throws -> [SortKey] {
        var found = Found(query, bytesMax: sortKeyBytesMax)
        switch plan {
        case .keys:
            try addKeys(of: path, range: KeyRange(query), to: &found)
        case .index(let definition):
            try addRows(of: indexCodec.prefix(of: definition.id, collection: path.keys), at: path, to: &found)
        case .priorities:
            try addByPriority(at: path, to: &found)
        case .everyChild:
            return try everyChild(query, at: path, bytesMax: sortKeyBytesMax)
        }
        return found.inOrder
    }

    /// The position of a child in the order of a query; nil when the child does not exist.
    ///
    /// - Throws: `TreeError.corrupted` for rows that cannot be decoded, and the errors of the reader.
    public func sortKey(of key: TreeKey, at path: TreePath, in query: TreeQuery) throws -> SortKey? {
        let child = TreePath(uncheckedKeys: path.keys + [key])
        switch query.order {
        case .value:
            let value = try nodes.sortValue(at: child)
            return value == .null ? nil : SortKey(value, key)
        case .child(let target):
            let value = try nodes.sortValue(at: TreePath(uncheckedKeys: child.keys + target.keys))
            return try value != .null || nodes.exists(at: child) ? SortKey(value, key) : nil
        case .priority:
            let value = SortValue(try nodes.priority(at: child))
            return try value != .null || nodes.exists(at: child) ? SortKey(value, key) : nil
        case .key:
            return try nodes.exists(at: child) ? SortKey(.null, key) : nil
        }
    }

    /// Writes the `keys` of a result: the order, for JSON readers that do not keep it.
    public static func writeKeys(_ sortKeys: [SortKey], to writer: inout JSONWriter) {
        writer.beginArray()
        for sortKey in sortKeys { writer.write(sortKey.key.text) }
        writer.endArray()
    }

    /// The selected children as a node, for comparison and for rules.
    ///
    /// - Throws: `TreeError.corrupted` for rows that cannot be decoded, and the errors of the reader.
    public func node(_ sortKeys: [SortKey], at path: TreePath) throws -> TreeNode {
        .object(
            unsorted: try sortKeys.map {
                TreeChild(key: $0.key, node: try nodes.node(at: TreePath(uncheckedKeys: path.keys + [$0.key])))
            })
    }

    // MARK: Without an index

    private func everyChild(_ query: TreeQuery, at path: TreePath, bytesMax: Int) throws -> [SortKey] {
        var sortKeys = LimitSelection(query.limit, bytesMax: bytesMax)
        var scan = SortValueScan(of: path, by: query.order, nodes.codec)
        try scan.run(nodes.reader) { sortKey in
            if query.contains(sortKey) { try sortKeys.add(sortKey) }
        }
        return try sortKeys.inOrder()
    }
}

extension QueryRunner {
    /// The children found so far, from the end that the limit counts from.
    struct Found {
        let query: TreeQuery
        let isReverse: Bool
        private let countMax: Int
        private let bytesMax: Int
        private var bytes = 0
        private(set) var sortKeys: [SortKey] = []

        init(_ query: TreeQuery, bytesMax: Int = .max) {
            self.query = query
            self.bytesMax = bytesMax
            if case .last = query.limit { isReverse = true } else { isReverse = false }
            countMax = query.limit?.count ?? .max
        }

        var isFull: Bool { sortKeys.count >= countMax }

        mutating func add(_ sortKey: SortKey) throws(TreeError) {
            bytes += sortKey.textBytes
            if bytes > bytesMax { throw .tooBig(bytesMax: bytesMax) }
            sortKeys.append(sortKey)
        }

        /// For children whose order is known only when all of them are read: as many as are still wanted.
        var rest: LimitSelection {
            let count = countMax - sortKeys.count
            return LimitSelection(isReverse ? .last(count) : .first(count), bytesMax: bytesMax - bytes)
        }

        var inOrder: [SortKey] { isReverse ? sortKeys.reversed() : sortKeys }
    }
}
