/// Maintains index rows: the planner calls it once for every write that changes something.
public protocol IndexSet: Sendable {
    /// Appends the changes of index rows by the write.
    func appendRows(for write: IndexedWrite, to rows: inout RowBatch) throws
}

/// A planned write as input for indexes.
public struct IndexedWrite {
    /// Disjoint paths (a priority and its node count as two), in the order of the request. `after` is always there;
    /// `before` is nil where the replaced node was too large to read: then all index rows of collections in it are
    /// deleted by range.
    /// range.
    public var changes: [PathChange]
    /// The tree as it was before the write.
    public var reader: any TreeReader
    /// Encodes keys of the tree as keys of rows.
    public var codec: TreeKeyCodec

    public init(changes: [PathChange], reader: any TreeReader, codec: TreeKeyCodec) {
        self.changes = changes
        self.reader = reader
        self.codec = codec
    }
}

/// A database without indexes.
public struct NoIndexes: IndexSet {
    public init() {}
    public func appendRows(for _: IndexedWrite, to _: inout RowBatch) throws {}
}
