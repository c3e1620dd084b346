public import HatoStorage

/// A store that passes everything on to another one, except what a conforming type implements itself.
public protocol WrappedStore: Store {
    /// The other store.
    var store: any Store { get }
}

extension WrappedStore {
    public var epoch: StoreEpoch { store.epoch }
    public var version: UInt64 { store.version }
    public var keptCommits: KeptCommits { store.keptCommits }
    public var statistics: [String: Double] { store.statistics }

    public func snapshot() throws(StoreError) -> any StoreSnapshot { try store.snapshot() }

    public func submit(_ write: any StoreWrite) { store.submit(write) }

    public func prepareRows(_ rows: (any StoreWriting) throws -> Void) throws -> any PreparedRows {
        try store.prepareRows(rows)
    }

    public func submitSnapshot(
        of client: String?, endsGroup: Bool,
        _ completion: @escaping @Sendable (Result<any StoreSnapshot, StoreError>) -> Void
    ) { store.submitSnapshot(of: client, endsGroup: endsGroup, completion) }

    public func submitRead(of client: String?, isLong: Bool, _ body: @escaping @Sendable () -> Void) {
        store.submitRead(of: client, isLong: isLong, body)
    }

    @discardableResult
    public func observeCommits(
        _ observer: @escaping @Sendable (CommitGroup) -> Void, ended: @escaping @Sendable (StoreError) -> Void
    ) -> CommitObservation { store.observeCommits(observer, ended: ended) }

    public func commits(after version: UInt64, limit: Int) throws(StoreError) -> [Commit] {
        try store.commits(after: version, limit: limit)
    }

    public func compactCommits(through version: UInt64) throws(StoreError) {
        try store.compactCommits(through: version)
    }

    @discardableResult
    public func backup(to folder: String) throws(StoreError) -> UInt64 { try store.backup(to: folder) }

    public func findDamage(_ step: (Int) -> Void) throws(StoreError) -> [StoreError] { try store.findDamage(step) }

    public func close() { store.close() }
}
