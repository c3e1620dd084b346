import HatoModel
import HatoStorage

/// What is known of the rows of a store without reading them: each transaction that changes some keeps it right.
struct StoreFigures: FieldObject, Hashable {
    /// Of the keys and values of the audit's rows.
    var auditBytes = 0
    var accounts = 0

    static let fields = Fields<Self>(
        blank: Self(), .required("auditBytes", \.auditBytes), .required("accounts", \.accounts))

    static func find(in rows: some StoreReading) throws -> StoreFigures {
        guard let row = try rows.row(AuthKey.figures) else { return StoreFigures() }
        return try RecordCodec.decode(Self.self, row, of: "figures", unknown: .rejected)
    }

    func put(in rows: any StoreWriting) { rows.putRow(AuthKey.figures, RecordCodec.encode(self)) }

    mutating func addAccounts(_ count: Int) { accounts = max(0, accounts + count) }
    mutating func addAudit(bytes: Int) { auditBytes = max(0, auditBytes + bytes) }

    /// Counts what a version before these figures has left; reads all of it once.
    static func open(_ store: any Store) async throws {
        let figures = try await store.read { rows -> StoreFigures? in
            guard try rows.row(AuthKey.figures) == nil else { return nil }
            var figures = StoreFigures()
            for range in AuthKey.auditRanges {
                figures.addAudit(bytes: Int(clamping: try rows.uncached.bytes(of: range)))
            }
            try rows.uncached.scan(AuthKey.accounts, reverse: false) { _, _ in
                figures.accounts += 1
                return .next
            }
            return figures
        }
        guard let figures, figures != StoreFigures() else { return }
        _ = try await store.write { figures.put(in: $0) }
    }
}
