import HatoModel
import HatoStorage

/// The newest change that was accepted under a collapse key before older ones.
struct NewestChangeRecord: FieldObject, Hashable {
    var position: ChangePosition

    static let fields = Fields<Self>(
        blank: Self(position: ChangePosition(sequence: 0, index: 0)),
        .required("sequence", \.position.sequence),
        .required("index", \.position.index))

    static func prefix(_ database: DatabaseName) -> RecordKey { RecordKey(.newest).with(database.rawValue) }

    static func key(_ database: DatabaseName, _ lane: Lane) -> RecordKey {
        prefix(database).with(lane.device).with(lane.collapseKey)
    }
}

/// Keeps older changes from replacing newer ones under a collapse key, where one transaction accepts changes of several
/// writers.
///
/// A writer with much to send is overtaken by the others. What comes before an older change that still waits is
/// remembered by device and collapse key until none that is older waits (`ChangeRows.forgetNewest`).
struct NewestChanges {
    private let database: DatabaseName
    /// The oldest change of which more is to be accepted later.
    private let oldest: ChangePosition?
    /// By lane, as far as it was accepted here: a transaction does not see its own writes.
    private var accepted: [Lane: ChangePosition] = [:]
    private(set) var hasOvertaken = false

    init(_ database: DatabaseName, oldest: ChangePosition?) {
        self.database = database
        self.oldest = oldest
    }

    /// Accepts a change for a lane; false: a newer one was.
    mutating func accept(
        _ position: ChangePosition, in lane: Lane, _ transaction: any StoreTransaction, _ writes: inout RecordWrites
    ) throws -> Bool {
        guard lane.collapseKey != nil else { return true }
        let key = NewestChangeRecord.key(database, lane)
        let newest = try accepted[lane] ?? transaction.readable(NewestChangeRecord.self, key)?.position
        if let newest, position < newest { return false }
        accepted[lane] = position
        if let oldest, oldest < position {
            writes.put(key, NewestChangeRecord(position: position))
            hasOvertaken = true
        }
        return true
    }
}

extension ChangeRows {
    /// Forgets which changes were the newest where no older one waits, a page of rows behind `last`.
    ///
    /// - Parameter oldest: the oldest change that waits.
    /// - Returns: The last row, nil at the end, and how many rows stayed.
    func forgetNewest(
        after last: RecordKey?, before oldest: ChangePosition?, limit: Int
    ) async throws -> (last: RecordKey?, stayed: Int) {
        try await outbox.change { [database] draft in
            let prefix = NewestChangeRecord.prefix(database)
            let rows = try draft.transaction.rows(prefix, after: last, limit: limit)
            var stayed = 0
            for row in rows {
                let record = try? RecordCodec.decode(NewestChangeRecord.self, row.value, key: row.key.bytes)
                if let oldest, let record, oldest < record.position {
                    stayed += 1
                } else {
                    draft.writes.delete(row.key)
                }
            }
            return (rows.count < limit ? nil : rows.last?.key, stayed)
        }
    }
}
