import HatoModel
import HatoStorage

extension WaitingCounts {
    private static let pageMax = 1_000

    /// The counts of a store, whose rows in `waiting` are made anew where those of lanes differ: an earlier version
    /// wrote none.
    static func of(_ store: any Store) async throws -> WaitingCounts {
        let isWhole = try await store.read { try $0.count(.lane) == $0.count(.waiting) }
        if !isWhole {
            try await forEachPage(of: .waiting, in: store) { transaction, rows, writes in
                for row in rows where try !transaction.contains(RecordKey(bytes: row.value)) { writes.delete(row.key) }
            }
            try await forEachPage(of: .lane, in: store) { transaction, rows, writes in
                for row in rows {
                    let delivery = try transaction.readable(DeliveryRecord.self, RecordKey(bytes: row.value))
                    if let delivery { writes.put(delivery.waitingKey, bytes: row.key.bytes) }
                }
            }
        }
        return try await store.read { snapshot in
            let counts = WaitingCounts()
            var (user, count): (UserDigest?, Int) = (nil, 0)
            // Those of one user lie side by side.
            try snapshot.scan(KeyRange(prefix: RecordKey(.waiting).bytes), reverse: false) { key, _ in
                var reader = RecordKeyReader(key.copied)
                let next = reader.number().map { UserDigest($0) }
                if next != user {
                    if let user { counts.add(count, to: user) }
                    (user, count) = (next, 0)
                }
                count += 1
                return .next
            }
            if let user { counts.add(count, to: user) }
            return counts
        }
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
