/// Takes rows: a transaction, or `PreparedRows` that are being made.
public protocol StoreWriting: AnyObject {
    func put(_ key: Span<UInt8>, _ value: Span<UInt8>)
    func delete(_ key: Span<UInt8>)
    /// Deletes every row of the range; cheap for large ranges only (a tombstone slows reads near it). A range that is
    /// empty by its bounds writes nothing.
    func deleteRange(_ range: KeyRange)
}

/// Rows that were made ready before their turn, on another thread than the writer's (`Store.prepareRows`). Taking
/// them is cheap for the writer however many they are: a million rows written one by one hold up every other write
/// for seconds.
///
/// One transaction may take them, or none: rows that are let go untaken are gone.
public protocol PreparedRows: AnyObject, Sendable {
    /// Of their keys and values.
    var byteCount: Int { get }
}

extension StoreWriting {
    public func put(_ key: [UInt8], _ value: [UInt8]) { put(key.span, value.span) }
    public func delete(_ key: [UInt8]) { delete(key.span) }
}
