import HatoModel
import HatoRules

/// Gives the children that were there before an index its rows, page by page.
///
/// A page must be planned and applied in one transaction, like any write; `IndexDeltas` must know the definition from
/// the moment it is declared. Then the index is right when the last page is applied: a child behind the cursor has a
/// row that every later write keeps right, a child ahead of it is read as it is when its page comes (its row may be
/// there already, and is put again with the same key).
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

    /// The rows of the next `childrenMax` children, and where to go on.
    ///
    /// - Parameter placesMax: how many places of the tree are looked at, at most, so that a page is short also where
    ///   there is little to index.
    public func page(after cursor: IndexCursor?, childrenMax: Int, placesMax: Int = 10_000) throws -> IndexPage {
        var page = IndexPage(index: definition.id)
        let base = codec.key(of: fixedPrefix)
        guard let upper = TreeKeyCodec.upperBound(of: base) else { return page }
        var places = 0
        try reader.scan(lower: cursor?.row ?? base, upper: upper, reverse: false) { row, value in
            guard page.children < childrenMax, places < placesMax else {
                page.cursor = IndexCursor(row: try start(of: row), children: (cursor?.children ?? 0) + page.children)
                return .stop
            }
            places += 1
            return try visit(row, value, &page)
        }
        return page
    }

    /// Where the child begins that a row belongs to; the row itself when it stands above the children.
    ///
    /// Writes between two pages may replace the child's rows by others that come before this one: a cursor inside a
    /// child would pass it over.
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

    /// Looks at one row of the tree; says where the next interesting one may be.
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
        page.rows.putIndexRow(IndexKeyCodec.row(collection, SortPlace(value, keys[definition.depth])))
        page.children += 1
        return Self.skip(row, to: end)
    }

    /// Often the first row of a child has it, which was read to find the child.
    private func sortValue(at place: TreePath, _ row: Span<UInt8>, _ value: Span<UInt8>) throws -> SortValue {
        if codec.key(of: place).span.isEqual(to: row) { return .leaf(try TreeLeafCodec.decode(value)) }
        return try NodeReader(reader, codec: codec).sortValue(at: place)
    }

    /// Leaves a branch that no collection lies in: on to the key that the pattern names, when that lies ahead.
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

    /// On to the first row that does not begin with the first `end` bytes of this one.
    private static func skip(_ row: Span<UInt8>, to end: Int) -> TreeScanStep {
        let prefix = row.extracting(0..<end).withUnsafeBufferPointer { Array($0) }
        return TreeKeyCodec.upperBound(of: prefix).map { .seek($0) } ?? .stop
    }
}

/// What one step of a build adds.
public struct IndexPage: Sendable {
    /// The id of the index.
    public let index: UInt32
    /// The rows of the index to write.
    public var rows = RowBatch()
    /// Children that were visited.
    public var children = 0
    /// Where the next page begins; nil: the index is complete.
    public var cursor: IndexCursor?

    init(index: UInt32) { self.index = index }
}

extension IndexKeyCodec {
    /// Deletes all rows of an index that was dropped.
    public func dropRows(of definition: IndexDefinition, from rows: inout RowBatch) {
        let prefix = prefix(of: definition.id)
        rows.deleteIndexRows(prefix)
    }

    /// How many rows an index has; stops counting at `limit`.
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
