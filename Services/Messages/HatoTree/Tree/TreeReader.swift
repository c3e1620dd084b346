/// The source of the tree's rows: a dictionary in tests, a transaction or a snapshot in the service. Rows are ordered
/// by key as unsigned bytes.
public protocol TreeReader {
    func get(_ key: Span<UInt8>) throws -> [UInt8]?

    /// Visits the rows from `lower` (included) to `upper` (excluded; nil: to the end) in key order or backwards, until
    /// the closure stops it. The spans are valid during the call only.
    func scan(
        lower: [UInt8], upper: [UInt8]?, reverse: Bool,
        _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> TreeScanStep) throws
}

/// How a scan continues after a row.
public enum TreeScanStep {
    case next
    case stop
    /// Continues at the first row at or after this key (backwards: at or before it), which must be ahead.
    case seek([UInt8])
}
