public import HatoStorage
import Synchronization

/// The store of `HatoStorage` in one RocksDB folder.
///
/// **Opening.** The format is read and the folder locked before RocksDB opens it. The commits that RocksDB recovers
/// from its log must be a prefix of whole commits: the newest version is not below the one in the `answered` file, and
/// none is missing before it. A record torn by a crash at the log's end is cut first, when no acknowledged commit is
/// lost by that; see `TornLog`.
///
/// **Writing.** A batch, which is one record of the log, holds whole transactions: rows, change record and version are
/// written together or not at all. One sync of the log serves a group. Before it writes a memtable out, RocksDB syncs
/// the logs of its rows, so rows are never on disk before their commits.
public final class RocksDBStore: Store {
    public let epoch: StoreEpoch
    let database: RocksDatabase
    private let writer: GroupCommit<RocksWriter>
    private let readers: ReaderThreads
    private let limits: StoreLimits
    private let prepared: PreparedFiles
    private let memory: RocksDBMemory
    /// The folder of copies that are being made.
    let copying: String
    private let lastCopy = Atomic<UInt64>(0)
    /// Records up to this version were removed. Written with `compaction` locked.
    private let compacted: Atomic<UInt64>
    private let compaction = Mutex<Void>(())

    /// Opens the store in `folder`, which is created when it is missing.
    /// Throws `.locked` when the folder is open elsewhere, `.newerFormat`, `.lostCommits` when acknowledged commits are
    /// missing, `.corrupted` (also when commits are missing before later ones), and `.io` when the folder cannot be
    /// written (or belongs to another user, or to another service).
    ///
    /// - Parameter service: the service that owns the data: noted in the folder the first time, compared with that
    ///   later.
    public static func open(
        folder: String, of service: String? = nil, options: RocksDBOptions = RocksDBOptions()
    ) throws(StoreError) -> RocksDBStore {
        let storeFolder = try StoreFolder(opening: folder)
        do {
            if let service { try storeFolder.belong(to: service) }
            return try RocksDBStore(storeFolder, options)
        } catch {
            storeFolder.close()
            throw error
        }
    }

    private init(_ folder: StoreFolder, _ options: RocksDBOptions) throws(StoreError) {
        let isUnopenedCopy = folder.isCopy && !folder.isNew
        if isUnopenedCopy { try folder.checkCopy() }
        let missing = try Self.lookBeforeOpening(folder, options)
        // Not before the check: the check changes no file, and a backup that is refused stays one.
        if isUnopenedCopy { try folder.noteOpeningCopy() }
        // Opening writes the log's commits into tables. Until the new epoch is written, a later opening must find them
        // missing again.
        if let first = missing.first { try folder.resetAcknowledged(to: first.lowerBound - 1) }
        if !folder.isNew { try folder.checkFreeSpace() }
        let database = try RocksDatabase(
            folder: folder.databasePath, memory: options.memory, memtableShare: options.memtableShare,
            for: .writing(preparedLogBytes: options.preparedLogBytes))
        try Failpoint.openAfterRecovery.passOrFail()
        let version = try database.newestCommit() ?? 0
        if folder.isNew, version > 0 { throw StoreFolder.formatIsMissing(folder.path, commits: version) }
        let forgotten = max(try database.compactedVersion(), missing.last?.upperBound ?? 0)
        if forgotten > version {
            throw .corrupted("\(folder.path): records are removed up to \(forgotten), but the newest is \(version)")
        }
        let isOlder = try Self.checkAcknowledged(folder, version, isLossAccepted: options.acceptsLostCommits)
        let hasLost = isOlder || !missing.isEmpty
        epoch = try Self.epoch(of: database, isAnotherHistory: folder.isCopy || hasLost)
        // No follower can read across what is missing.
        if !missing.isEmpty { try database.setAboutStore("compacted", forgotten.bigEndianBytes) }
        if hasLost { try folder.resetAcknowledged(to: version) }
        if folder.isCopy { try folder.forgetItIsACopy() }
        prepared = try PreparedFiles(folder.preparedPath, recovering: database)
        copying = folder.copyingPath
        // Links in this folder keep tables on disk that compaction has replaced.
        Files.removeFolder(copying)
        if folder.isNew { try folder.finishCreating() } else { try folder.raiseFormat() }
        try folder.startAcknowledging()

        self.database = database
        memory = options.memory
        limits = options.limits
        compacted = Atomic(forgotten)
        readers = try ReaderThreads(options.limits)
        writer = try GroupCommit(
            RocksWriter(database, in: folder), at: RocksSnapshot(version: version, derived: nil, of: database),
            limits: options.limits)
    }

    deinit { writer.stop() }

    /// Opening a database for writing deletes the files that its manifest does not name. If the manifest was cut short,
    /// these files hold acknowledged commits: so it is read first, and nothing is changed when too little is found.
    /// When the reason is a log torn by a crash, its end is cut (`TornLog`).
    ///
    /// Returns the commits that are missing before the newest; there are none unless that is accepted.
    private static func lookBeforeOpening(
        _ folder: StoreFolder, _ options: RocksDBOptions
    ) throws(StoreError) -> [ClosedRange<UInt64>] {
        if folder.isNew { return [] }
        do throws(StoreError) {
            return try missingCommits(of: folder, options)
        } catch {
            do throws(StoreError) {
                if case .corrupted = error, let missing = try cutTornLog(of: folder, options) { return missing }
            } catch {
                // This error has more details.
                if !options.acceptsLostCommits { throw error }
            }
            // Opening reports what cannot be read.
            if options.acceptsLostCommits { return [] }
            throw error
        }
    }

    /// Returns the commits that are missing after the cut; nil when there is no torn log.
    private static func cutTornLog(
        of folder: StoreFolder, _ options: RocksDBOptions
    ) throws(StoreError) -> [ClosedRange<UInt64>]? {
        guard let torn = try TornLog.find(in: folder.databasePath) else { return nil }
        let trial = folder.copyingPath + "/log"
        Files.removeFolder(trial)
        defer { Files.removeFolder(trial) }
        try torn.layOut(in: trial)
        let missing = try missingCommits(of: folder, options, beside: (torn, trial))
        try Failpoint.openBeforeCut.passOrFail()
        try torn.cut()
        try Failpoint.openAfterCut.passOrFail()
        return missing
    }

    /// Throws when fewer commits are found than were acknowledged, or some are missing, unless that is accepted.
    private static func missingCommits(
        of folder: StoreFolder, _ options: RocksDBOptions, beside trial: (torn: TornLog, folder: String)? = nil
    ) throws(StoreError) -> [ClosedRange<UInt64>] {
        let answered: UInt64
        do throws(StoreError) {
            // Synced commits may have been acknowledged.
            answered = max(try folder.readAcknowledged(), trial?.torn.synced ?? 0)
        } catch {
            if !options.acceptsLostCommits { throw error }
            answered = 0
        }
        let (found, missing) = try look(at: folder, options, after: answered, beside: trial)
        if options.acceptsLostCommits { return missing }
        if found < answered { throw .lostCommits(answered: answered, found: found) }
        if missing.isEmpty { return [] }
        let names = missing.prefix(8).map {
            $0.lowerBound == $0.upperBound ? "\($0.lowerBound)" : "\($0.lowerBound) to \($0.upperBound)"
        }
        throw .corrupted(
            "\(folder.path): commits are missing although later ones, up to \(found), are there: "
                + names.joined(separator: ", ") + "; a part of the log is gone: restore a backup")
    }

    /// Reads the tables with RocksDB, and the log record by record: that takes the same memory however long the log is.
    private static func look(
        at folder: StoreFolder, _ options: RocksDBOptions, after answered: UInt64,
        beside trial: (torn: TornLog, folder: String)?
    ) throws(StoreError) -> (newest: UInt64, missing: [ClosedRange<UInt64>]) {
        // The store's folder contains no log, so only the tables are read.
        let tables = try RocksDatabase(
            folder: folder.databasePath, memory: options.memory, for: .reading(log: trial?.folder ?? folder.path))
        defer { tables.close() }
        let log: LogContents
        switch try LogContents.read(in: folder.databasePath, tables.logFamilies, torn: trial?.torn) {
        case .whole(let contents): log = contents
        case .flawed(let file): return try replay(folder, options, after: answered, file)
        }
        let newest = try tables.newestCommit() ?? 0
        // The tables are complete up to here, or the records were removed.
        let known = max(min(answered, newest), try tables.compactedVersion(), log.forgotten)
        var commits = try tables.commits(after: known)
        commits.formUnion(log.commits)
        return (max(newest, log.commits.newest ?? 0), commits.gaps(after: known))
    }

    /// Lets RocksDB replay a log that is not as it was written, when the log fits into memory.
    private static func replay(
        _ folder: StoreFolder, _ options: RocksDBOptions, after answered: UInt64, _ flawed: String
    ) throws(StoreError) -> (newest: UInt64, missing: [ClosedRange<UInt64>]) {
        let count = try LogContents.byteCount(in: folder.databasePath)
        guard count <= options.memory.memtableBytes else {
            throw .corrupted("\(flawed), a file of the log, is not as it was written: restore a backup")
        }
        let database = try RocksDatabase(folder: folder.databasePath, memory: options.memory, for: .reading())
        defer { database.close() }
        return (try database.newestCommit() ?? 0, try database.missingCommits(after: answered))
    }

    /// True when commits are missing and that is accepted.
    private static func checkAcknowledged(
        _ folder: StoreFolder, _ version: UInt64, isLossAccepted: Bool
    ) throws(StoreError) -> Bool {
        let answered: UInt64
        do {
            answered = try folder.readAcknowledged()
        } catch {
            if isLossAccepted { return true }
            throw error
        }
        if version >= answered || isLossAccepted { return version < answered }
        throw .lostCommits(answered: answered, found: version)
    }

    private static func epoch(of database: RocksDatabase, isAnotherHistory: Bool) throws(StoreError) -> StoreEpoch {
        if !isAnotherHistory, let epoch = try database.aboutStore("epoch") {
            return StoreEpoch(String(decoding: epoch, as: UTF8.self))
        }
        let epoch = StoreEpoch.random()
        try database.setAboutStore("epoch", Array(epoch.description.utf8))
        return epoch
    }

    // MARK: Store

    public var version: UInt64 { writer.version }

    public func snapshot() throws(StoreError) -> any StoreSnapshot { try writer.snapshot() }

    public func submit(_ write: any StoreWrite) { writer.submit(write) }

    public func prepareRows(_ rows: (any StoreWriting) throws -> Void) throws -> any PreparedRows {
        let path = prepared.newPath()
        do {
            // The file has options of its own: those of the open database have a cache that is freed when it closes.
            let file = try PreparedFileWriter(path, memory: memory)
            try rows(file)
            guard let range = try file.finish() else {
                try Files.remove(path)
                return RocksPreparedRows(nil, byteCount: 0)
            }
            try prepared.makeCopy(of: path)
            try database.whileOpen { () throws(StoreError) in
                try database.writeOutRows(from: range.lower, through: range.upper)
            }
            return RocksPreparedRows(path, byteCount: file.byteCount)
        } catch {
            try? Files.remove(path)
            try? Files.remove(RocksPreparedRows.copy(of: path))
            throw error
        }
    }

    public func submitSnapshot(
        of client: String?, endsGroup: Bool,
        _ completion: @escaping @Sendable (Result<any StoreSnapshot, StoreError>) -> Void
    ) {
        writer.submitSnapshot(of: client, endsGroup: endsGroup, completion)
    }

    public func submitRead(of client: String?, isLong: Bool, _ body: @escaping @Sendable () -> Void) {
        readers.submit(of: client, isLong: isLong, body)
    }

    @discardableResult
    public func observeCommits(
        _ observer: @escaping @Sendable (CommitGroup) -> Void, ended: @escaping @Sendable (StoreError) -> Void
    ) -> CommitObservation {
        writer.observe(observer, ended: ended)
    }

    public func commits(after version: UInt64, limit: Int) throws(StoreError) -> [Commit] {
        guard let snapshot = try writer.snapshot() as? RocksSnapshot else { return [] }
        if version > snapshot.version { throw .unknownVersion(newest: snapshot.version) }
        try checkKept(after: version)
        if version == snapshot.version { return [] }
        let commits = try snapshot.commits(after: version, limit: limit, bytesMax: limits.commitsBytesMax)
        if let commits { return commits }
        // A gap: either the records were removed at this moment, or the gap is damage.
        try checkKept(after: version)
        throw .corrupted("a record of the commits after \(version) is missing")
    }

    private func checkKept(after version: UInt64) throws(StoreError) {
        let compacted = compacted.load(ordering: .acquiring)
        if version < compacted { throw .compacted(oldest: compacted + 1) }
    }

    public func compactCommits(through version: UInt64) throws(StoreError) {
        let newest = try writer.snapshot().version
        let version = min(version, newest)
        let failure = compaction.withLock { _ -> StoreError? in
            guard version > compacted.load(ordering: .relaxed) else { return nil }
            do throws(StoreError) {
                try database.whileOpen { () throws(StoreError) in try forget(through: version, newest: newest) }
                return nil
            } catch {
                return error
            }
        }
        guard let failure else { return }
        if case .closed = failure {} else { writer.fail(failure) }
        throw failure
    }

    private func forget(through version: UInt64, newest: UInt64) throws(StoreError) {
        try Failpoint.changesBeforeForget.passOrFail()
        // The mark is written first: removed records that are still there do no harm.
        try database.setAboutStore("compacted", version.bigEndianBytes)
        compacted.store(version, ordering: .releasing)
        try Failpoint.changesAfterMark.passOrFail()
        // The newest one stays: it holds the version of the rows.
        let dropped = min(version, newest - 1)
        if dropped > 0 { try database.dropCommits(through: dropped) }
        try Failpoint.changesAfterForget.passOrFail()
    }

    public var keptCommits: KeptCommits {
        let (compacted, newest) = (compacted.load(ordering: .acquiring), version)
        guard compacted < newest else { return KeptCommits(oldest: nil, bytes: 0) }
        let bytes = try? database.whileOpen { () throws(StoreError) in
            database.commitBytes(after: compacted, through: newest)
        }
        return KeptCommits(oldest: compacted + 1, bytes: bytes ?? 0)
    }

    @discardableResult
    public func backup(to folder: String) throws(StoreError) -> UInt64 {
        let durable = try writer.snapshot().version
        return try database.whileOpen { () throws(StoreError) in
            try StoreFolder.writeBackup(to: folder) { path throws(StoreError) in
                try Failpoint.backupBeforeCopy.passOrFail()
                try copyDatabase(to: path)
                let version = try BackupSettling(store: self).settleSound(path)
                try Failpoint.backupAfterCopy.passOrFail()
                if version < durable { throw .lostCommits(answered: durable, found: version) }
                return version
            }
        }
    }

    /// The copy is made in the store's own folder, where it consists of links, and then moved: the disk of the backups
    /// may be another one, and slow, while prepared rows wait for the copy.
    private func copyDatabase(to path: String) throws(StoreError) {
        try Files.createFolder(copying)
        let draft = newCopy()
        defer { Files.removeFolder(draft) }
        try database.writeOut()
        try database.link(to: draft)
        try Files.moveFolder(draft, to: path)
    }

    /// The path in `copying` for the next copy.
    func newCopy() -> String { "\(copying)/\(lastCopy.wrappingAdd(1, ordering: .relaxed).newValue)" }

    public var statistics: [String: Double] {
        var figures = writer.statistics
        figures["store.waiting_reads"] = Double(readers.count)
        figures.merge(keptCommits.statistics(newest: version), uniquingKeysWith: { $1 })
        return figures.merging(RocksFigures.ofOpen(database), uniquingKeysWith: { $1 })
    }

    public func close() {
        writer.stop()
        writer.waitUntilEnded()
        readers.close()
    }
}
