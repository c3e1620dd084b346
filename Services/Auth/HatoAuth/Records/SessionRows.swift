import HatoModel
import HatoStorage

/// The sessions of a store. It reads first and writes after.
enum SessionRows {
    static func find(_ id: [UInt8], in rows: some StoreReading) throws -> SessionRecord? {
        try rows.row(AuthKey.session(id)).map { try SessionRecord(id, $0) }
    }

    static func ids(of uid: String, in rows: some StoreReading) throws -> [[UInt8]] {
        let range = AuthKey.sessions(of: uid)
        var ids: [[UInt8]] = []
        try rows.rows(range) { key, _ in
            ids.append(Array(key.dropFirst(range.lower.count)))
            return true
        }
        return ids
    }

    /// The sessions of a user whose rows can be read.
    static func all(of uid: String, in rows: some StoreReading) throws -> [SessionRecord] {
        try ids(of: uid, in: rows).compactMap { id in
            do { return try find(id, in: rows) } catch is RecordError { return nil }
        }
    }

    /// The sessions of a user that must end so that one more fits: the least recently used. Rows that cannot be read
    /// stay, and do not count.
    static func surplus(of uid: String, countMax: Int, in rows: some StoreReading) throws -> [[UInt8]] {
        let sessions = try all(of: uid, in: rows)
        let oldestFirst = sessions.sorted { $0.rotation.rotatedAt < $1.rotation.rotatedAt }
        return oldestFirst.prefix(max(0, sessions.count - countMax + 1)).map(\.id)
    }

    /// Sessions of a user, and those that were forked from one of them.
    static func withForks(_ ids: [[UInt8]], of uid: String, in rows: some StoreReading) throws -> [[UInt8]] {
        let forks = try all(of: uid, in: rows).filter { session in
            session.forkedFrom.map { ids.contains($0) } == true && !ids.contains(session.id)
        }
        return ids + forks.map(\.id)
    }

    static func put(_ session: SessionRecord, in rows: AuthTransaction) {
        rows.putRow(AuthKey.session(session.id), session.bytes)
        rows.putRow(AuthKey.session(session.id, of: session.uid), [])
    }

    static func delete(_ id: [UInt8], of uid: String, in rows: AuthTransaction) {
        rows.deleteRow(AuthKey.session(id))
        rows.deleteRow(AuthKey.session(id, of: uid))
        rows.endedSession(id, of: uid)
    }
}
