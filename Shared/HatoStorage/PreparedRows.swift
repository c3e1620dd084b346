/// Accepts rows: a transaction, or `PreparedRows` that are being made.
public protocol StoreWriting: AnyObject {
    func put(_ key: Span<UInt8>, _ value: Span<UInt8>)
    func delete(_ key: Span<UInt8>)
    /// Deletes every row of the range; cheap for large ranges only (a tombstone slows reads near it). A range that is
    /// empty by its bounds writes nothing.
    func deleteRange(_ range: KeyRange)
}

/// Rows that were prepared before their write's turn, on another thread than the writer's (`Store.prepareRows`). Taking
/// them is cheap for the writer whatever their number: a million rows written one by one would delay every other write
/// for seconds.
///
/// At most one transaction takes them; rows that are released without being taken are discarded.
public protocol PreparedRows: AnyObject, Sendable {
    /// Bytes of the keys and values.
    var byteCount: Int { get }
}

extension StoreWriting {
    public func put(_ key: [UInt8], _ value: [UInt8]) { put(key.span, value.span) }
    public func delete(_ key: [UInt8]) { delete(key.span) }
}
