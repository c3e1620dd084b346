import HatoStorage

/// One closure's transaction: it reads the newest state, which only its own thread changes, and gathers what it writes
/// in the writer's batch.
final class RocksTransaction: CommitTransaction {
    let nextVersion: UInt64
    private(set) var phase = TransactionPhase()
    private(set) var writtenBytes = 0
    private(set) var recorded: [UInt8] = []
    private(set) var note: (any Sendable)?
    private var hasRecorded = false
    private let writer: RocksWriter

    init(nextVersion: UInt64, writer: RocksWriter) {
        self.nextVersion = nextVersion
        self.writer = writer
    }

    func finish() { phase.finish() }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        phase.willRead()
        return try writer.database.get(key, newestOf: writer.database.rows)
    }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        phase.willRead()
        try writer.database.scan(range, at: nil, reverse: reverse, visit)
    }

    func put(_ key: Span<UInt8>, _ value: Span<UInt8>) {
        guard phase.willWrite(key: key) else { return }
        writtenBytes += key.count + value.count
        writer.batch.put(key, value)
    }

    func delete(_ key: Span<UInt8>) {
        guard phase.willWrite(key: key) else { return }
        writtenBytes += key.count
        writer.batch.delete(key)
    }

    func deleteRange(_ range: KeyRange) {
        guard !range.isEmpty, phase.willWrite(key: range.lower.span) else { return }
        writtenBytes += range.lower.count
        writer.batch.deleteRange(range.lower, range.upper ?? RocksDatabase.endOfKeys)
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
/// `@unchecked Sendable`: the batch belongs to the writer's thread.
final class RocksWriter: CommitBackend, @unchecked Sendable {
    let database: RocksDatabase
    let batch: WriteBatch
    private let folder: StoreFolder

    init(_ database: RocksDatabase, in folder: StoreFolder) {
        self.database = database
        self.folder = folder
        batch = database.makeBatch()
    }

    func begin(nextVersion: UInt64) -> RocksTransaction {
        batch.clear()
        return RocksTransaction(nextVersion: nextVersion, writer: self)
    }

    func apply(_ transaction: RocksTransaction) throws(StoreError) {
        batch.putCommit(transaction.nextVersion, record: transaction.recorded)
        try database.write(batch)
    }

    func snapshot(at version: UInt64) -> any StoreSnapshot { RocksSnapshot(version: version, of: database) }

    func makeDurable(through version: UInt64) throws(StoreError) {
        try database.syncLog()
        try folder.noteAnswered(version)
    }

    func shutDown() {
        database.close()
        folder.close()
    }
}
