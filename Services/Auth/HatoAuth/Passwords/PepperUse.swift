import HatoModel
import HatoStorage

/// The ids of the keys of `Pepper` with which passwords of the store may be hashed.
enum PepperUse {
    /// Keeps the ids of the keys, before the first password gets one. Forgets those of which no password is left.
    ///
    /// Looks at all accounts only when a key is missing that was there before.
    /// - Throws: `PepperError` when passwords need a key that is missing; `RecordError`, the errors of the store.
    static func open(_ pepper: Pepper, in store: any Store) async throws {
        let known = try await store.read { try kept(in: $0) }
        let missing = known.filter { !pepper.contains($0) }
        if !missing.isEmpty {
            let count = try await store.read { try Self.count(of: missing, in: $0) }
            guard count == 0 else { throw PepperError(count: count) }
        }
        let ids = pepper.ids
        guard ids != known else { return }
        _ = try await store.write { rows in
            rows.putRow(AuthKey.pepperIDs, RecordCodec.encode(ids.sorted()))
        }
    }

    private static func kept(in rows: some StoreReading) throws -> Set<String> {
        guard let bytes = try rows.row(AuthKey.pepperIDs) else { return [] }
        return Set(try RecordCodec.decode([String].self, bytes, of: "pepper ids", unknown: .rejected))
    }

    private static func count(of ids: Set<String>, in rows: some StoreReading) throws -> Int {
        var count = 0
        try rows.rows(AuthKey.accounts) { _, value in
            if let id = (try? AccountRecord(value))?.passwordHash?.pepperID, ids.contains(id) { count += 1 }
            return true
        }
        return count
    }
}
