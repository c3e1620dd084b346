/// The contract of an ordered, versioned key-value store.
///
/// Keys and values are bytes; keys are ordered as unsigned bytes, a prefix before what it begins. What the bytes mean is
/// the caller's business. Every implementation keeps these promises, and one test suite holds all of them to it:
///
/// - **Reading.** A snapshot shows one durable version and never changes. It may be kept; keeping it long pins space.
/// - **Writing.** `submit` runs closures one after the other, in the order they were submitted, each against a
///   transaction that sees everything its predecessors wrote. A closure reads first and writes after (a read after its
///   first write traps), is synchronous, never lets the transaction escape, and leaves nothing behind when it throws.
/// - **Durable, then visible, then answered.** The completion runs when the commit is on disk. Only then do snapshots,
///   observers and followers see it. After a crash the store holds a prefix of whole commits with every answered one in it.
/// - **Versions** count commits that wrote something: from 1, no gaps, never reused. A closure that writes nothing gets the
///   version of the state it read, and is answered only when that state is durable.
/// - **Grouping.** Closures that wait together share one sync. Nobody can ask for less durability.
/// - **Epoch.** A random id of this history, which restoring a backup changes: a position is (epoch, version).
/// - **Failure.** A failed write or sync ends the open store: everything waiting and everything later is refused with
///   `StoreError.closed`. A sync is never tried again on the same file. Opening it anew is the owner's decision.
public protocol Store: AnyObject, Sendable {
    var epoch: StoreEpoch { get }

    /// The newest durable version; 0 for a new store.
    var version: UInt64 { get }

    /// The newest durable state. Cheap: it shares the published snapshot.
    func snapshot() throws(StoreError) -> any StoreSnapshot

    /// Puts a closure in the queue of writes and returns at once. `completion` runs once, on the writer's thread, in the
    /// order of submission, after the commit's observers: hand work on from it, never block in it.
    func submit<Outcome: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome,
        completion: @escaping @Sendable (Result<Committed<Outcome>, any Error>) -> Void)

    /// Runs `body` on a reader thread, for work that must not hold an event loop or the cooperative pool.
    func submitRead(_ body: @escaping @Sendable () -> Void)

    /// Calls `observer` on the writer's thread for every durable group of commits, in order, before its completions.
    func observeCommits(_ observer: @escaping @Sendable (CommitGroup) -> Void)

    /// The records of commits after `version`, oldest first, at most `limit` commits; empty when there are none yet.
    /// Throws `.compacted(oldest:)` when some of them are no longer kept, `.unknownVersion` when `version` never was.
    func commits(after version: UInt64, limit: Int) throws(StoreError) -> [Commit]

    /// Forgets records of commits up to `version`; their rows stay.
    func compactCommits(through version: UInt64) throws(StoreError)

    /// The oldest version whose record is kept, and the bytes of all kept records (approximately).
    var keptCommits: KeptCommits { get }

    /// Writes a copy that can be opened as a store of its own, in a folder that does not exist yet.
    func backup(to folder: String) throws(StoreError)

    /// Figures for metrics and `stats`: sizes and counts by name, e.g. `rocksdb.memtable_bytes`.
    var statistics: [String: Double] { get }

    /// Waits for what was submitted, then closes. Later calls are refused with `.closed`.
    func close()
}

/// What a snapshot and a transaction have in common.
public protocol StoreReading {
    func get(_ key: Span<UInt8>) throws -> [UInt8]?

    /// Visits rows of `range` in key order (or backwards), until the closure stops it. The spans are valid during the call only.
    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep) throws
}

public protocol StoreSnapshot: AnyObject, StoreReading, Sendable {
    var version: UInt64 { get }
}

public protocol StoreTransaction: AnyObject, StoreReading {
    /// The version this commit will have if it writes something.
    var nextVersion: UInt64 { get }

    func put(_ key: Span<UInt8>, _ value: Span<UInt8>)
    func delete(_ key: Span<UInt8>)
    /// Deletes every row of the range; cheap for large ranges only (a tombstone slows reads near it).
    func deleteRange(_ range: KeyRange)
    /// What followers will read for this commit, opaque to the store. At most once per transaction.
    func record(_ bytes: Span<UInt8>)
    /// An object handed to observers with this commit, in this process only: what was planned, so that nobody decodes the record again.
    func attach(_ note: any Sendable)
}

public enum ScanStep {
    case next
    case stop
    /// Goes on at the first row at or after this key (backwards: at or before it), which must lie ahead.
    case seek([UInt8])
}

/// Keys from `lower` (included) to `upper` (excluded; nil: to the end).
public struct KeyRange: Sendable, Hashable {
    public var lower: [UInt8]
    public var upper: [UInt8]?

    public init(lower: [UInt8], upper: [UInt8]?) {
        self.lower = lower
        self.upper = upper
    }

    /// Every key that begins with `prefix`.
    public init(prefix: [UInt8]) {
        var upper = prefix
        while let last = upper.last, last == 0xFF { upper.removeLast() }
        if upper.isEmpty {
            self.init(lower: prefix, upper: nil)
        } else {
            upper[upper.count - 1] += 1
            self.init(lower: prefix, upper: upper)
        }
    }
}

/// A random id of one history of a store; 32 lower-case hex digits as text.
public struct StoreEpoch: Sendable, Hashable, CustomStringConvertible {
    public var description: String
    public init(_ description: String) { self.description = description }
}

/// One durable commit, as followers see it.
public struct Commit: Sendable {
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

/// Commits that became durable with one sync, oldest first, and the state after them.
public struct CommitGroup: Sendable {
    public var commits: [Commit]
    public var snapshot: any StoreSnapshot

    public init(commits: [Commit], snapshot: any StoreSnapshot) {
        self.commits = commits
        self.snapshot = snapshot
    }
}

/// What a write returned, and the version at which it is durable.
public struct Committed<Outcome: Sendable>: Sendable {
    public var outcome: Outcome
    public var version: UInt64

    public init(outcome: Outcome, version: UInt64) {
        self.outcome = outcome
        self.version = version
    }
}

public struct KeptCommits: Sendable, Hashable {
    /// The oldest version whose record can be read; nil when none is kept.
    public var oldest: UInt64?
    public var bytes: UInt64

    public init(oldest: UInt64?, bytes: UInt64) {
        self.oldest = oldest
        self.bytes = bytes
    }
}

/// Why a store said no.
public enum StoreError: Error, Sendable, Hashable {
    /// Closed on purpose, or ended by an earlier failure (then `cause` says which).
    case closed(cause: String?)
    case io(String)
    case corrupted(String)
    /// Somebody else has this folder open.
    case locked(String)
    /// Written by a newer version of this software.
    case newerFormat(found: Int, supported: Int)
    /// Answered commits up to `answered` are missing: the newest found is `found`.
    case lostCommits(answered: UInt64, found: UInt64)
    case compacted(oldest: UInt64)
    case unknownVersion(newest: UInt64)
}
