import HatoStorage
import HatoTree

/// A snapshot for a short read, which may take a reader's thread for milliseconds only: beyond a number of rows it
/// throws `TreeError.tooBig`, as a read does whose result outgrows its reservation. For one operation.
final class ShortReadSnapshot: StoreSnapshot {
    private let snapshot: any StoreSnapshot
    private let bytesMax: Int
    private let rows: RowsLeft

    /// Belongs to the thread that reads.
    private final class RowsLeft: @unchecked Sendable {
        private var count: Int

        init(_ count: Int) { self.count = count }

        var areTaken: Bool { count < 0 }

        func take(bytesMax: Int) throws(TreeError) {
            count -= 1
            if count < 0 { throw .tooBig(bytesMax: bytesMax) }
        }
    }

    /// Whether more rows were wanted than may be read.
    var isExhausted: Bool { rows.areTaken }

    var version: UInt64 { snapshot.version }
    var derived: (any StoreDerived)? { snapshot.derived }
    var uncached: any StoreSnapshot { ShortReadSnapshot(snapshot.uncached, rows, bytesMax) }

    /// - Parameter bytesMax: what the error says.
    convenience init(_ snapshot: any StoreSnapshot, rowsMax: Int, bytesMax: Int) {
        self.init(snapshot, RowsLeft(rowsMax), bytesMax)
    }

    private init(_ snapshot: any StoreSnapshot, _ rows: RowsLeft, _ bytesMax: Int) {
        self.snapshot = snapshot
        self.rows = rows
        self.bytesMax = bytesMax
    }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        try rows.take(bytesMax: bytesMax)
        return try snapshot.get(key)
    }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        try snapshot.scan(range, reverse: reverse) { key, value in
            try rows.take(bytesMax: bytesMax)
            return try visit(key, value)
        }
    }

    func approximateBytes(of range: KeyRange) throws -> UInt64 { try snapshot.approximateBytes(of: range) }
}
