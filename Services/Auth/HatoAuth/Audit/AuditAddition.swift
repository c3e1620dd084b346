import HatoModel
import HatoStorage

/// One entry of the audit in a transaction that changes no account. It reads what it needs when it is made, and writes
/// after.
struct AuditAddition {
    private var figures: StoreFigures
    private let record: AuditRecord

    /// Throws the errors of the store.
    init(_ record: AuditRecord, in rows: some StoreReading) throws {
        self.record = record
        figures = try StoreFigures.find(in: rows)
    }

    /// - Parameter time: in milliseconds since 1970.
    mutating func write(at time: Int64, in rows: any StoreTransaction) {
        let id = AuditID(time: time, version: rows.nextVersion, index: 0)
        figures.addAudit(bytes: AuditRows.put(record, id, in: rows))
        figures.put(in: rows)
    }
}
