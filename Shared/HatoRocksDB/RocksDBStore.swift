public import HatoStorage
import Synchronization

/// The store of `HatoStorage` in one RocksDB folder.
///
/// **Opening.** The format is read and the folder locked before RocksDB sees it. What RocksDB recovers from its log
/// must be a prefix of whole commits: the version of the newest does not lie below what the `answered` file says was
/// answered, and none is missing before it. A record that a crash has torn at the log's end is cut away first, when
/// nothing answered goes with it; see `TornLog`.
///
/// **Writing.** A batch, which is one record of the log, holds whole transactions: rows, change record and version
/// stand or fall together. One sync of the log serves a group. When a memtable is written out RocksDB syncs the logs
/// behind it first, so rows never get ahead of their commits on disk either.
public final class RocksDBStore: Store {
    public let epoch: StoreEpoch
    let database: RocksDatabase
    private let writer: GroupCommit<RocksWriter>
    private let readers: ReaderPool
    private let limits: StoreLimits
    private let prepared: PreparedFiles
    private let memory: RocksDBMemory
    /// The folder of copies that are being made.
    let copying: String
    private let lastCopy = Atomic<UInt64>(0)
    /// Records up to here are forgotten. Written with `compaction` held.
    private let compacted: Atomic<UInt64>
    private let compaction = Mutex<Void>(())

    /// Opens the store in `folder`, which is created when it is missing.
    ///
    /// Throws `.locked` when somebody has it open, `.newerFormat`, `.lostCommits` when answered commits are missing,
    /// `.corrupted` (also when commits are missing before later ones), and `.io` when the folder cannot be written
    /// (or is somebody else's, or another service's).
    ///
    /// - Parameter service: whose data it holds: noted in the folder the first time, compared with that later.
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
        // Not before: looking changes no file, and a backup that is refused stays one.
        if isUnopenedCopy { try folder.noteOpeningCopy() }
        // Opening writes the log's commits into tables. Until this is another history, they are to be missed again.
        if let first = missing.first { try folder.resetAnswered(to: first.lowerBound - 1) }
        if !folder.isNew { try folder.checkRoom() }
        let database = try RocksDatabase(
            folder: folder.databasePath, memory: options.memory, memtableShare: options.memtableShare,
            for: .writing(preparedLogBytes: options.preparedLogBytes))
        try Failpoint.openAfterRecovery.passOrFail()
        let version = try database.newestCommit() ?? 0
        if folder.isNew, version > 0 { throw StoreFolder.formatIsMissing(folder.path, commits: version) }
        let forgotten = max(try database.forgottenCommits(), missing.last?.upperBound ?? 0)
        if forgotten > version {
            throw .corrupted("\(folder.path): records are forgotten up to \(forgotten), but the newest is \(version)")
        }
        let isLessThanAnswered = try Self.checkAnswered(folder, version, isLossAccepted: options.acceptsLostCommits)
        let hasLost = isLessThanAnswered || !missing.isEmpty
        epoch = try Self.epoch(of: database, isAnotherHistory: folder.isCopy || hasLost)
        // Nobody can follow it over what is missing.
        if !missing.isEmpty { try database.setAboutStore("compacted", forgotten.bigEndianBytes) }
        if hasLost { try folder.resetAnswered(to: version) }
        if folder.isCopy { try folder.forgetItIsACopy() }
        prepared = try PreparedFiles(folder.preparedPath, recovering: database)
        copying = folder.copyingPath
        // Links in there keep tables on disk that compaction has replaced.
        Files.removeFolder(copying)
        if folder.isNew { try folder.finishCreating() } else { try folder.raiseFormat() }
        try folder.startAnswering()

        self.database = database
        memory = options.memory
        limits = options.limits
        compacted = Atomic(forgotten)
        readers = try ReaderPool(threads: options.limits.readerThreads)
        writer = try GroupCommit(
            RocksWriter(database, in: folder), at: RocksSnapshot(version: version, derived: nil, of: database),
            limits: options.limits)
    }

    deinit { writer.stop() }

    /// Whoever opens a database for writing deletes the files that its list does not name. Where that list was cut
    /// short, they hold what was answered: so it is looked at first, and nothing is touched when too little is found.
    /// When that is because a crash has torn the log, its end is cut (`TornLog`).
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
                // Says more of what is wrong.
                if !options.acceptsLostCommits { throw error }
            }
            // What cannot be read is the opening's to say.
            if options.acceptsLostCommits { return [] }
            throw error
        }
    }

    /// Returns what is missing then; nil when there is none.
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

    /// Throws when less is found than was answered, or something is missing, unless that is accepted.
    private static func missingCommits(
        of folder: StoreFolder, _ options: RocksDBOptions, beside trial: (torn: TornLog, folder: String)? = nil
    ) throws(StoreError) -> [ClosedRange<UInt64>] {
        let answered: UInt64
        do throws(StoreError) {
            // What was synced may have been answered.
            answered = max(try folder.readAnswered(), trial?.torn.synced ?? 0)
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

    /// The tables as RocksDB reads them, and the log in steps: that takes the same memory however long it is.
    private static func look(
        at folder: StoreFolder, _ options: RocksDBOptions, after answered: UInt64,
        beside trial: (torn: TornLog, folder: String)?
    ) throws(StoreError) -> (newest: UInt64, missing: [ClosedRange<UInt64>]) {
        // No log lies beside the database's folder.
        let tables = try RocksDatabase(
            folder: folder.databasePath, memory: options.memory, for: .reading(log: trial?.folder ?? folder.path))
        defer { tables.close() }
        let log: LogContents
        switch try LogContents.read(in: folder.databasePath, tables.logFamilies, torn: trial?.torn) {
        case .whole(let contents): log = contents
        case .flawed(let file): return try replay(folder, options, after: answered, file)
        }
        let newest = try tables.newestCommit() ?? 0
        // What the tables hold was whole up to here, or is forgotten.
        let known = max(min(answered, newest), try tables.forgottenCommits(), log.forgotten)
        var commits = try tables.commits(after: known)
        commits.formUnion(log.commits)
        return (max(newest, log.commits.newest ?? 0), commits.gaps(after: known))
    }

    /// What RocksDB says of a log that is not as it was written, when it may keep it in memory.
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
    private static func checkAnswered(
        _ folder: StoreFolder, _ version: UInt64, isLossAccepted: Bool
    ) throws(StoreError) -> Bool {
        let answered: UInt64
        do {
            answered = try folder.readAnswered()
        } catch {
            if isLossAccepted { return true }
            throw error
        }
        if version >= answered { return false }
        if isLossAccepted { return true }
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
            // Its options are those of the open database, whose cache goes when it closes.
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
        endsGroup: Bool, _ completion: @escaping @Sendable (Result<any StoreSnapshot, StoreError>) -> Void
    ) {
        writer.submitSnapshot(endsGroup: endsGroup, completion)
    }

    public func submitRead(of client: String?, _ body: @escaping @Sendable () -> Void) {
        readers.submit(of: client, body)
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
        // A hole: either they were forgotten in this moment, or it is not supposed to be there.
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
        // The mark first: records that are there and forgotten harm nobody.
        try database.setAboutStore("compacted", version.bigEndianBytes)
        compacted.store(version, ordering: .releasing)
        try Failpoint.changesAfterMark.passOrFail()
        // The newest one stays: it says which version the rows are at.
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

    /// The copy is made in the store's own folder, where it only takes links, and then moved: a disk of backups may be
    /// another one, and slow, while prepared rows wait for whoever copies the database.
    private func copyDatabase(to path: String) throws(StoreError) {
        try Files.createFolder(copying)
        let draft = newCopy()
        defer { Files.removeFolder(draft) }
        try database.writeOut()
        try database.link(to: draft)
        try Files.moveFolder(draft, to: path)
    }

    /// Where in `copying` the next copy may be made.
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
