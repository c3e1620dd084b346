import HatoStorage

/// One closure's transaction: it reads the newest state, which only its own thread changes, and adds what it writes to
/// the writer's pending rows.
final class RocksTransaction: CommitTransaction {
    let nextVersion: UInt64
    private(set) var phase = TransactionPhase()
    private(set) var writtenBytes = 0
    private(set) var recorded: [UInt8] = []
    private(set) var note: (any Sendable)?
    /// Whether it deletes a range.
    private(set) var deletesRange = false
    private(set) var prepared: [RocksPreparedRows] = []
    private var hasRecorded = false
    private let writer: RocksWriter

    init(nextVersion: UInt64, writer: RocksWriter) {
        self.nextVersion = nextVersion
        self.writer = writer
    }

    func finish() { phase.finish() }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        phase.willRead()
        return try writer.get(key)
    }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        phase.willRead()
        try writer.scan(range, reverse: reverse, visit)
    }

    func put(_ key: Span<UInt8>, _ value: Span<UInt8>) {
        guard phase.willWrite(key: key) else { return }
        writtenBytes += key.count + value.count
        writer.pending.put(key, value)
    }

    func delete(_ key: Span<UInt8>) {
        guard phase.willWrite(key: key) else { return }
        writtenBytes += key.count
        writer.pending.delete(key)
    }

    func deleteRange(_ range: KeyRange) {
        guard !range.isEmpty, phase.willWrite(key: range.lower.span) else { return }
        writtenBytes += range.lower.count
        deletesRange = true
        let upper = range.upper ?? RocksDatabase.endOfKeys
        writer.pending.deleteRange(range.lower.span, upper.span)
    }

    func take(_ rows: [any PreparedRows]) {
        phase.willWrite()
        precondition(prepared.isEmpty, "a transaction takes prepared rows once")
        for rows in rows {
            guard let rows = rows as? RocksPreparedRows else { preconditionFailure("prepared by another store") }
            prepared.append(rows)
            // Their bytes pass the group by.
            writtenBytes += 1
        }
    }

    func record(_ bytes: Span<UInt8>) {
        phase.willWrite()
        precondition(!hasRecorded, "a transaction records once")
        hasRecorded = true
        writtenBytes += bytes.count
        recorded = Array(bytes)
    }

    func attach(_ note: any Sendable) { self.note = note }
}

/// What the writer's thread does with a RocksDB database.
///
/// Applied transactions gather in one batch: RocksDB takes it at the end of the group, or before a transaction looks at
/// something that was written since. The costs of a write (a record of the log, a system call, finding places in the
/// memtable) are so shared by all writes of the group.
///
/// `@unchecked Sendable`: all of it belongs to the writer's thread.
final class RocksWriter: CommitBackend, @unchecked Sendable {
    let database: RocksDatabase
    /// What was written and is not in the batch.
    fileprivate(set) var pending = PendingRows()
    private let batch: WriteBatch
    private let folder: StoreFolder
    /// Whether there are applied transactions that RocksDB does not have.
    private var isWaiting = false
    /// Whether rows of them are in the batch already, where reads cannot see them.
    private var batchHasRows = false
    /// Why RocksDB did not take a batch; it is not offered again.
    private var failure: StoreError?
    /// Whether the next batch has to take back the note of files that are taken.
    private var owesNote = false
    /// Whether the batch deletes a range.
    private var deletesRange = false
    /// Whether a range tombstone lies, or is about to, in one memtable with many rows that it may cover.
    private var owesRotation = false

    /// A read near a tombstone steps over at most this many covered rows: some 2 ms. Fewer are not worth a file.
    private static let freshRowsMax: UInt64 = 16_384

    init(_ database: RocksDatabase, in folder: StoreFolder) {
        self.database = database
        self.folder = folder
        batch = database.makeBatch()
    }

    func begin(nextVersion: UInt64) -> RocksTransaction {
        RocksTransaction(nextVersion: nextVersion, writer: self)
    }

    // MARK: Reading

    func get(_ key: Span<UInt8>) throws(StoreError) -> [UInt8]? {
        if batchHasRows { try writeBatch() }
        switch pending.find(key) {
        case .value(let value): return value
        case .deleted: return nil
        case .untouched: return try database.get(key, newestOf: database.rows)
        }
    }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        if batchHasRows || pending.touches(range) { try writeBatch() }
        try database.scan(range, at: nil, reverse: reverse, visit)
    }

    // MARK: Writing

    func apply(_ transaction: RocksTransaction) {
        if transaction.deletesRange { deletesRange = true }
        if !pending.apply() {
            pending.handOver(to: batch)
            batchHasRows = true
        }
        batch.putCommit(transaction.nextVersion, record: transaction.recorded)
        if owesNote { batch.putAboutStore(PreparedFiles.noteKey, []) }
        owesNote = false
        isWaiting = true
        // What fails here fails again, and for good, when the group is made durable.
        if !transaction.prepared.isEmpty { try? take(transaction.prepared) }
    }

    /// Behind the transaction that took them; see `RocksPreparedRows`.
    private func take(_ rows: [RocksPreparedRows]) throws(StoreError) {
        batch.putAboutStore(PreparedFiles.noteKey, PreparedFiles.note(of: rows))
        for rows in rows { rows.noteTaken() }
        owesNote = true
        try database.whileNotCopied { () throws(StoreError) in
            try writeBatch()
            do throws(StoreError) {
                try database.syncLog()
                try Failpoint.commitBeforeTake.passOrFail()
                try database.takeFiles(rows.compactMap(\.path).map(RocksPreparedRows.copy))
                try Failpoint.commitAfterTake.passOrFail()
            } catch {
                failure = error
                throw error
            }
        }
        for row in rows { row.noteInPlace() }
    }

    func discard(_: RocksTransaction) { pending.discard() }

    /// Hands all that was applied to RocksDB, unsynced. Called between transactions, or before the first write of one.
    private func writeBatch() throws(StoreError) {
        if let failure { throw failure }
        guard isWaiting else { return }
        pending.handOver(to: batch)
        do throws(StoreError) {
            try Failpoint.commitBeforeApply.passOrFail()
            try rotateIfOwed()
            try database.write(batch)
            try Failpoint.commitAfterApply.passOrFail()
        } catch {
            failure = error
            throw error
        }
        isWaiting = false
        batchHasRows = false
        batch.clear()
    }

    /// Before a tombstone is written, as a rule; else as soon as possible after it: then writing out drops what it covers.
    private func rotateIfOwed() throws(StoreError) {
        if deletesRange, database.freshRows > Self.freshRowsMax { owesRotation = true }
        deletesRange = false
        if owesRotation, try database.rotateRows() { owesRotation = false }
    }

    func snapshot(at version: UInt64) -> any StoreSnapshot {
        // What fails here fails again in `makeDurable`, before which nobody sees the snapshot.
        try? writeBatch()
        return RocksSnapshot(version: version, of: database)
    }

    func makeDurable(through version: UInt64) throws(StoreError) {
        try writeBatch()
        try Failpoint.commitBeforeSync.passOrFail()
        try database.syncLog()
        try Failpoint.commitAfterSync.passOrFail()
        try folder.noteAnswered(version)
    }

    func shutDown() {
        database.close()
        folder.close()
    }
}
