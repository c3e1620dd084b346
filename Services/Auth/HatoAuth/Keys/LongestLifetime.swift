import HatoStorage

/// The longest lifetime of the ID tokens that the current signing key may have signed, in milliseconds: the setting may
/// have been longer at an earlier start.
enum LongestLifetime {
    /// 0 where none is written yet.
    static func find(in rows: some StoreReading) throws -> Int64 {
        let row = try rows.row(AuthKey.longestLifetime)
        return row.flatMap { Int64(String(decoding: $0, as: UTF8.self)) } ?? 0
    }

    static func put(_ lifetime: Int64, in rows: some StoreWriting) {
        rows.putRow(AuthKey.longestLifetime, Array(String(lifetime).utf8))
    }

    /// Writes the lifetime of this start, if it is the longest.
    static func raise(to lifetime: Int64, in store: any Store) async throws {
        guard try await store.read({ try find(in: $0) }) < lifetime else { return }
        _ = try await store.write { put(lifetime, in: $0) }
    }
}
