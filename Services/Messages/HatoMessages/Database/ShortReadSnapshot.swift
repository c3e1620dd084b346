import HatoStorage
import HatoTree

/// A snapshot for a short read, which may take a reader's thread for milliseconds only: beyond a number of rows it
/// throws `TreeError.tooBig`, as a read does whose result outgrows its reservation. For one operation.
final class ShortReadSnapshot: StoreSnapshot {
    private let snapshot: any StoreSnapshot
    private let bytesMax: Int
    private let rows: RowCounter
    /// The greatest count of `rows` with which it reads on.
    private let countMax: Int

    /// Whether more rows were wanted than may be read.
    var isExhausted: Bool { rows.count > countMax }

    var version: UInt64 { snapshot.version }
    var derived: (any StoreDerived)? { snapshot.derived }
    var uncached: any StoreSnapshot { ShortReadSnapshot(snapshot.uncached, rows, countMax: countMax, bytesMax) }

    /// - Parameters:
    ///   - bytesMax: what the error says.
    ///   - rows: counts what is read, for who else asks; it may have counted rows before.
    convenience init(
        _ snapshot: any StoreSnapshot, rowsMax: Int, bytesMax: Int, countedBy rows: RowCounter = RowCounter()
    ) {
        let (countMax, isEndless) = rows.count.addingReportingOverflow(rowsMax)
        self.init(snapshot, rows, countMax: isEndless ? .max : countMax, bytesMax)
    }

    private init(_ snapshot: any StoreSnapshot, _ rows: RowCounter, countMax: Int, _ bytesMax: Int) {
        self.snapshot = snapshot
        self.rows = rows
        self.countMax = countMax
        self.bytesMax = bytesMax
    }

    private func countRow() throws(TreeError) {
        rows.count += 1
        if rows.count > countMax { throw .tooBig(bytesMax: bytesMax) }
    }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        try countRow()
        return try snapshot.get(key)
    }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        try snapshot.scan(range, reverse: reverse) { key, value in
            try countRow()
            return try visit(key, value)
        }
    }

    func approximateBytes(of range: KeyRange) throws -> UInt64 { try snapshot.approximateBytes(of: range) }
}
