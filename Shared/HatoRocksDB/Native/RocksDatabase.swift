import CRocksDB
import HatoStorage
import Synchronization

/// One open RocksDB database with the three column families of a store.
///
/// - `default`: the metadata of the store, by name.
/// - `rows`: the rows of the store's owner.
/// - `commits`: the record of every kept commit, under its version (8 bytes, most significant first). They are written
///   in rising order and never changed, so compaction only moves their files; in a family of their own they do not take
///   part in rewriting rows, and old ones are dropped by whole files. The newest stays even when it has been compacted:
///   it holds the version of the rows.
///
/// **Closing.** Reads enter a gate and leave it; `close` shuts the gate, waits for those inside, and only then frees
/// anything. A snapshot that outlives the database finds the gate shut. Iterators live inside one `scan`.
///
/// `@unchecked Sendable`: the handles never change and RocksDB may be called from every thread; what is freed in
/// `close` is used inside the gate, or by the writer, which calls `close` itself.
final class RocksDatabase: @unchecked Sendable {
    private static let families: [StaticString] = ["default", "rows", "commits"]
    /// RocksDB deletes ranges with an upper bound only; no key is as long as this one.
    static let endOfKeys = [UInt8](repeating: 0xFF, count: StoreLimits.keyBytesMax + 1)

    /// The database's folder; errors name it.
    let folder: String
    let handle: OpaquePointer
    let about: OpaquePointer
    let rows: OpaquePointer
    let commits: OpaquePointer
    private let unsynced: OpaquePointer
    private let synced: OpaquePointer
    private let newest = NativeReadOptions(snapshot: nil)
    let cache: BlockCache
    private let gate = UsageGate()
    /// The snapshots that are not released.
    private let snapshots = Mutex<Set<NativeSnapshot>>([])
    private let copying = Mutex<Void>(())
    /// The error because of which the log takes no more writes. Held during every write to the log and every sync.
    private let log = Mutex<StoreError?>(nil)
    private let preparer: LogPreparer?

    /// - Parameter memtableShare: the database's share of the memory's memtables.
    init(
        folder: String, memory: RocksDBMemory, memtableShare: Double = 1,
        for purpose: DatabasePurpose = .writing(preparedLogBytes: 0)
    ) throws(StoreError) {
        let bytes = Int(Double(memory.memtableBytes) * memtableShare)
        let database = NativeOptions()
        let rowOptions = NativeOptions()
        let commitOptions = NativeOptions()
        database.setDatabase(memtableBytes: bytes)
        purpose.choose(database)
        database.setTables(cache: memory.cache, writeBufferBytes: 1 << 20, writeBuffersMax: 2)
        rowOptions.setTables(cache: memory.cache, writeBufferBytes: bytes / 2, writeBuffersMax: 3)
        commitOptions.setTables(cache: memory.cache, writeBufferBytes: bytes / 4, writeBuffersMax: 2)
        if case .settling = purpose {
            database.compactNothing()
            rowOptions.compactNothing()
            commitOptions.compactNothing()
        }
        let options: [OpaquePointer?] = [database.handle, rowOptions.handle, commitOptions.handle]
        var handles: [OpaquePointer?] = [nil, nil, nil]
        // A static string ends in a zero byte and is never freed.
        let names = Self.families.map { Optional(UnsafeRawPointer($0.utf8Start).assumingMemoryBound(to: CChar.self)) }
        let opened = try checked("open the database", folder) { error in
            switch purpose {
            case .reading:
                rocksdb_open_for_read_only_column_families(
                    database.handle, folder, Int32(names.count), names, options, &handles, 0, error)
            case .writing, .settling:
                rocksdb_open_column_families(
                    database.handle, folder, Int32(names.count), names, options, &handles, error)
            }
        }
        guard let opened, let about = handles[0], let rows = handles[1], let commits = handles[2] else {
            throw .io("cannot open the database in \(folder) (RocksDB does not say why)")
        }
        self.folder = folder
        (handle, self.about, self.rows, self.commits) = (opened, about, rows, commits)
        cache = memory.cache
        unsynced = rocksdb_writeoptions_create()
        synced = rocksdb_writeoptions_create()
        rocksdb_writeoptions_set_sync(synced, 1)
        preparer = purpose.preparer(of: folder)
    }

    deinit { close() }

    func close() {
        guard gate.close() else { return }
        preparer?.close()
        for snapshot in snapshots.withLock({ $0 }) { rocksdb_release_snapshot(handle, snapshot.handle) }
        rocksdb_writeoptions_destroy(unsynced)
        rocksdb_writeoptions_destroy(synced)
        for family in [about, rows, commits] { rocksdb_column_family_handle_destroy(family) }
        rocksdb_close(handle)
    }

    /// Runs `body` and keeps the database open meanwhile.
    func whileOpen<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
        guard gate.enter() else { throw .closed(cause: nil) }
        defer { gate.leave() }
        return try body()
    }

    /// Visits rows and keeps the database open meanwhile.
    func scanWhileOpen(
        _ range: KeyRange, by options: consuming NativeReadOptions, reverse: Bool,
        _ visit: (Span<UInt8>, Span<UInt8>) throws -> ScanStep
    ) throws {
        guard gate.enter() else { throw StoreError.closed(cause: nil) }
        defer { gate.leave() }
        try scan(range, by: options, reverse: reverse, visit)
    }

    // MARK: Writing (the writer's two threads, see `RocksWriter`)

    func makeBatch() -> WriteBatch { WriteBatch(rows: rows, commits: commits, about: about) }

    /// Applies the batch as one record of the log, not synced.
    func write(_ batch: borrowing WriteBatch) throws(StoreError) { try write(batch, by: unsynced) }

    private func write(_ batch: borrowing WriteBatch, by options: OpaquePointer) throws(StoreError) {
        let (changes, bytes) = (batch.handle, batch.byteCount)
        try usingLog { () throws(StoreError) in
            preparer?.willWrite(bytes)
            try checked("write to the database", folder) { rocksdb_write(handle, options, changes, $0) }
            preparer?.didWrite()
        }
    }

    /// Allows one write or sync at a time, and none after one that failed: a sync of a log on which a write has failed
    /// makes a RocksDB that is built with assertions (Debian's) abort the process; other builds may sync the bytes
    /// around a torn record, or write more after it. RocksDB does not check the log's state under a lock that writes
    /// take, so a write waits for a running sync; only writes of a group whose rows were read before its turn do.
    func usingLog(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        let failure = log.withLock { known -> StoreError? in
            if known != nil { return known }
            do throws(StoreError) {
                try body()
            } catch {
                known = error
            }
            return known
        }
        if let failure { throw failure }
    }

    func syncLog() throws(StoreError) {
        try usingLog { () throws(StoreError) in
            try checked("sync the log of the database", folder) { rocksdb_flush_wal(handle, 1, $0) }
            preparer?.didSync()
        }
    }

    // MARK: Prepared rows

    /// Ingests files of rows, all at once, above everything written before; the files are moved. Durable when it
    /// returns.
    func takeFiles(_ paths: [String]) throws(StoreError) {
        guard !paths.isEmpty else { return }
        let options = rocksdb_ingestexternalfileoptions_create()
        defer { rocksdb_ingestexternalfileoptions_destroy(options) }
        rocksdb_ingestexternalfileoptions_set_move_files(options, 1)
        try withCStrings(paths) { paths throws(StoreError) in
            try checked("put files of rows in their place", folder) {
                rocksdb_ingest_external_file_cf(handle, rows, paths, paths.count, options, $0)
            }
        }
    }

    private func withCStrings(
        _ texts: [String], _ body: ([UnsafePointer<CChar>?]) throws(StoreError) -> Void
    ) throws(StoreError) {
        let buffers = texts.map { text in
            let bytes = text.utf8CString
            let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
            for (index, byte) in bytes.enumerated() { (buffer + index).initialize(to: byte) }
            return buffer
        }
        defer { for buffer in buffers { buffer.deallocate() } }
        try body(buffers.map { UnsafePointer($0) })
    }

    /// Runs `body` exclusively: a copy of the database and a pair of steps that must not be copied halfway never run at
    /// the same time.
    func whileNotCopied(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        let failure = copying.withLock { _ -> StoreError? in
            do throws(StoreError) {
                try body()
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
    }

    /// Flushes the newest rows when some of this range are only in memory: ingesting a file above them would make the
    /// writer wait for that.
    func writeOutRows(from lower: [UInt8], through upper: [UInt8]) throws(StoreError) {
        guard try hasRowInMemory(from: lower, through: upper) else { return }
        let options = rocksdb_flushoptions_create()
        defer { rocksdb_flushoptions_destroy(options) }
        try checked("write out the database", folder) { rocksdb_flush_cf(handle, options, rows, $0) }
    }

    private func hasRowInMemory(from lower: [UInt8], through upper: [UInt8]) throws(StoreError) -> Bool {
        let options = NativeReadOptions(snapshot: nil)
        options.readMemoryOnly()
        let iterator = NativeIterator(handle, options, rows)
        lower.withUnsafeBytes { iterator.seek($0) }
        guard iterator.isAtRow else {
            try iterator.checkEnd(in: folder)
            return false
        }
        return !upper.span.precedes(iterator.key.span)
    }

    // MARK: Reading

    func takeSnapshot() -> NativeSnapshot {
        let snapshot = NativeSnapshot(handle: rocksdb_create_snapshot(handle))
        snapshots.withLock { _ = $0.insert(snapshot) }
        return snapshot
    }

    /// Does nothing after `close`, which releases every snapshot.
    func release(_ snapshot: NativeSnapshot) {
        guard gate.enter() else { return }
        defer { gate.leave() }
        snapshots.withLock { _ = $0.remove(snapshot) }
        rocksdb_release_snapshot(handle, snapshot.handle)
    }

    func get(_ key: Span<UInt8>, newestOf family: OpaquePointer) throws(StoreError) -> [UInt8]? {
        try get(key, family, newest)
    }

    func get(
        _ key: Span<UInt8>, _ family: OpaquePointer, _ options: borrowing NativeReadOptions
    ) throws(StoreError) -> [UInt8]? {
        if family == rows { try Failpoint.storeRead.passOrFail() }
        let found = try key.withUnsafeBytes { key throws(StoreError) in
            try checked("read the database", folder) {
                hato_get(handle, options.handle, family, key.baseAddress, key.count, $0)
            }
        }
        guard let found else { return nil }
        defer { rocksdb_pinnableslice_destroy(found) }
        var count = 0
        guard let start = rocksdb_pinnableslice_value(found, &count), count > 0 else { return [] }
        return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
    }

    /// Visits rows at `snapshot` (nil: the newest state).
    func scan(
        _ range: KeyRange, at snapshot: NativeSnapshot?, reverse: Bool,
        _ visit: (Span<UInt8>, Span<UInt8>) throws -> ScanStep
    ) throws {
        try scan(range, by: NativeReadOptions(snapshot: snapshot), reverse: reverse, visit)
    }

    /// - Parameter given: options for this scan only.
    private func scan(
        _ range: KeyRange, by given: consuming NativeReadOptions, reverse: Bool,
        _ visit: (Span<UInt8>, Span<UInt8>) throws -> ScanStep
    ) throws {
        if range.isEmpty { return }
        try Failpoint.storeRead.passOrFail()
        let options = given
        // RocksDB keeps the addresses of the bounds, not their bytes: they must stay in place until the iterator is
        // freed.
        try range.lower.withUnsafeBytes { lower in
            try (range.upper ?? Self.endOfKeys).withUnsafeBytes { upper in
                hato_set_bounds(options.handle, lower.baseAddress, lower.count, upper.baseAddress, upper.count)
                let iterator = NativeIterator(handle, options, rows)
                if reverse { iterator.seekToLast() } else { iterator.seekToFirst() }
                while iterator.isAtRow {
                    let key = iterator.key
                    switch try visit(key.span, iterator.value.span) {
                    case .next: iterator.move(reverse: reverse)
                    case .stop: return
                    case .seek(let target):
                        if reverse ? target.span.precedes(key.span) : key.span.precedes(target.span) {
                            iterator.move(to: target, reverse: reverse)
                        } else {
                            iterator.move(reverse: reverse)
                        }
                    }
                }
                try iterator.checkEnd(in: folder)
            }
        }
    }

    // MARK: Metadata of the store

    func aboutStore(_ name: String) throws(StoreError) -> [UInt8]? {
        try get(Array(name.utf8).span, newestOf: about)
    }

    /// Durable when it returns, and flushed out of the log: a family that is rarely written would keep old logs from
    /// being dropped.
    func setAboutStore(_ name: String, _ value: [UInt8]) throws(StoreError) {
        let batch = WriteBatch(rows: about, commits: about, about: about)
        batch.put(Array(name.utf8).span, value.span)
        try write(batch, by: synced)
        let options = rocksdb_flushoptions_create()
        defer { rocksdb_flushoptions_destroy(options) }
        try checked("write out the database", folder) { rocksdb_flush_cf(handle, options, about, $0) }
    }

    /// The version of the newest commit whose record exists; nil when there is none.
    func newestCommit() throws(StoreError) -> UInt64? {
        let iterator = NativeIterator(handle, newest, commits)
        iterator.seekToLast()
        guard iterator.isAtRow else {
            try iterator.checkEnd(in: folder)
            return nil
        }
        return UInt64(bigEndianBytes: iterator.key.span)
    }

    /// Records of commits up to this version were removed.
    func compactedVersion() throws(StoreError) -> UInt64 {
        try aboutStore("compacted").flatMap { UInt64(bigEndianBytes: $0.span) } ?? 0
    }

    /// The commits that are missing although later ones exist: when a file of the log lost its end, or is gone, RocksDB
    /// continues with the next one without an error. Removed records are not missing.
    ///
    /// Checks the commits that came from the log, with the one before them in the tables, and all after `version`. A
    /// database that is open for reading has as many of them in memory; one that is open for writing has none there.
    func missingCommits(after version: UInt64) throws(StoreError) -> [ClosedRange<UInt64>] {
        var known = version
        if let first = try oldestCommitOfLog() { known = min(known, try newestCommit(before: first) ?? 0) }
        known = max(known, try compactedVersion())
        guard known < .max else { return [] }
        var missing: [ClosedRange<UInt64>] = []
        var expected = known + 1
        let options = NativeReadOptions(snapshot: nil)
        options.leaveCache()
        try visitCommits(from: expected, at: options) { found, _ in
            guard let found, found >= expected else { return true }
            if found > expected { missing.append(expected...(found - 1)) }
            expected = found &+ 1
            return true
        }
        return missing
    }

    /// The existing commits after `version`.
    func commits(after version: UInt64) throws(StoreError) -> VersionRanges {
        var found = VersionRanges()
        guard version < .max else { return found }
        let options = NativeReadOptions(snapshot: nil)
        options.leaveCache()
        try visitCommits(from: version + 1, at: options) { version, _ in
            if let version { found.insert(version) }
            return true
        }
        return found
    }

    /// The ids of its column families in the log.
    var logFamilies: LogContents.Families {
        LogContents.Families(
            about: rocksdb_column_family_handle_get_id(about), commits: rocksdb_column_family_handle_get_id(commits))
    }

    /// The oldest commit that no table holds.
    private func oldestCommitOfLog() throws(StoreError) -> UInt64? {
        let options = NativeReadOptions(snapshot: nil)
        options.readMemoryOnly()
        let iterator = NativeIterator(handle, options, commits)
        iterator.seekToFirst()
        guard iterator.isAtRow else {
            try iterator.checkEnd(in: folder)
            return nil
        }
        return UInt64(bigEndianBytes: iterator.key.span)
    }

    /// - Parameter version: the version of an existing commit.
    private func newestCommit(before version: UInt64) throws(StoreError) -> UInt64? {
        let iterator = NativeIterator(handle, newest, commits)
        version.bigEndianBytes.withUnsafeBytes { iterator.seek($0) }
        if iterator.isAtRow { iterator.previous() }
        guard iterator.isAtRow else {
            try iterator.checkEnd(in: folder)
            return nil
        }
        return UInt64(bigEndianBytes: iterator.key.span)
    }

    /// Visits the records of commits from `version` on until the closure returns false.
    func visitCommits(
        from version: UInt64, at options: borrowing NativeReadOptions,
        _ visit: (_ version: UInt64?, _ record: Span<UInt8>) -> Bool
    ) throws(StoreError) {
        let iterator = NativeIterator(handle, options, commits)
        version.bigEndianBytes.withUnsafeBytes { iterator.seek($0) }
        while iterator.isAtRow {
            guard visit(UInt64(bigEndianBytes: iterator.key.span), iterator.value.span) else { return }
            iterator.next()
        }
        try iterator.checkEnd(in: folder)
    }

    /// Drops records of commits up to `version`: whole files at once, the rest by one tombstone.
    func dropCommits(through version: UInt64) throws(StoreError) {
        let batch = WriteBatch(rows: commits, commits: commits, about: about)
        let (lower, upper) = (UInt64(0).bigEndianBytes, (version + 1).bigEndianBytes)
        batch.deleteRange(lower.span, upper.span)
        try write(batch)
        let last = version.bigEndianBytes
        try checked("drop records of commits", folder) {
            hato_delete_files_in_range(handle, commits, lower, lower.count, last, last.count, $0)
        }
    }

    /// About how many bytes a range takes in the files; rows that are only in memory are not included.
    func fileBytes(of range: KeyRange, in family: OpaquePointer) throws(StoreError) -> UInt64 {
        let (lower, upper) = (range.lower, range.upper ?? Self.endOfKeys)
        var size: UInt64 = 0
        try checked("estimate what the database takes", folder) {
            hato_approximate_size(handle, family, lower, lower.count, upper, upper.count, &size, $0)
        }
        return size
    }

    /// Bytes of the records after `version` up to `newest`: their size on disk, and their share of what is still in
    /// memory.
    func commitBytes(after version: UInt64, through newest: UInt64) -> UInt64 {
        let size = (try? fileBytes(of: KeyRange(lower: (version + 1).bigEndianBytes, upper: nil), in: commits)) ?? 0
        // Memory holds the newest records, and releases none before all of them are written out. They are assumed to be
        // of equal size.
        let entries =
            property("rocksdb.num-entries-active-mem-table", of: commits)
            + property("rocksdb.num-entries-imm-mem-tables", of: commits)
        guard entries > 0 else { return size }
        let share = min(1, Double(newest - version) / Double(entries))
        return size + UInt64(share * Double(property("rocksdb.cur-size-all-mem-tables", of: commits)))
    }

    // MARK: Copies

    /// Writes a checkpoint of everything applied so far to `folder`, which does not exist yet and must be on the same
    /// disk: its tables are links, the log is copied. Flush before (`writeOut`): then there is little to copy, and
    /// ingesting prepared rows hardly waits.
    func link(to folder: String) throws(StoreError) {
        try whileNotCopied { () throws(StoreError) in try linkAnyState(to: folder) }
    }

    /// The same while prepared rows may be ingested: the copy may have their commit without them. For checks of the
    /// tables only; it delays nothing.
    func linkAnyState(to folder: String) throws(StoreError) {
        let checkpoint = try checked("copy the database", self.folder) {
            rocksdb_checkpoint_object_create(handle, $0)
        }
        defer { rocksdb_checkpoint_object_destroy(checkpoint) }
        // Never flushes, however long the log is: flushing may have to wait for a compaction.
        try checked("copy the database", self.folder) { rocksdb_checkpoint_create(checkpoint, folder, .max, $0) }
    }

    /// Flushes everything that is only in memory and in the log.
    func writeOut() throws(StoreError) {
        let options = rocksdb_flushoptions_create()
        defer { rocksdb_flushoptions_destroy(options) }
        for family in [about, rows, commits] {
            try checked("write out the database", folder) { rocksdb_flush_cf(handle, options, family, $0) }
        }
    }
}

extension NativeIterator {
    fileprivate func move(reverse: Bool) {
        if reverse { previous() } else { next() }
    }

    fileprivate func move(to target: [UInt8], reverse: Bool) {
        target.withUnsafeBytes { if reverse { seekForPrevious($0) } else { seek($0) } }
    }
}

extension UInt64 {
    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }

    /// Nil unless there are exactly eight bytes.
    init?(bigEndianBytes bytes: Span<UInt8>) {
        guard bytes.count == 8 else { return nil }
        var number: UInt64 = 0
        for place in 0..<8 { number = number << 8 | UInt64(bytes[place]) }
        self = number
    }
}
