import HatoStorage
import Synchronization

/// What a store's writer does with a RocksDB database.
///
/// Applied transactions gather in one batch: RocksDB takes it at the end of the group, or before a transaction looks
/// at something that was written since. The costs of a write (a record of the log, a system call, finding places in
/// the memtable) are so shared by all writes of the group. While RocksDB takes what was sealed, on another thread,
/// transactions find those rows here.
///
/// `@unchecked Sendable`: everything belongs to the writer's thread but `sealed`, which belongs to whoever carries
/// its group to the end; the writer's thread reads its rows, which do not change meanwhile.
final class RocksWriter: CommitBackend, @unchecked Sendable {
    let database: RocksDatabase
    /// What was applied, and what the transaction that is being planned wrote.
    fileprivate(set) var gathering: GatheredWrites
    private var sealed: GatheredWrites
    /// Whether reads have to look at the sealed rows: RocksDB may not have them yet.
    private var isSealedPending = false
    private let folder: StoreFolder
    /// The newest commit that was synced in this log; whoever reads an older one says less than is true (`LogMark`).
    private let synced = Atomic<UInt64>(0)
    /// The newest commit that was handed to the log, synced or not. Writes are one after the other.
    private let logged = Atomic<UInt64>(0)
    /// Told to nobody (`LogMark`).
    private let opening = UInt64.random(in: .min ... .max)
    /// Whether the next batch has to take back the note of files that are taken.
    private var owesNote = false
    /// Whether a range tombstone lies, or is about to, in one memtable with many rows that it may cover. Belongs to
    /// whoever writes.
    private var owesRotation = false

    /// A read near a tombstone steps over at most this many covered rows: some 2 ms. Fewer are not worth a file.
    private static let freshRowsMax: UInt64 = 16_384
    /// The same of rows that were removed one by one: what steps over them is mostly a reader, and writing them out
    /// drops the rows that they removed, not them.
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
        // What fails here is told when the group is made durable, by the note of it in `failure`. RocksDB alone does
        // not stay stopped: from a full disk it recovers by itself as soon as there is room, and would take what
        // comes next.
        if !transaction.prepared.isEmpty { try? take(transaction.prepared) }
    }

    /// Behind the transaction that took them; see `RocksPreparedRows`.
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

    /// Hands what was applied to RocksDB, unsynced, behind what was sealed. Called between transactions, or before the
    /// first write of one.
    private func writeGathered() throws(StoreError) {
        try waitForSealed()
        try write(gathering)
        gathering.rows.removeAll()
    }

    private func waitForSealed() throws(StoreError) {
        guard isSealedPending else { return }
        sealed.isWritten.wait()
        // What comes behind a missing commit must not be there either: whoever asks again is told again.
        if let failure = sealed.failure { throw failure }
        isSealedPending = false
    }

    private func write(_ writes: GatheredWrites) throws(StoreError) {
        if let failure = writes.failure { throw failure }
        if writes.isEmpty { return }
        writes.rows.handOver(to: writes.batch)
        // From here on a failure does not tell whether the log has it.
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

    /// Before a tombstone is written, as a rule; else as soon as possible after it: then writing out drops what it
    /// covers.
    private func rotateIfOwed(_ writes: GatheredWrites) throws(StoreError) {
        if writes.deletesRange, database.freshRows > Self.freshRowsMax { owesRotation = true }
        writes.deletesRange = false
        if owesRotation, try database.rotateRows() { owesRotation = false }
        // With what is written next: the next group, which then is not overtaken, or what was planned of it when
        // somebody looks at that. Only when it can be done: till then no group would be overtaken.
        if database.freshRemovals > Self.freshRemovalsMax, database.mayRotateRows { owesRotation = true }
    }

    // MARK: Groups

    func seal() -> Bool {
        // Nothing is durable behind a write that failed.
        if let failure = sealed.failure ?? gathering.failure {
            gathering.failure = failure
            sealed.failure = failure
        }
        sealed.reuse()
        swap(&gathering, &sealed)
        // Also when RocksDB has it all: until its snapshot is taken, nothing may be written behind it.
        isSealedPending = sealed.hasCommits
        // Rows that are hidden cannot be found, and who rotates must not be overtaken.
        return !sealed.hidesRows && !sealed.deletesRange && !owesRotation
    }

    func snapshot(at version: UInt64, derived: (any StoreDerived)?) -> any StoreSnapshot {
        // What fails here fails again in `makeDurable`, before which nobody sees the snapshot.
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
        try folder.noteAnswered(version)
    }

    /// Throws when a flush or compaction has failed since the database was opened. After some failures, e.g. of a
    /// compaction on a full disk, RocksDB only stops compacting and takes writes until it stalls, and no call returns
    /// an error.
    func checkHealth() throws(StoreError) {
        let count = database.backgroundErrors
        guard count == 0 else {
            throw .io(
                "background work of the database in \(database.folder) has failed (\(count) times); its file LOG says why"
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
    /// What RocksDB was not handed yet; when it was, it is still here, for those who cannot read it there yet.
    var rows = PendingRows()
    private(set) var batch: WriteBatch
    private let database: RocksDatabase
    /// Whether RocksDB has everything.
    private(set) var isEmpty = true
    /// Whether a transaction was applied to it, be it in RocksDB already or not.
    private(set) var hasCommits = false
    /// That of the last transaction that was applied to it.
    private(set) var newestVersion: UInt64 = 0
    /// Whether there are rows that only the batch has, where reads cannot see them.
    private(set) var hidesRows = false
    /// Whether the batch deletes a range.
    var deletesRange = false
    /// Why RocksDB did not take it, or something before it; it is not offered again.
    var failure: StoreError?
    /// Open when reads and snapshots of RocksDB see everything.
    private(set) var isWritten = Latch()

    init(for database: RocksDatabase) {
        self.database = database
        batch = database.makeBatch()
    }

    /// Where rows cannot be kept in order.
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
        // A batch that is cleared keeps its buffer.
        if batch.byteCount > PendingRows.keptBytesMax { batch = database.makeBatch() } else { batch.clear() }
    }

    /// For other transactions, when nobody looks for these rows here any more.
    func reuse() {
        rows.removeAll()
        hasCommits = false
        isWritten = Latch()
    }
}
