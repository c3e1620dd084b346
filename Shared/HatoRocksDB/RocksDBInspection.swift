public import HatoStorage

/// A store's folder opened for reading, while no process has it open: nothing is written to it, whatever its state.
///
/// RocksDB replays its log into memory, and verifies the checksum of every block that is read; the caches are empty, so
/// everything is read from the disk. `findDamage` reads every block, the other methods those that can be served.
public final class RocksDBInspection: StoreInspection {
    public let version: UInt64
    public let problems: [StoreError]
    private let database: RocksDatabase
    private let snapshot: RocksSnapshot
    private let compacted: UInt64
    private let lock: OpenFile
    private let limits = StoreLimits()

    /// Throws `.locked` when the folder is open elsewhere, `.newerFormat`, `.io` when there is no store, when it cannot
    /// be read, or when a crash has left a state that only the next opening repairs (rows that wait to be ingested, a
    /// torn log), and `.corrupted` when it is too damaged to be opened.
    ///
    /// - Parameter service: the service that must own the store; nil: any.
    public init(folder: String, of service: String? = nil) throws(StoreError) {
        guard Files.exists(folder + "/format") else {
            throw .io("\(folder) is no store: it holds no file named format")
        }
        try StoreFolder.checkFormat(folder + "/format")
        lock = try OpenFile(folder + "/lock", access: .read)
        guard try lock.lock() else { throw .locked("\(folder) is open in another process") }
        let memory = RocksDBMemory(blockCacheBytes: 32 << 20, memtableBytes: RocksDBMemory.memtableBytes)
        let path = folder + "/rocksdb"
        database = try Self.look(at: path, memory, after: (try? AcknowledgedFile.read(folder + "/answered")) ?? 0)
        guard try PreparedFiles.waiting(in: folder + "/prepared", for: database).isEmpty else {
            // Without them their commit would look like damage.
            throw .io(
                "\(folder): rows of a commit wait to be put in their place at the next start, as a crash may leave them; "
                    + "start the service once, then check again")
        }
        version = try database.newestCommit() ?? 0
        compacted = try database.compactedVersion()
        snapshot = RocksSnapshot(version: version, derived: nil, of: database)
        var problems = Self.problems(folder, version, compacted)
        if let service, let owner = try BackupFolder.service(of: folder), owner != service {
            problems.append(.corrupted("the file \(folder)/service says that this is a store of \(owner)"))
        }
        self.problems = problems
    }

    /// Throws `.io` when a crash has torn the log, which opening the store repairs: until then the findings may look
    /// like damage.
    private static func look(
        at path: String, _ memory: RocksDBMemory, after answered: UInt64
    ) throws(StoreError) -> RocksDatabase {
        do throws(StoreError) {
            let database = try RocksDatabase(folder: path, memory: memory, for: .reading())
            if try database.missingCommits(after: answered).isEmpty { return database }
            guard try TornLog.find(in: path) != nil else { return database }
            database.close()
        } catch {
            guard case .corrupted = error, try TornLog.find(in: path) != nil else { throw error }
        }
        throw .io(
            "\(path): the end of the log is torn, as a crash may leave it, until the next start; start the service once, "
                + "then check again")
    }

    private static func problems(_ folder: String, _ version: UInt64, _ compacted: UInt64) -> [StoreError] {
        var problems: [StoreError] = []
        do throws(StoreError) {
            let answered = try AcknowledgedFile.read(folder + "/answered")
            if answered > version { problems.append(.lostCommits(answered: answered, found: version)) }
        } catch {
            problems.append(error)
        }
        if compacted > version {
            problems.append(.corrupted("records are removed up to \(compacted), but the newest is \(version)"))
        }
        return problems
    }

    public var oldestCommit: UInt64? { compacted < version ? compacted + 1 : nil }

    public func commits(after version: UInt64, limit: Int) throws(StoreError) -> [Commit] {
        if version >= self.version { return [] }
        let commits = try snapshot.commits(after: version, limit: limit, bytesMax: limits.commitsBytesMax)
        guard let commits else { throw .corrupted("a record of the commits after \(version) is missing") }
        return commits
    }

    public func findDamage(_ step: (_ rows: Int) -> Void) throws(StoreError) -> [StoreError] {
        try database.whileOpen { () throws(StoreError) in
            try TableCheck(database: database).damage { rows throws(StoreError) in step(rows) }
        }
    }

    public func get(_ key: Span<UInt8>) throws -> [UInt8]? { try snapshot.get(key) }

    public func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        try snapshot.scan(range, reverse: reverse, visit)
    }

    /// Releases the database; later reads fail.
    public func close() { database.close() }
}
