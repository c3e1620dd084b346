import HatoModel

/// Compares an index with its tree in both directions: every child has its row, and every row has its child.
public struct IndexCheck {
    private let reader: any TreeReader
    private let codec: TreeKeyCodec
    private let indexCodec: IndexKeyCodec
    private let report: (RowFinding) -> Void

    public init(
        _ reader: any TreeReader, codec: TreeKeyCodec, indexCodec: IndexKeyCodec,
        report: @escaping (RowFinding) -> Void
    ) {
        self.reader = reader
        self.codec = codec
        self.indexCodec = indexCodec
        self.report = report
    }

    private static let pageChildren = 500

    /// Compares an index with its tree, and reports each difference; returns the number of rows of the index. An index
    /// that is still being built lacks the rows after its cursor; the existing ones must be correct.
    ///
    /// - Parameter advance: called for every row that is read.
    /// - Throws: the errors of the reader and of `advance`.
    public func run(_ index: IndexCatalog.Index, advance: () throws -> Void) throws -> Int {
        let definition = index.definition
        let wanted = try checkChildren(of: index, advance)
        let rows = try countRows(of: definition.id, advance)
        // Every expected row exists, and there are no others: the expensive reverse check is needed only when something
        // is wrong.
        if index.isReady, wanted.isComplete, wanted.count == rows { return rows }
        try checkRows(of: definition.id, definition) { collection, key in
            guard definition.covers(collection) else { return nil }
            let child = TreePath(uncheckedKeys: collection.keys + [key])
            let value = try nodes.sortValue(at: TreePath(uncheckedKeys: child.keys + definition.targetKeys))
            return try value != .null || nodes.exists(at: child) ? value : nil
        }
        return rows
    }

    /// Checks the automatic index of priorities, whose rows `TreeCheck` has looked up; returns their number.
    ///
    /// - Parameter wanted: the expected number of rows.
    /// - Throws: the errors of the reader and of `advance`.
    public func runPriorities(wanted: Int, isComplete: Bool, advance: () throws -> Void) throws -> Int {
        let rows = try countRows(of: IndexKeyCodec.priorities, advance)
        if isComplete, rows == wanted { return rows }
        try checkRows(of: IndexKeyCodec.priorities, nil) { collection, key in
            try nodes.priority(at: TreePath(uncheckedKeys: collection.keys + [key])).map { SortValue($0) }
        }
        return rows
    }

    /// Finds rows of indexes that are not declared: no write updates or removes them.
    ///
    /// - Throws: the errors of the reader.
    public func findUndeclared(_ catalog: IndexCatalog) throws {
        let known = Set(catalog.definitions.map(\.id) + [IndexKeyCodec.priorities])
        let prefix = indexCodec.prefix
        try reader.scan(lower: prefix, upper: TreeKeyCodec.upperBound(of: prefix), reverse: false) { row, _ in
            guard row.count >= prefix.count + 4 else {
                report(RowFinding("an index row has a key that cannot be read: \(row.hexText)"))
                return .next
            }
            var id: UInt32 = 0
            for offset in prefix.count..<prefix.count + 4 { id = id << 8 | UInt32(row[offset]) }
            if !known.contains(id) { report(RowFinding("there are rows of index \(id), which no rules declare")) }
            return TreeKeyCodec.upperBound(of: indexCodec.prefix(of: id)).map { .seek($0) } ?? .stop
        }
    }

    private var nodes: NodeReader { NodeReader(reader, codec: codec) }

    // MARK: From the tree

    private func checkChildren(
        of index: IndexCatalog.Index, _ advance: () throws -> Void
    ) throws -> (count: Int, isComplete: Bool) {
        var end: [UInt8]?
        if case .building(let cursor) = index.state {
            guard let cursor else { return (0, true) }
            end = cursor.row
        }
        let builder = IndexBuilder(index.definition, reader: reader, codec: codec, indexCodec: indexCodec)
        var (count, isComplete) = (0, true)
        var cursor: IndexCursor?
        repeat {
            let page = try builder.page(after: cursor, childrenMax: Self.pageChildren)
            for row in page.rows.putKeys {
                try advance()
                // Children after the build's cursor have no row yet.
                if let end, let child = child(of: row, index.definition.id),
                    !codec.key(of: child).lexicographicallyPrecedes(end)
                {
                    return (count, isComplete)
                }
                count += 1
                guard try reader.get(row.span) == nil else { continue }
                isComplete = false
                report(
                    RowFinding(
                        "the row of this child is missing or has another value",
                        path: child(of: row, index.definition.id), index: index.definition))
            }
            cursor = page.cursor
        } while cursor != nil
        return (count, isComplete)
    }

    private func child(of row: [UInt8], _ id: UInt32) -> TreePath? {
        indexCodec.child(of: row.span, in: id).map {
            TreePath(uncheckedKeys: $0.collection.keys + [$0.row.sortKey.key])
        }
    }

    // MARK: From the index

    private func countRows(of id: UInt32, _ advance: () throws -> Void) throws -> Int {
        var count = 0
        let prefix = indexCodec.prefix(of: id)
        try reader.scan(lower: prefix, upper: TreeKeyCodec.upperBound(of: prefix), reverse: false) { _, _ in
            try advance()
            count += 1
            return .next
        }
        return count
    }

    /// - Parameter value: the sort value of the child; nil: it has no row in this index.
    private func checkRows(
        of id: UInt32, _ definition: IndexDefinition?, _ value: (_ collection: TreePath, TreeKey) throws -> SortValue?
    ) throws {
        let prefix = indexCodec.prefix(of: id)
        try reader.scan(lower: prefix, upper: TreeKeyCodec.upperBound(of: prefix), reverse: false) { row, stored in
            guard let indexed = indexCodec.child(of: row, in: id), stored.count == 0 else {
                report(RowFinding("an index row that cannot be read: \(row.hexText)", index: definition))
                return .next
            }
            let (collection, key) = (indexed.collection, indexed.row.sortKey.key)
            let child = TreePath(uncheckedKeys: collection.keys + [key])
            guard let actual = try value(collection, key) else {
                report(RowFinding("there is a row, but nothing that it is of", path: child, index: definition))
                return .next
            }
            let rows = indexCodec.prefix(of: id, collection: collection.keys)
            let right = IndexKeyCodec.row(rows, SortKey(actual, key))
            if !right.span.isEqual(to: row) {
                report(RowFinding("a row has another sort value than this child", path: child, index: definition))
            }
            return .next
        }
    }
}

extension IndexKeyCodec {
    /// Decodes a whole row of an index; nil when the bytes are no such row.
    func child(of row: Span<UInt8>, in id: UInt32) -> (collection: TreePath, row: Row)? {
        var end = prefix(of: id).count
        guard end < row.count else { return nil }
        var keys: [TreeKey] = []
        while end < row.count, row[end] != Self.collectionEnd {
            guard let next = TreeKeyCodec.endOfKey(in: row, from: end),
                let key = TreeKeyCodec.decode(row.extracting(end..<next))
            else { return nil }
            keys.append(key)
            end = next
        }
        guard end < row.count, let decoded = Self.decode(row, from: end + 1) else { return nil }
        return (TreePath(uncheckedKeys: keys), decoded)
    }
}
