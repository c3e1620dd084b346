import HatoModel
import HatoRules

/// Builds the rows of an index for children that existed before it, page by page.
///
/// A page must be planned and applied in one transaction, like any write; `IndexDeltas` must know the definition from
/// the moment it is declared. Then the index is correct when the last page is applied: a child before the cursor has a
/// row that every later write updates, and a child after it is read when its page comes (its row may exist already, and
/// is put again with the same key).
public struct IndexBuilder {
    private let definition: IndexDefinition
    private let reader: TreeRows
    private let codec: TreeKeyCodec
    private let indexCodec: IndexKeyCodec

    /// A builder of the rows of one index, over the data that `reader` reads.
    public init(_ definition: IndexDefinition, reader: any TreeReader, codec: TreeKeyCodec, indexCodec: IndexKeyCodec) {
        self.definition = definition
        self.reader = TreeRows(reader, codec: codec)
        self.codec = codec
        self.indexCodec = indexCodec
    }

    /// The rows of the next `childrenMax` children, and the cursor after them.
    ///
    /// - Parameter nodesMax: the maximum number of nodes to read, so that a page is short also where there is little
    ///   to index.
    /// - Throws: `TreeError.corrupted` for rows that cannot be decoded, and the errors of the reader.
    public func page(after cursor: IndexCursor?, childrenMax: Int, nodesMax: Int = 10_000) throws -> IndexPage {
        var page = IndexPage(index: definition.id)
        let base = codec.key(of: fixedPrefix)
        guard let upper = TreeKeyCodec.upperBound(of: base) else { return page }
        var nodes = 0
        try reader.scan(lower: cursor?.row ?? base, upper: upper, reverse: false) { row, value in
            guard page.children < childrenMax, nodes < nodesMax else {
                page.cursor = IndexCursor(row: try start(of: row), children: (cursor?.children ?? 0) + page.children)
                return .stop
            }
            nodes += 1
            return try visit(row, value, &page)
        }
        return page
    }

    /// The start of the child that a row belongs to; the row itself when it is above the children.
    ///
    /// Writes between two pages may replace the child's rows by others that come before this one: a cursor inside a
    /// child would skip it.
    private func start(of row: Span<UInt8>) throws -> [UInt8] {
        var end = codec.prefix.count
        for _ in 0...definition.depth {
            guard end < row.count, row[end] != TreeKeyCodec.priorityMark else {
                end = row.count
                break
            }
            guard let next = TreeKeyCodec.endOfKey(in: row, from: end) else {
                throw TreeError.corrupted("a row whose key cannot be read")
            }
            end = next
        }
        return row.extracting(0..<end).withUnsafeBufferPointer { Array($0) }
    }

    private var fixedPrefix: TreePath {
        TreePath(uncheckedKeys: definition.pattern.fixedPrefix)
    }

    /// Visits one row of the tree; returns the earliest position of the next relevant one.
    private func visit(
        _ row: Span<UInt8>, _ value: Span<UInt8>, _ page: inout IndexPage
    ) throws -> TreeScanStep {
        var keys: [TreeKey] = []
        var end = codec.prefix.count
        while keys.count <= definition.depth {
            // The row of a leaf, or of a priority, above the children of a collection.
            guard end < row.count, row[end] != TreeKeyCodec.priorityMark else { return .next }
            guard let next = TreeKeyCodec.endOfKey(in: row, from: end),
                let key = TreeKeyCodec.decode(row.extracting(end..<next))
            else { throw TreeError.corrupted("a row whose key cannot be read") }
            if keys.count < definition.depth, !definition.segments[keys.count].matches(key) {
                return jump(from: row, after: next, to: keys)
            }
            end = next
            keys.append(key)
        }
        let child = TreePath(uncheckedKeys: keys + definition.targetKeys)
        let value = try sortValue(at: child, row, value)
        let collection = indexCodec.prefix(of: definition.id, collection: keys.dropLast())
        page.rows.putIndexRow(IndexKeyCodec.row(collection, SortKey(value, keys[definition.depth])))
        page.children += 1
        return Self.skip(row, to: end)
    }

    /// Often the first row of a child, already read to find the child, has the value.
    private func sortValue(at path: TreePath, _ row: Span<UInt8>, _ value: Span<UInt8>) throws -> SortValue {
        if codec.key(of: path).span.isEqual(to: row) { return .leaf(try TreeLeafCodec.decode(value)) }
        return try NodeReader(reader, codec: codec).sortValue(at: path)
    }

    /// Leaves a branch without collections: seeks the key that the pattern names, when that is ahead.
    private func jump(from row: Span<UInt8>, after end: Int, to keys: [TreeKey]) -> TreeScanStep {
        guard case .key(let name) = definition.segments[keys.count] else { return Self.skip(row, to: end) }
        let wanted = codec.key(of: TreePath(uncheckedKeys: keys + [name]))
        if Self.isAhead(wanted, of: row) { return .seek(wanted) }
        return Self.skip(row, to: codec.key(of: TreePath(uncheckedKeys: keys)).count)
    }

    private static func isAhead(_ key: [UInt8], of row: Span<UInt8>) -> Bool {
        for index in 0..<min(key.count, row.count) where key[index] != row[index] { return key[index] > row[index] }
        return key.count > row.count
    }

    /// Seeks the first row that does not begin with the first `end` bytes of this one.
    private static func skip(_ row: Span<UInt8>, to end: Int) -> TreeScanStep {
        let prefix = row.extracting(0..<end).withUnsafeBufferPointer { Array($0) }
        return TreeKeyCodec.upperBound(of: prefix).map { .seek($0) } ?? .stop
    }
}

/// The result of one step of a build.
public struct IndexPage: Sendable {
    /// The id of the index.
    public let index: UInt32
    /// The rows of the index to write.
    public var rows = RowBatch()
    /// Children that were visited.
    public var children = 0
    /// The start of the next page; nil: the index is complete.
    public var cursor: IndexCursor?

    init(index: UInt32) { self.index = index }
}

extension IndexKeyCodec {
    /// Deletes all rows of an index that was dropped.
    public func dropRows(of definition: IndexDefinition, from rows: inout RowBatch) {
        let prefix = prefix(of: definition.id)
        rows.deleteIndexRows(prefix)
    }

    /// The number of rows of an index; stops counting at `limit`.
    ///
    /// - Throws: the errors of the reader.
    public func count(_ definition: IndexDefinition, reading reader: any TreeReader, limit: Int) throws -> Int {
        let prefix = prefix(of: definition.id)
        var count = 0
        try reader.scan(lower: prefix, upper: TreeKeyCodec.upperBound(of: prefix), reverse: false) { _, _ in
            count += 1
            return count < limit ? .next : .stop
        }
        return count
    }
}
