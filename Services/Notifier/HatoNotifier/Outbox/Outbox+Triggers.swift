import HatoModel
import HatoStorage

/// The rows that the feeds of triggers rest on: which triggers there are, and where each feed is.
extension Outbox {
    /// The triggers that can be read, in the order of ids; others are set aside.
    func triggers() async throws -> [TriggerRecord] {
        let (triggers, damaged) = try await store.read { try $0.triggers() }
        if !damaged.isEmpty {
            try await change { draft in
                // It may have been set anew meanwhile.
                for key in damaged where try draft.transaction.isDamaged(TriggerRecord.self, key) {
                    try draft.setAside(key)
                }
            }
        }
        return triggers
    }

    /// Where the feed of each database is; one whose row cannot be read is at the beginning.
    func cursors() async throws -> [(database: String, cursor: CursorRecord)] {
        try await store.read { snapshot in
            try snapshot.rows(RecordKey(.cursor)).compactMap { row in
                var reader = RecordKeyReader(row.key.bytes)
                guard let database = reader.text() else { return nil }
                return (database, try snapshot.readable(CursorRecord.self, row.key) ?? CursorRecord.beginning)
            }
        }
    }

    /// Sets the row of a cursor aside and begins again at the oldest change that is kept: what was accepted is known by
    /// its idempotency keys for as long. False when the row can be read.
    func replaceUnreadableCursor(of database: DatabaseName) async throws -> Bool {
        try await change { draft in
            let key = CursorRecord.key(database.rawValue)
            guard try draft.transaction.isDamaged(CursorRecord.self, key) else { return false }
            try draft.setAside(key)
            var cursor = CursorRecord.beginning
            cursor.gaps = 1
            draft.writes.put(key, cursor)
            return true
        }
    }
}

extension StoreReading {
    /// The triggers that can be read, and the keys of the other rows.
    func triggers() throws -> (triggers: [TriggerRecord], damaged: [RecordKey]) {
        var (triggers, damaged): ([TriggerRecord], [RecordKey]) = ([], [])
        for row in try rows(RecordKey(.trigger)) {
            if let trigger = try? RecordCodec.decode(TriggerRecord.self, row.value, key: row.key.bytes) {
                triggers.append(trigger)
            } else {
                damaged.append(row.key)
            }
        }
        return (triggers, damaged)
    }

    /// The databases that have cursors and none of these triggers; none while a trigger cannot be read, whose database
    /// is not known.
    func desertedDatabases(besides id: String, adding database: String? = nil) throws -> [String] {
        let (triggers, damaged) = try triggers()
        guard damaged.allSatisfy({ $0 == TriggerRecord.key(id) }) else { return [] }
        let used = Set(triggers.filter { $0.trigger.id != id }.map(\.trigger.database) + [database].compactMap(\.self))
        return try rows(RecordKey(.cursor)).compactMap { row in
            var reader = RecordKeyReader(row.key.bytes)
            return reader.text().flatMap { used.contains($0) ? nil : $0 }
        }
    }

    fileprivate func isDamaged<Record: FieldValue>(_: Record.Type, _ key: RecordKey) throws -> Bool {
        try contains(key) && readable(Record.self, key) == nil
    }
}
