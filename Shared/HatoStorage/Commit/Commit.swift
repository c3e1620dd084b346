/// One durable commit, as followers see it.
public struct Commit: Sendable {
    /// The version of the commit.
    public var version: UInt64
    /// What the transaction recorded; empty when it recorded nothing.
    public var record: [UInt8]
    /// What the transaction attached; nil when the commit is read back from disk.
    public var note: (any Sendable)?

    public init(version: UInt64, record: [UInt8], note: (any Sendable)? = nil) {
        self.version = version
        self.record = record
        self.note = note
    }
}

/// Commits that became durable with one sync (or a part of them, see `Store.submitSnapshot`), oldest first, and the
/// state after them.
public struct CommitGroup: Sendable {
    /// The commits, oldest first.
    public var commits: [Commit]
    /// The state after the last of them.
    public var snapshot: any StoreSnapshot
    /// How long the sync took.
    public var syncTime: Duration

    public init(commits: [Commit], snapshot: any StoreSnapshot, syncTime: Duration = .zero) {
        self.commits = commits
        self.snapshot = snapshot
        self.syncTime = syncTime
    }
}

/// What a write returned, and the version at which it is durable.
public struct Committed<Outcome: Sendable>: Sendable {
    /// What the write closure returned.
    public var outcome: Outcome
    /// The version at which the write is durable.
    public var version: UInt64

    public init(outcome: Outcome, version: UInt64) {
        self.outcome = outcome
        self.version = version
    }
}

/// Which commits can still be read.
public struct KeptCommits: Sendable, Hashable {
    /// The oldest version whose record can be read; nil when none is kept.
    public var oldest: UInt64?
    /// Bytes of the kept commits.
    public var bytes: UInt64

    public init(oldest: UInt64?, bytes: UInt64) {
        self.oldest = oldest
        self.bytes = bytes
    }

    /// For `Store.statistics`.
    package func statistics(newest: UInt64) -> [String: Double] {
        let count = oldest.map { newest >= $0 ? newest - $0 + 1 : 0 } ?? 0
        return ["store.kept_changes": Double(count), "store.kept_change_bytes": Double(bytes)]
    }
}
