import HatoModel

/// Decides what a write does to the rows of the tree (spec realtime-database §2, §6; protocol §5).
///
/// It reads through the reader only, writes nothing, and knows no clock: the same mutation, rows and time give the same plan.
/// The rows of a plan must be applied before the next mutation is planned.
public struct WritePlanner: Sendable {
    public let codec: TreeKeyCodec
    public let indexes: any IndexSet

    public init(codec: TreeKeyCodec, indexes: any IndexSet = NoIndexes()) {
        self.codec = codec
        self.indexes = indexes
    }

    /// - Parameter now: milliseconds since 1970, the one time of the write.
    /// - Throws: `TreeError`, or what the reader throws.
    public func plan(
        _ mutation: Mutation, reading reader: any TreeReader, at now: Int64, history: (any ChangeHistory)? = nil
    ) throws -> WritePlan {
        WritePlan(rows: RowBatch(), changes: [], time: now, etag: nil)
    }
}
