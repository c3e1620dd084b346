import Synchronization

/// A store in memory: for tests, for temporary runs, and as the model that other stores are tested against.
///
/// It gives every guarantee of `Store` except that it does not outlive its process; a group is durable as soon as it is
/// applied.
public final class MemoryStore: Store {
    public let epoch: StoreEpoch
    private let rows: MemoryRows
    private let writer: GroupCommit<MemoryRows>
    private let readers: ReaderThreads

    /// Throws when the operating system gives no threads.
    public convenience init(limits: StoreLimits = StoreLimits()) throws(StoreError) {
        try self.init(epoch: .random(), history: MemoryHistory(), limits: limits)
    }

    /// Opens what `backup` wrote, with a new epoch.
    public convenience init(restoring folder: String, limits: StoreLimits = StoreLimits()) throws(StoreError) {
        try self.init(epoch: .random(), history: MemoryHistory(folder: folder), limits: limits)
    }

    private init(epoch: StoreEpoch, history: MemoryHistory, limits: StoreLimits) throws(StoreError) {
        self.epoch = epoch
        rows = MemoryRows(history, commitsBytesMax: limits.commitsBytesMax)
        readers = try ReaderThreads(limits)
        // Created last: an error after it would leave its threads running.
        writer = try GroupCommit(rows, at: rows.snapshot(at: history.version, derived: nil), limits: limits)
    }

    deinit { writer.stop() }

    public var version: UInt64 { writer.version }

    public func snapshot() throws(StoreError) -> any StoreSnapshot { try writer.snapshot() }

    public func submit(_ write: any StoreWrite) { writer.submit(write) }

    public func prepareRows(_ rows: (any StoreWriting) throws -> Void) throws -> any PreparedRows {
        try MemoryPreparedRows(rows)
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
        try rows.commits(after: version, limit: limit, durable: writer.snapshot().version)
    }

    public func compactCommits(through version: UInt64) throws(StoreError) {
        rows.compact(through: min(version, try writer.snapshot().version))
    }

    public var keptCommits: KeptCommits { rows.kept(durable: writer.version) }

    @discardableResult
    public func backup(to folder: String) throws(StoreError) -> UInt64 {
        let snapshot = try writer.snapshot()
        guard let snapshot = snapshot as? MemorySnapshot else { throw .closed(cause: nil) }
        try rows.history(of: snapshot).save(to: folder)
        return snapshot.version
    }

    public var statistics: [String: Double] {
        var figures = writer.statistics
        figures["memory.rows"] = Double(rows.count)
        figures["store.waiting_reads"] = Double(readers.count)
        return figures.merging(keptCommits.statistics(newest: version), uniquingKeysWith: { $1 })
    }

    public func close() {
        writer.stop()
        writer.waitUntilEnded()
        readers.close()
    }
}

/// The state of a memory store: its rows, its newest version, and the records of commits from `compacted + 1` on.
struct MemoryHistory: Sendable {
    var rows = SortedRows()
    var version: UInt64 = 0
    var compacted: UInt64 = 0
    private(set) var records: [[UInt8]] = []
    private(set) var recordsBytes = 0

    mutating func append(_ record: [UInt8]) {
        version += 1
        records.append(record)
        recordsBytes += record.count
    }

    mutating func forget(through version: UInt64) {
        guard version > compacted else { return }
        let forgotten = Int(version - compacted)
        recordsBytes -= records.prefix(forgotten).reduce(0) { $0 + $1.count }
        records.removeFirst(forgotten)
        compacted = version
    }

    /// The record of a version that is kept.
    func record(of version: UInt64) -> [UInt8] { records[Int(version - compacted - 1)] }

    /// The history as it was at a snapshot.
    func cut(at snapshot: MemorySnapshot) -> MemoryHistory {
        var cut = MemoryHistory(rows: snapshot.rows, version: min(compacted, snapshot.version))
        cut.compacted = cut.version
        while cut.version < snapshot.version { cut.append(record(of: cut.version + 1)) }
        return cut
    }
}

/// The rows of a memory store as its writer applies them.
final class MemoryRows: CommitBackend {
    /// Guarded by its mutex, though only the writer's thread changes rows and version.
    private let state: Mutex<MemoryHistory>
    private let isOpen = Atomic<Bool>(true)
    private let commitsBytesMax: Int

    init(_ history: MemoryHistory, commitsBytesMax: Int) {
        state = Mutex(history)
        self.commitsBytesMax = commitsBytesMax
    }

    var count: Int { state.withLock { $0.rows.count } }

    func begin(nextVersion: UInt64, derived: (any StoreDerived)?) -> MemoryTransaction {
        MemoryTransaction(nextVersion: nextVersion, rows: state.withLock { $0.rows }, derived: derived)
    }

    func apply(_ transaction: MemoryTransaction) {
        let changes = transaction.takeChanges()
        let recorded = transaction.recorded
        state.withLock { state in
            for change in changes {
                switch change {
                case .put(let key, let value): state.rows.set(key, to: value)
                case .delete(let key): state.rows.remove(key.span)
                case .deleteRange(let range): state.rows.remove(range)
                }
            }
            state.append(recorded)
        }
    }

    /// Applied changes are in the rows already, so there is nothing to wait for.
    func seal() -> Bool { false }

    func snapshot(at version: UInt64, derived: (any StoreDerived)?) -> any StoreSnapshot {
        MemorySnapshot(version: version, rows: state.withLock { $0.rows }, derived: derived, store: self)
    }

    /// A transaction keeps its changes to itself until they are applied.
    func discard(_: MemoryTransaction) {}

    func makeDurable(through version: UInt64) throws(StoreError) {}

    func checkHealth() throws(StoreError) {}

    /// There is no log, and nothing can fail.
    var loggedVersion: UInt64 { 0 }

    func shutDown() { isOpen.store(false, ordering: .releasing) }

    func checkOpen() throws(StoreError) {
        if !isOpen.load(ordering: .acquiring) { throw .closed(cause: nil) }
    }

    func commits(after version: UInt64, limit: Int, durable: UInt64) throws(StoreError) -> [Commit] {
        if version > durable { throw .unknownVersion(newest: durable) }
        let (compacted, commits) = state.withLock { state -> (UInt64, [Commit]) in
            guard version >= state.compacted else { return (state.compacted, []) }
            var (commits, bytes): ([Commit], Int) = ([], 0)
            var next = version + 1
            while next <= durable, commits.count < limit, bytes < commitsBytesMax {
                let record = state.record(of: next)
                bytes += record.count
                commits.append(Commit(version: next, record: record))
                next += 1
            }
            return (state.compacted, commits)
        }
        if version < compacted { throw .compacted(oldest: compacted + 1) }
        return commits
    }

    func compact(through version: UInt64) { state.withLock { $0.forget(through: version) } }

    func kept(durable: UInt64) -> KeptCommits {
        state.withLock { state in
            KeptCommits(
                oldest: state.compacted < durable ? state.compacted + 1 : nil, bytes: UInt64(state.recordsBytes))
        }
    }

    func history(of snapshot: MemorySnapshot) -> MemoryHistory { state.withLock { $0 }.cut(at: snapshot) }
}

final class MemorySnapshot: StoreSnapshot {
    let version: UInt64
    let rows: SortedRows
    let derived: (any StoreDerived)?
    private let store: MemoryRows

    init(version: UInt64, rows: SortedRows, derived: (any StoreDerived)?, store: MemoryRows) {
        self.version = version
        self.rows = rows
        self.derived = derived
        self.store = store
    }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        try store.checkOpen()
        return rows.value(of: key)
    }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        try store.checkOpen()
        try rows.scan(range, reverse: reverse, visit)
    }
}
