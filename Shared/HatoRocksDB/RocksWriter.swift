import HatoStorage
import Synchronization

/// The commit backend of a RocksDB store.
///
/// Applied transactions are collected in one batch: RocksDB writes it at the end of the group, or before a transaction
/// reads something that was written since. The costs of a write (a record of the log, a system call, inserting into the
/// memtable) are thus shared by all writes of the group. While RocksDB writes what was sealed, on another thread,
/// transactions read those rows here.
///
/// `@unchecked Sendable`: everything belongs to the writer's thread except `sealed`, which belongs to the thread that
/// settles its group; the writer's thread reads its rows, which do not change meanwhile.
final class RocksWriter: CommitBackend, @unchecked Sendable {
    let database: RocksDatabase
    /// What was applied, and what the transaction that is being planned wrote.
    fileprivate(set) var gathering: GatheredWrites
    private var sealed: GatheredWrites
    /// Whether reads must include the sealed rows, since RocksDB may not have them yet.
    private var isSealedPending = false
    private let folder: StoreFolder
    /// The newest commit that was synced in this log; a reader of an older value understates it, which is safe
    /// (`LogMark`).
    private let synced = Atomic<UInt64>(0)
    /// The newest commit that was written to the log, synced or not. Writes run one after the other.
    private let logged = Atomic<UInt64>(0)
    /// Must not be disclosed (`LogMark`).
    private let opening = UInt64.random(in: .min ... .max)
    /// Whether the next batch must remove the note of ingested files.
    private var owesNote = false
    /// Whether a range tombstone is, or will soon be, in one memtable with many rows that it may cover. Belongs to the
    /// thread that writes.
    private var owesRotation = false

    /// A read near a tombstone steps over at most this many covered rows: some 2 ms. Fewer do not justify a file.
    private static let freshRowsMax: UInt64 = 16_384
    /// The same for rows that were removed one by one: mostly readers step over their tombstones, and a flush drops the
    /// removed rows, but not the tombstones.
    private static let freshRemovalsMax: UInt64 = 32_768

    init(_ database: RocksDatabase, in folder: StoreFolder) {
        self.database = database
        self.folder = folder
        gathering = GatheredWrites(for: database)
        sealed = GatheredWrites(for: database)
    }

    func begin(nextVersion: UInt64, derived: (any StoreDerived)?) -> RocksTransaction {
        RocksTransaction(nextVersion: nextVersion, derived: derived, writer: self)
    }

    // MARK: Reading

    func get(_ key: Span<UInt8>) throws(StoreError) -> [UInt8]? {
        if gathering.hidesRows { try writeGathered() }
        var found = gathering.rows.find(key)
        if case .untouched = found, isSealedPending { found = sealed.rows.find(key) }
        switch found {
        case .value(let value): return value
        case .deleted: return nil
        case .untouched: return try database.get(key, newestOf: database.rows)
        }
    }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        if gathering.hidesRows || gathering.rows.touches(range) {
            try writeGathered()
        } else if isSealedPending, sealed.rows.touches(range) {
            try waitForSealed()
        }
        try database.scan(range, at: nil, reverse: reverse, visit)
    }

    // MARK: Writing

    func apply(_ transaction: RocksTransaction) {
        if transaction.deletesRange { gathering.deletesRange = true }
        if !gathering.rows.apply() { gathering.hideRows() }
        gathering.batch.putCommit(transaction.nextVersion, record: transaction.recorded)
        if owesNote { gathering.batch.putAboutStore(PreparedFiles.noteKey, []) }
        owesNote = false
        gathering.noteApplied(transaction.nextVersion)
        // An error here fails the group in `makeDurable`, because `failure` keeps it. RocksDB alone does not stay
        // stopped: it recovers from a full disk by itself as soon as there is space, and would accept later writes.
        if !transaction.prepared.isEmpty { try? take(transaction.prepared) }
    }

    /// Runs after the transaction that took them is applied; see `RocksPreparedRows`.
    private func take(_ rows: [RocksPreparedRows]) throws(StoreError) {
        gathering.batch.putAboutStore(PreparedFiles.noteKey, PreparedFiles.note(of: rows))
        for rows in rows { rows.noteTaken() }
        owesNote = true
        try waitForSealed()
        try database.whileNotCopied { () throws(StoreError) in
            try writeGathered()
            do throws(StoreError) {
                try database.syncLog()
                try Failpoint.commitBeforeTake.passOrFail()
                try database.takeFiles(rows.compactMap(\.path).map(RocksPreparedRows.copy))
                try Failpoint.commitAfterTake.passOrFail()
            } catch {
                gathering.failure = error
                throw error
            }
        }
        for row in rows { row.noteInPlace() }
    }

    func discard(_: RocksTransaction) { gathering.rows.discard() }

    /// Writes what was applied to RocksDB, unsynced, after what was sealed. Called between transactions, or before the
    /// first write of one.
    private func writeGathered() throws(StoreError) {
        try waitForSealed()
        try write(gathering)
        gathering.rows.removeAll()
    }

    private func waitForSealed() throws(StoreError) {
        guard isSealedPending else { return }
        sealed.isWritten.wait()
        // Nothing may be written after a missing commit: every later call fails with the same error.
        if let failure = sealed.failure { throw failure }
        isSealedPending = false
    }

    private func write(_ writes: GatheredWrites) throws(StoreError) {
        if let failure = writes.failure { throw failure }
        if writes.isEmpty { return }
        writes.rows.handOver(to: writes.batch)
        // From here on a failure leaves unknown whether the log has the commit.
        logged.store(writes.newestVersion, ordering: .relaxed)
        do throws(StoreError) {
            try Failpoint.commitBeforeApply.passOrFail()
            try rotateIfOwed(writes)
            let mark = LogMark(opening: opening, synced: synced.load(ordering: .relaxed))
            writes.batch.noteInLog(mark.bytes.span)
            try database.write(writes.batch)
            try Failpoint.commitAfterApply.passOrFail()
        } catch {
            writes.failure = error
            throw error
        }
        writes.noteWritten()
    }

    /// Usually rotates before a tombstone is written, otherwise as soon as possible after it: then the flush drops the
    /// rows it covers.
    private func rotateIfOwed(_ writes: GatheredWrites) throws(StoreError) {
        if writes.deletesRange, database.freshRows > Self.freshRowsMax { owesRotation = true }
        writes.deletesRange = false
        if owesRotation, try database.rotateRows() { owesRotation = false }
        // Applies to the next write: the next group, which then is not overtaken, or its planned part when a
        // transaction reads that. Only when rotation is possible now: until then no group could be overtaken.
        if database.freshRemovals > Self.freshRemovalsMax, database.mayRotateRows { owesRotation = true }
    }

    // MARK: Groups

    func seal() -> Bool {
        // Nothing becomes durable after a write that failed.
        if let failure = sealed.failure ?? gathering.failure {
            gathering.failure = failure
            sealed.failure = failure
        }
        sealed.reuse()
        swap(&gathering, &sealed)
        // True also when RocksDB has everything: nothing may be written after it until its snapshot is taken.
        isSealedPending = sealed.hasCommits
        // Hidden rows cannot be read, and a group that rotates must not be overtaken.
        return !sealed.hidesRows && !sealed.deletesRange && !owesRotation
    }

    func snapshot(at version: UInt64, derived: (any StoreDerived)?) -> any StoreSnapshot {
        // An error here recurs in `makeDurable`, before which the snapshot is not published.
        try? write(sealed)
        defer { sealed.isWritten.open() }
        return RocksSnapshot(version: version, derived: derived, of: database)
    }

    func makeDurable(through version: UInt64) throws(StoreError) {
        defer { sealed.isWritten.open() }
        try write(sealed)
        try Failpoint.commitBeforeSync.passOrFail()
        try database.syncLog()
        synced.store(version, ordering: .relaxed)
        try Failpoint.commitAfterSync.passOrFail()
        try folder.noteAcknowledged(version)
    }

    /// Throws when a flush or compaction has failed since the database was opened. After some failures, e.g. of a
    /// compaction on a full disk, RocksDB only stops compacting and accepts writes until it stalls, and no call returns
    /// an error.
    func checkHealth() throws(StoreError) {
        let count = database.backgroundErrors
        guard count == 0 else {
            throw .io(
                "background work of the database in \(database.folder) has failed (rocksdb.background_errors: \(count)); "
                    + "usually the disk is full or a file is damaged"
            )
        }
    }

    var loggedVersion: UInt64 { logged.load(ordering: .relaxed) }

    func shutDown() {
        database.close()
        folder.close()
    }
}

/// Transactions that RocksDB takes with one write.
final class GatheredWrites {
    /// The rows that RocksDB has not been given yet; after that they stay here for transactions that cannot read them
    /// from RocksDB yet.
    var rows = PendingRows()
    private(set) var batch: WriteBatch
    private let database: RocksDatabase
    /// Whether RocksDB has everything.
    private(set) var isEmpty = true
    /// Whether a transaction was applied to it, whether or not RocksDB has it already.
    private(set) var hasCommits = false
    /// The version of the last transaction that was applied to it.
    private(set) var newestVersion: UInt64 = 0
    /// Whether some rows are in the batch only, where reads cannot see them.
    private(set) var hidesRows = false
    /// Whether the batch deletes a range.
    var deletesRange = false
    /// The error because of which RocksDB did not take it, or something before it; it is not written again.
    var failure: StoreError?
    /// Open when reads and snapshots of RocksDB see everything.
    private(set) var isWritten = Latch()

    init(for database: RocksDatabase) {
        self.database = database
        batch = database.makeBatch()
    }

    /// Called when rows cannot be kept in order.
    func hideRows() {
        rows.handOver(to: batch)
        rows.removeAll()
        hidesRows = true
    }

    func noteApplied(_ version: UInt64) {
        isEmpty = false
        newestVersion = version
        hasCommits = true
    }

    func noteWritten() {
        isEmpty = true
        hidesRows = false
        // A cleared batch keeps its buffer.
        if batch.byteCount > PendingRows.keptBytesMax { batch = database.makeBatch() } else { batch.clear() }
    }

    /// Prepares it for other transactions, when no read needs these rows here any more.
    func reuse() {
        rows.removeAll()
        hasCommits = false
        isWritten = Latch()
    }
}
