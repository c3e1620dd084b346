/// How much a plan may read and delete row by row of the nodes that its write replaces. Beyond that they are deleted by
/// range, or not planned in this turn.
struct ReplacementBudget {
    /// In the turn of a write: rows of stored nodes, beyond which no further path is looked at. A kibibyte is as much
    /// work as a row.
    var rowsInTurn: Int
    /// Bytes of rows that are read to count them; a node with more is deleted by range.
    var countedBytes = 16 << 20
    /// Bytes of the nodes of many rows that are read in vain, since they turn out too large to be kept.
    var unkeptBytes = 2 << 20
    /// Rows that are deleted one by one. Beyond that, nodes of more than `fewRows` are deleted by range: each deletion
    /// takes some 100 bytes of the plan.
    var singleDeletes = 65_536

    private static let fewRows = 16

    /// The most rows of a node that are deleted one by one.
    var singleDeletesMax: Int { singleDeletes > 0 ? PlanDraft.singleDeletesMax : Self.fewRows }

    /// The bytes up to which a node is kept, when it has so many rows or more.
    ///
    /// - Parameter bytesMax: what the plan may still keep.
    func keptBytesMax(_ bytesMax: Int, rows: Int) -> Int {
        min(bytesMax, rows > PlanDraft.singleDeletesMax ? unkeptBytes : max(countedBytes, Self.fewBytes))
    }

    private static let fewBytes = 16 << 10

    /// Deducts what it took to locate a node.
    mutating func take(_ located: LocatedNode) {
        rowsInTurn -= min(rowsInTurn, located.rowCount + located.byteCount / 1_024)
        guard located.ownRow == nil else { return }
        countedBytes -= min(countedBytes, located.byteCount)
        if located.before == nil, located.rowCount > PlanDraft.singleDeletesMax {
            unkeptBytes -= min(unkeptBytes, located.byteCount)
        }
    }
}

/// The rest of a write's replaced nodes is too much for its turn, in which all other writes wait: it is to be planned
/// before.
public struct TooLargeForTurn: Error {
    public init() {}
}
