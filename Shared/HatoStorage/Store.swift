/// The contract of an ordered, versioned key-value store.
///
/// Keys and values are bytes; keys are ordered as unsigned bytes, a prefix before the keys that begin with it. The
/// caller decides what the bytes mean. Every implementation gives these guarantees, and one test suite checks all of
/// them:
///
/// - **Reading.** A snapshot shows one durable version and never changes. It may be kept while the store is open;
///   keeping it long pins space.
/// - **Writing.** `submit` runs writes one after the other, each against a transaction that sees everything its
///   predecessors wrote. Those of one client (`StoreWrite.client`) run in the order they were submitted; when many
///   wait, clients take turns, so that a client waits for at most one write of each other client. A write reads first
///   and puts after (a read after its first put traps), is synchronous, never lets the transaction escape, and leaves
///   nothing behind when it throws.
/// - **Durable, then visible, then acknowledged.** A write has ended when its commit is on disk. Only then do
///   snapshots, observers and followers see it. After a crash the store holds a prefix of whole commits that includes
///   every acknowledged one.
/// - **Versions** count commits that wrote something (rows or a record): from 1, no gaps, never reused. A write that
///   puts nothing gets the version of the state it read, and completes only when that state is durable.
/// - **Grouping.** Writes that wait together share one sync. There is no option for less durability.
/// - **Derived state.** What the owner computes from some rows, e.g. compiled rules, is published with them: a
///   transaction that changes such rows sets an object, and each snapshot from its commit on has that object until a
///   later commit replaces it. No reader gets the rows without it. It is not on disk: nil until a commit sets one.
/// - **Epoch.** A random id of this history, which restoring a backup changes: a position is (epoch, version).
/// - **Failure.** A failed write or sync ends the open store: writes that had reached the log by then are refused with
///   `StoreError.outcomeUnknown`, everything else that waits and everything later with `StoreError.closed`. A sync is
///   never tried again on the same file. The owner decides whether to open the store again.
public protocol Store: AnyObject, Sendable {
    var epoch: StoreEpoch { get }

    /// The newest durable version; 0 for a new store.
    var version: UInt64 { get }

    /// The newest durable state. Cheap: it shares the published snapshot.
    func snapshot() throws(StoreError) -> any StoreSnapshot

    /// Puts a write in the queue and returns at once.
    func submit(_ write: any StoreWrite)

    /// Prepares rows for a transaction to take, on the calling thread, which may be any but the writer's and may have
    /// to wait for the disk. `rows` hands over the ranges to be deleted, which cover only rows that exist before, then
    /// the rows in rising order of their keys, each once. An error of `rows` is rethrown; the store continues when this
    /// fails.
    ///
    /// Rows that are far apart in key order are better prepared separately: taking some touches everything between
    /// them.
    func prepareRows(_ rows: (any StoreWriting) throws -> Void) throws -> any PreparedRows

    /// Requests the state that the writes submitted before this call leave, without any submitted after it.
    /// `completion` runs once, in the order of the writes, as `StoreWrite.ended` does, when that state is durable.
    /// Costs no sync. It takes its turn as a write of the client does (`StoreWrite.client`): then "before" and "after"
    /// mean the writes of this client, and of others those that ran before or after.
    ///
    /// With `endsGroup` the observers of commits are at exactly this position too: commits submitted before have been
    /// handed to them, later ones have not. A group of one sync is then handed out in two parts.
    func submitSnapshot(
        of client: String?, endsGroup: Bool,
        _ completion: @escaping @Sendable (Result<any StoreSnapshot, StoreError>) -> Void)

    /// Runs `body` on a reader thread, for work that must not block an event loop or the cooperative pool. (On a store
    /// that is closed already it runs before `submitRead` returns.)
    ///
    /// Clients take turns: a client waits for at most one `body` of each other client, however many those have
    /// submitted. The reads of one client begin in the order of submission. Both hold among short reads and
    /// among long ones, which run on other threads, with a lower priority.
    ///
    /// - Parameters:
    ///   - client: the name of the client that caused the work; nil for the service itself.
    ///   - isLong: whether it may take so long that short reads of other clients must not wait for it.
    func submitRead(of client: String?, isLong: Bool, _ body: @escaping @Sendable () -> Void)

    /// Calls `observer` on a thread of the writer for every durable group of commits, in order, before its completions,
    /// and `ended` once when the store has closed or failed; nothing is called after that.
    ///
    /// No commit is missed between an observer and a snapshot taken after it was registered: the snapshot lacks only
    /// commits that the observer will be given. The observer may be given commits that the snapshot has: compare
    /// versions.
    @discardableResult
    func observeCommits(
        _ observer: @escaping @Sendable (CommitGroup) -> Void, ended: @escaping @Sendable (StoreError) -> Void
    ) -> CommitObservation

    /// The records of commits after `version`, oldest first, at most `limit` commits (fewer when they are large, see
    /// `StoreLimits.commitsBytesMax`); empty when there are none yet.
    /// Throws `.compacted(oldest:)` when some of them are no longer kept, `.unknownVersion` when `version` never was.
    func commits(after version: UInt64, limit: Int) throws(StoreError) -> [Commit]

    /// Removes records of commits up to `version`; their rows stay.
    func compactCommits(through version: UInt64) throws(StoreError)

    /// The oldest version whose record is kept, and the bytes of all kept records (approximately).
    var keptCommits: KeptCommits { get }

    /// Writes a copy that can be opened as a separate store, in a folder that does not exist yet. The copy holds every
    /// commit that was durable when this was called, perhaps later ones, and opens with an epoch of its own. Returns
    /// the version of the copy. Throws `.corrupted`, which names the file, when a file of the store is damaged: a
    /// backup of it would be damaged too.
    @discardableResult
    func backup(to folder: String) throws(StoreError) -> UInt64

    /// Reads everything in the store's files, including rows that are hidden or deleted and are read only when their
    /// file is rewritten, and compares it with its checksums. Returns the damage found; the text names the file. Blocks
    /// until it is done, delays no write, and leaves caches as they are. Throws the error that prevents it from reading
    /// on.
    ///
    /// - Parameter step: called after every file with the number of its rows, on the calling thread.
    func findDamage(_ step: (_ rows: Int) -> Void) throws(StoreError) -> [StoreError]

    /// Metrics for `stats`: sizes and counts by name, e.g. `rocksdb.memtable_bytes`.
    var statistics: [String: Double] { get }

    /// Waits for the submitted writes, then closes. Later calls are refused with `.closed`, and so are reads of
    /// snapshots that are still held. Must not be called from a completion or an observer, or while visiting rows.
    func close()
}

/// A write together with its completion: a store makes one of two closures. A caller that submits very many writes has
/// a class of its own for them.
public protocol StoreWrite: AnyObject, Sendable {
    /// The name of the client among whose writes this one keeps its order; nil for the service itself.
    var client: String? { get }

    /// Runs once, in its turn, on the writer's thread: see `Store`. Does not run when the store ends before.
    func write(in transaction: any StoreTransaction) throws

    /// Runs once, on a thread of the writer, in the order of the writes, after the commit's observers: pass work on
    /// from it, never block in it. (On a store that is closed already it runs before `submit` returns.)
    ///
    /// - Parameter result: the version at which the write is durable, or the error it threw, or why the store refused
    ///   it.
    func ended(_ result: Result<UInt64, any Error>)
}

extension StoreWrite {
    public var client: String? { nil }
}

extension Store {
    /// Without files there is no damage.
    public func findDamage(_ step: (_ rows: Int) -> Void) throws(StoreError) -> [StoreError] { [] }

    /// The same for a short read.
    public func submitRead(of client: String?, _ body: @escaping @Sendable () -> Void) {
        submitRead(of: client, isLong: false, body)
    }

    /// The same with closures: `body` writes, `completion` receives its result.
    public func submit<Outcome: Sendable>(
        of client: String? = nil,
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome,
        completion: @escaping @Sendable (Result<Committed<Outcome>, any Error>) -> Void
    ) {
        submit(SubmittedWrite(of: client, body, completion: completion))
    }
}

/// The reads that a snapshot and a transaction share.
public protocol StoreReading {
    func get(_ key: Span<UInt8>) throws -> [UInt8]?

    /// Visits rows of `range` in key order (or backwards), until the closure stops it. The spans are valid during the
    /// call only.
    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep) throws
}

/// What an owner of a store derives from its rows; see `Store`.
public typealias StoreDerived = AnyObject & Sendable

/// The rows as of one version; it never changes.
public protocol StoreSnapshot: AnyObject, StoreReading, Sendable {
    var version: UInt64 { get }

    /// The derived state as of this version; nil when no commit has set one since the store was opened.
    var derived: (any StoreDerived)? { get }

    /// The same snapshot for large reads that happen once: the rows it scans do not displace other rows from the cache.
    var uncached: any StoreSnapshot { get }

    /// About how many bytes the rows of a range take on disk, estimated without reading them: the newest rows may be
    /// missing from it.
    func approximateBytes(of range: KeyRange) throws -> UInt64
}

extension StoreSnapshot {
    public var uncached: any StoreSnapshot { self }
    public func approximateBytes(of range: KeyRange) throws -> UInt64 { try bytes(of: range) }
}

extension StoreReading {
    /// The total bytes of the keys and values of a range; reads all of them.
    ///
    /// - Throws: the errors of `scan`.
    public func bytes(of range: KeyRange) throws -> UInt64 {
        var sum: UInt64 = 0
        try scan(range, reverse: false) { key, value in
            sum += UInt64(key.count + value.count)
            return .next
        }
        return sum
    }
}

/// The rows as a write sees them, and the write's changes.
public protocol StoreTransaction: StoreReading, StoreWriting {
    /// The version this commit will have if it writes something.
    var nextVersion: UInt64 { get }

    /// The derived state as the predecessors of this transaction left it.
    var derived: (any StoreDerived)? { get }

    /// Replaces the derived state with this commit. Like `attach`, it makes no commit by itself: without a row or a
    /// record it is dropped. At most once per transaction; `derived` does not show it.
    func setDerived(_ derived: any StoreDerived)

    // Later writes of a transaction win over earlier ones.

    /// Writes rows prepared by this store; at most once per transaction. Nothing else that the transaction writes may
    /// be in the ranges of these rows, and these ranges must not overlap.
    func take(_ rows: [any PreparedRows])
    /// The record that followers read for this commit, opaque to the store. At most once per transaction.
    func record(_ bytes: Span<UInt8>)
    /// An object handed to observers with this commit, in this process only: the plan of the write, so that observers
    /// need not decode the record again. It does not make a commit by itself.
    func attach(_ note: any Sendable)
}

/// How a scan continues after a row.
public enum ScanStep {
    case next
    case stop
    /// Continues at the first row at or after this key (backwards: at or before it). A key that is not ahead means
    /// `next`.
    case seek([UInt8])
}

extension StoreReading {
    public func get(_ key: [UInt8]) throws -> [UInt8]? { try get(key.span) }
}

extension StoreTransaction {
    public func record(_ bytes: [UInt8]) { record(bytes.span) }
}
