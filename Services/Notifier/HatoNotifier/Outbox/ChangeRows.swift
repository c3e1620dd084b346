import HatoModel
import HatoStorage

/// The rows of one database between its feed and what its triggers send: a change is written down when it comes, and
/// its row goes when all that it fires is accepted.
struct ChangeRows: Sendable {
    let outbox: Outbox
    let database: DatabaseName

    /// What keeping changes came to.
    struct Kept: Sendable {
        /// Those that came.
        var came: [ChangeBacklog.Share] = []
        /// The commit of the store that brought them.
        var sequence: UInt64
        /// Those that were dropped, because all together took too many bytes.
        var dropped: [ChangeBacklog.Share] = []
    }

    /// Rows that one transaction drops of one writer.
    private static let droppedMax = 4_096

    /// Writes changes down and moves the cursor behind them: both or neither.
    ///
    /// - Parameters:
    ///   - threads: what changes of them, or of others, mean for threads.
    ///   - excess: the writers that lose their oldest rows, and about how many bytes, when so many bytes come.
    func keep(
        _ changes: [ChangeRecord], _ threads: [ThreadChange.Placed] = [], moving move: CursorMove,
        excess: @escaping @Sendable (_ bytes: Int) -> [(writer: UserDigest, bytes: Int)]
    ) async throws -> Kept {
        try await outbox.change { [database] draft in
            let key = CursorRecord.key(database.rawValue)
            guard try draft.transaction.record(CursorRecord.self, key) == move.from else {
                throw OutboxRefusal.cursorMoved
            }
            if move.to != move.from { draft.writes.put(key, move.to) }
            var (came, bytes): ([UserDigest: ChangeBacklog.Share], Int) = ([:], 0)
            for (index, record) in changes.enumerated() {
                let writer = record.change.writer
                let sequence = draft.transaction.nextVersion
                let position = ChangePosition(sequence: sequence, index: UInt32(clamping: index))
                let row = ChangeRow(database, of: writer, at: position)
                let value = RecordCodec.encode(record)
                draft.writes.put(row.key, bytes: value)
                let place = ChangeBacklog.Place(position: position, version: record.version)
                var share = came[writer] ?? .init(writer: writer, first: place)
                share.add(row.key, value)
                came[writer] = share
                bytes += row.key.bytes.count + value.count
            }
            if !threads.isEmpty {
                let waiting = try draft.transaction.keys(ChangeRecord.prefix(database), limit: 1)
                let isBehind = !changes.isEmpty || !waiting.isEmpty
                for thread in threads { try ThreadSteps.apply(thread, isBehind: isBehind, in: &draft) }
            }
            var kept = Kept(came: Array(came.values), sequence: draft.transaction.nextVersion)
            for (writer, bytes) in bytes > 0 ? excess(bytes) : [] {
                kept.dropped.append(try draft.dropChanges(of: writer, in: database, bytes: bytes))
            }
            return kept
        }
    }

    /// What accepting notifications came to.
    struct Accepted: Sendable {
        var notifications: [AcceptedNotification]
        /// The rows that went.
        var went: [ChangeBacklog.Share]
        /// Whether changes came before older ones under a collapse key.
        var hasOvertaken: Bool
    }

    /// Accepts what triggers made of changes, whose rows go with it: both or neither.
    ///
    /// - Parameter oldest: the oldest change of which more is to be accepted later.
    func accept(
        _ new: [NewNotification], of done: [ChangeRow], before oldest: ChangePosition? = nil
    ) async throws -> Accepted {
        let ids = new.map { _ in outbox.newID("ntf_") }
        let (limits, policy) = (outbox.limits, outbox.policy)
        return try await outbox.change { [database] draft in
            // Its triggers are gone.
            guard try draft.transaction.contains(CursorRecord.key(database.rawValue)) else {
                throw OutboxRefusal.cursorMoved
            }
            var went: [UserDigest: ChangeBacklog.Share] = [:]
            for row in done {
                // It may have been dropped meanwhile.
                guard let value = try draft.transaction.value(row.key) else { continue }
                draft.writes.delete(row.key)
                went[row.writer, default: .init(writer: row.writer)].add(row.key, value)
            }
            draft.newest = NewestChanges(database, oldest: oldest)
            var acceptance = Acceptance(limits, policy)
            let accepted = try zip(new, ids).map { try acceptance.accept($0, id: $1, in: &draft) }
            return Accepted(
                notifications: accepted, went: Array(went.values), hasOvertaken: draft.newest?.hasOvertaken ?? false)
        }
    }

    /// What waits, writer by writer.
    func shares() async throws -> [ChangeBacklog.Share] {
        try await outbox.store.read { [database] snapshot in
            var shares: [ChangeBacklog.Share] = []
            try snapshot.uncached.scan(KeyRange(prefix: ChangeRecord.prefix(database).bytes), reverse: false) {
                key, value in
                let (key, value) = (RecordKey(bytes: key.copied), value.copied)
                guard let row = ChangeRow(key) else { return .next }
                // Those of one writer lie side by side.
                if shares.last?.writer != row.writer {
                    let record = try? RecordCodec.decode(ChangeRecord.self, value, key: key.bytes)
                    shares.append(
                        .init(writer: row.writer, first: .init(position: row.position, version: record?.version ?? 1)))
                }
                shares[shares.count - 1].add(key, value)
                return .next
            }
            return shares
        }
    }

    /// Databases with changes that wait, whether they have triggers or not.
    static func databases(in outbox: Outbox) async throws -> [DatabaseName] {
        try await outbox.store.read { snapshot in
            var (names, range): ([DatabaseName], KeyRange) = ([], KeyRange(prefix: RecordKey(.change).bytes))
            while !range.isEmpty {
                var found: String?
                try snapshot.scan(range, reverse: false) { key, _ in
                    var reader = RecordKeyReader(key.copied)
                    found = reader.text()
                    return .stop
                }
                guard let found, let end = RecordKey(.change).with(found).end else { break }
                range.lower = end
                if let name = DatabaseName(rawValue: found) { names.append(name) }
            }
            return names
        }
    }

    /// Drops all, in pages, if the database has no triggers.
    func dropAll() async throws {
        var isDone = false
        repeat {
            isDone = try await outbox.change { [database] draft in
                guard try !draft.transaction.contains(CursorRecord.key(database.rawValue)) else { return true }
                let keys = try [ChangeRecord.prefix(database), NewestChangeRecord.prefix(database)].flatMap {
                    try draft.transaction.keys($0, limit: Self.droppedMax)
                }
                guard !keys.isEmpty else { return true }
                for key in keys { draft.writes.delete(key) }
                return false
            }
        } while !isDone
    }

    /// The changes of a writer behind a row, about so many bytes of them, and what is known of their firings. Rows that
    /// cannot be read are set aside.
    func load(
        of writer: UserDigest, after last: ChangeRow?, _ page: ChangePage
    ) async throws -> LoadedPage {
        let loaded = try await outbox.store.read { [database] snapshot in
            let prefix = ChangeRecord.prefix(database, of: writer)
            var range = KeyRange(prefix: prefix.bytes)
            if let last { range.lower = last.key.bytes + [0] }
            let (end, isLast) = page.through.addingReportingOverflow(1)
            if !isLast { range.upper = prefix.with(end).bytes }
            guard !range.isEmpty else { return LoadedPage(hasMore: false) }
            var (rows, bytes, hasMore): ([(key: RecordKey, value: [UInt8])], Int, Bool) = ([], 0, false)
            try snapshot.scan(range, reverse: false) { key, value in
                hasMore = rows.count == page.rowsMax || !rows.isEmpty && bytes + value.count > page.bytesMax
                if hasMore { return .stop }
                rows.append((RecordKey(bytes: key.copied), value.copied))
                bytes += key.count + value.count
                return .next
            }
            var loaded = LoadedPage(hasMore: hasMore)
            for row in rows {
                guard let place = ChangeRow(row.key) else { continue }
                loaded.last = place
                guard let record = try? RecordCodec.decode(ChangeRecord.self, row.value, key: row.key.bytes) else {
                    loaded.damaged.append(place)
                    continue
                }
                loaded.append(LoadedChange(row: place, record: record, known: try page.known(record, in: snapshot)))
            }
            return loaded
        }
        if !loaded.damaged.isEmpty {
            try await outbox.change { draft in for row in loaded.damaged { try draft.setAside(row.key) } }
        }
        return loaded
    }
}

/// What was read of the changes of a writer.
struct LoadedPage: Sendable {
    private(set) var changes: [LoadedChange] = []
    /// Rows that cannot be read.
    var damaged: [ChangeRow] = []
    /// The last row.
    var last: ChangeRow?
    /// Whether there may be more behind them.
    var hasMore: Bool
    /// About what it takes in memory.
    private(set) var memoryBytes = 0

    init(hasMore: Bool) { self.hasMore = hasMore }

    fileprivate mutating func append(_ change: LoadedChange) {
        changes.append(change)
        memoryBytes += change.record.change.memoryBytes + change.known.count * Self.bytesPerKnown
    }

    private static let bytesPerKnown = 64
}

/// How much is read of the changes of a writer, and for which triggers.
struct ChangePage: Sendable {
    /// Rows of later commits of the store are not read.
    var through: UInt64
    var rowsMax: Int
    var bytesMax: Int
    var triggers: [FeedTrigger]

    /// How far the firings of a change are: some may have begun before it was read.
    func known(_ record: ChangeRecord, in snapshot: some StoreReading) throws -> [Int: LoadedChange.Known] {
        var known: [Int: LoadedChange.Known] = [:]
        for (index, trigger) in triggers.enumerated() where trigger.fires(for: record.change, of: record.commit) {
            let firing = trigger.compiled.idempotency(of: record.change, in: record.commit)
            let key = IdempotencyRecord.key(scope: firing.scope, firing.key)
            guard let begun = try snapshot.readable(IdempotencyRecord.self, key) else { continue }
            known[index] = begun.through.map { .through($0) } ?? .isDone
        }
        return known
    }
}

extension OutboxDraft {
    /// Drops the oldest changes of a writer, about so many bytes of them.
    fileprivate mutating func dropChanges(
        of writer: UserDigest, in database: DatabaseName, bytes: Int
    ) throws -> ChangeBacklog.Share {
        var dropped = ChangeBacklog.Share(writer: writer)
        let range = KeyRange(prefix: ChangeRecord.prefix(database, of: writer).bytes)
        try transaction.scan(range, reverse: false) { key, value in
            writes.delete(RecordKey(bytes: key.copied))
            dropped.add(RecordKey(bytes: key.copied), value.copied)
            return dropped.bytes < bytes && dropped.rows < Self.writesMax ? .next : .stop
        }
        return dropped
    }
}
