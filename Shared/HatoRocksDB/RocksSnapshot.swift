import HatoStorage

/// One durable version of a RocksDB store; RocksDB keeps its rows until this object is released.
///
/// `@unchecked Sendable`: nothing here changes, and RocksDB reads snapshots from every thread.
final class RocksSnapshot: StoreSnapshot, @unchecked Sendable {
    let version: UInt64
    let derived: (any StoreDerived)?
    private let database: RocksDatabase
    private let snapshot: NativeSnapshot
    private let options: NativeReadOptions

    /// A snapshot of everything written so far; the caller guarantees that this is `version`.
    init(version: UInt64, derived: (any StoreDerived)?, of database: RocksDatabase) {
        self.version = version
        self.derived = derived
        self.database = database
        snapshot = database.takeSnapshot()
        options = NativeReadOptions(snapshot: snapshot)
    }

    deinit { database.release(snapshot) }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        try database.whileOpen { () throws(StoreError) in try database.get(key, database.rows, options) }
    }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        try database.scanWhileOpen(range, by: NativeReadOptions(snapshot: snapshot), reverse: reverse, visit)
    }

    var uncached: any StoreSnapshot { UncachedRocksSnapshot(self) }

    /// Estimated from the files as they are now.
    func approximateBytes(of range: KeyRange) throws -> UInt64 {
        guard !range.isEmpty else { return 0 }
        return try database.whileOpen { () throws(StoreError) in
            try database.fileBytes(of: range, in: database.rows)
        }
    }

    fileprivate func scanUncached(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        let options = NativeReadOptions(snapshot: snapshot)
        options.leaveCache()
        try database.scanWhileOpen(range, by: options, reverse: reverse, visit)
    }

    /// The records of commits after `version`, up to this snapshot's version; nil when one is missing.
    func commits(after version: UInt64, limit: Int, bytesMax: Int) throws(StoreError) -> [Commit]? {
        var (commits, bytes): ([Commit], Int) = ([], 0)
        var expected = version + 1
        var isFull: Bool { commits.count >= limit || bytes >= bytesMax || expected > self.version }
        try database.whileOpen { () throws(StoreError) in
            try database.visitCommits(from: expected, at: options) { found, record in
                guard !isFull, found == expected else { return false }
                commits.append(Commit(version: expected, record: Array(record)))
                bytes += record.count
                expected += 1
                return true
            }
        }
        return isFull ? commits : nil
    }
}

/// A snapshot whose scans do not change the block cache.
private final class UncachedRocksSnapshot: StoreSnapshot {
    private let snapshot: RocksSnapshot

    var version: UInt64 { snapshot.version }
    var derived: (any StoreDerived)? { snapshot.derived }
    var uncached: any StoreSnapshot { self }

    init(_ snapshot: RocksSnapshot) { self.snapshot = snapshot }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? { try snapshot.get(key) }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        try snapshot.scanUncached(range, reverse: reverse, visit)
    }

    func approximateBytes(of range: KeyRange) throws -> UInt64 { try snapshot.approximateBytes(of: range) }
}
