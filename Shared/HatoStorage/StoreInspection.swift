/// One state of a store with its history, to be read completely by a check: of a store that is open, or of a folder
/// that no process has open.
public protocol StoreInspection: StoreReading {
    var version: UInt64 { get }

    /// What is wrong with the store as a whole, e.g. that acknowledged commits are missing.
    var problems: [StoreError] { get }

    /// The oldest version whose record is kept; nil when none is.
    var oldestCommit: UInt64? { get }

    /// As `Store.findDamage`.
    func findDamage(_ step: (_ rows: Int) -> Void) throws(StoreError) -> [StoreError]

    /// As `Store.commits`.
    func commits(after version: UInt64, limit: Int) throws(StoreError) -> [Commit]
}

/// The newest durable state of an open store.
public struct OpenStoreInspection: StoreInspection {
    private let store: any Store
    private let snapshot: any StoreSnapshot

    public init(_ store: any Store, at snapshot: any StoreSnapshot) {
        self.store = store
        self.snapshot = snapshot.uncached
    }

    public var version: UInt64 { snapshot.version }
    /// Always empty: a store with problems does not open.
    public var problems: [StoreError] { [] }
    public var oldestCommit: UInt64? { store.keptCommits.oldest }

    public func findDamage(_ step: (_ rows: Int) -> Void) throws(StoreError) -> [StoreError] {
        try store.findDamage(step)
    }

    public func commits(after version: UInt64, limit: Int) throws(StoreError) -> [Commit] {
        try store.commits(after: version, limit: limit)
    }

    public func get(_ key: Span<UInt8>) throws -> [UInt8]? { try snapshot.get(key) }

    public func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        try snapshot.scan(range, reverse: reverse, visit)
    }
}
