import HatoModel
import HatoStorage

extension WaitingCounts {
    fileprivate static let pageMax = 1_000

    /// The counts of a store. Rows in `waiting` that are not those of lanes are made anew: an earlier version wrote
    /// none.
    static func of(_ store: any Store, shareMax: Int) async throws -> WaitingCounts {
        let (counts, isWhole) = try await store.read { try $0.waitingCounts(WaitingCounts(shareMax: shareMax)) }
        if isWhole { return counts }
        try await forEachPage(of: .waiting, in: store) { transaction, rows, writes in
            for row in rows where try !transaction.contains(RecordKey(bytes: row.value)) { writes.delete(row.key) }
        }
        try await forEachPage(of: .lane, in: store) { transaction, rows, writes in
            for row in rows {
                // One that cannot be read counts for no user.
                let delivery = try transaction.readable(DeliveryRecord.self, RecordKey(bytes: row.value))
                guard let key = delivery?.waitingKey, try transaction.value(key) != row.key.bytes else { continue }
                writes.put(key, bytes: row.key.bytes)
            }
        }
        return try await store.read { try $0.waitingCounts(WaitingCounts(shareMax: shareMax)).counts }
    }

    private static func forEachPage(
        of table: RecordKey.Table, in store: any Store,
        _ body:
            @escaping @Sendable (
                any StoreTransaction, [(key: RecordKey, value: [UInt8])], inout RecordWrites
            ) throws -> Void
    ) async throws {
        var last: RecordKey?
        repeat {
            last = try await store.write { [last] transaction in
                let rows = try transaction.rows(RecordKey(table), after: last, limit: pageMax)
                var writes = RecordWrites()
                try body(transaction, rows, &writes)
                try writes.apply(to: transaction)
                return rows.count < pageMax ? nil : rows.last?.key
            }.outcome
        } while last != nil
    }
}

extension StoreReading {
    /// Adds the rows in `waiting` to counts, and finds out whether these are those of lanes.
    fileprivate func waitingCounts(_ counts: WaitingCounts) throws -> (counts: WaitingCounts, isWhole: Bool) {
        let pageMax = WaitingCounts.pageMax
        var (user, count): (UserDigest?, Int) = (nil, 0)
        var (last, isWhole): (RecordKey?, Bool) = (nil, true)
        while true {
            let rows = try rows(RecordKey(.waiting), after: last, limit: pageMax)
            for row in rows {
                var reader = RecordKeyReader(row.key.bytes)
                let next = reader.number().map { UserDigest($0) }
                // Those of one user lie side by side.
                if next != user {
                    if let user { counts.add(count, to: user) }
                    (user, count) = (next, 0)
                }
                count += 1
                if isWhole { isWhole = try contains(RecordKey(bytes: row.value)) }
            }
            guard rows.count == pageMax else { break }
            last = rows.last?.key
        }
        if let user { counts.add(count, to: user) }
        return (counts, try isWhole && self.count(.lane) == counts.total)
    }
}
