/// What differs between stores: how a transaction reads and is applied, and how applied transactions become durable.
///
/// Everything down to `seal` is called on the writer's thread, where transactions are made. `snapshot` and
/// `makeDurable` apply to what was sealed; they are called on the writer's thread, or on one other thread if `seal`
/// allowed it. `seal` is called again when both have returned.
package protocol CommitBackend: AnyObject, Sendable {
    associatedtype Transaction: CommitTransaction

    /// A transaction on everything applied so far; `derived` is the derived state at that point.
    func begin(nextVersion: UInt64, derived: (any StoreDerived)?) -> Transaction

    /// Applies rows and record as one atomic step, not durable yet; the new version is `transaction.nextVersion`.
    func apply(_ transaction: Transaction)

    /// Discards what a transaction wrote that will not be applied.
    func discard(_ transaction: Transaction)

    /// Separates what was applied since the last call. Returns true when transactions may be made while it becomes
    /// durable; these transactions see it.
    func seal() -> Bool

    /// A snapshot of everything sealed. It is published only after `makeDurable`.
    func snapshot(at version: UInt64, derived: (any StoreDerived)?) -> any StoreSnapshot

    /// Makes everything sealed durable.
    func makeDurable(through version: UInt64) throws(StoreError)

    /// Throws when the store must not be written to any more although everything made durable is valid. Called after
    /// the completions of the group.
    func checkHealth() throws(StoreError)

    /// The newest version whose commit may be in the log: the next opening may find commits up to this version. Read
    /// after a failure, when nothing more is applied.
    var loggedVersion: UInt64 { get }

    /// The last call. Nothing is submitted after it.
    func shutDown()
}

package protocol CommitTransaction: StoreTransaction {
    var phase: TransactionPhase { get }
    /// Bytes of keys, values and record written so far.
    var writtenBytes: Int { get }
    var recorded: [UInt8] { get }
    var note: (any Sendable)? { get }
    /// The object of the last `setDerived`.
    var newDerived: (any StoreDerived)? { get }

    /// Called when the write has returned. Every later use of the transaction traps.
    func finish()
}

/// The phase of a transaction: it reads, then it writes, then it is finished. A write that breaks this order is a
/// programmer error and traps.
package struct TransactionPhase {
    package private(set) var hasWritten = false
    /// What prevents the commit although its write did not throw.
    package private(set) var problem: StoreError?
    private var isFinished = false

    package init() {}

    package func willRead() {
        precondition(!isFinished, "a transaction was used after its write had returned")
        precondition(!hasWritten, "a transaction reads first and writes after: a read came after its first write")
    }

    /// False when the key cannot be written.
    package mutating func willWrite(key: Span<UInt8>) -> Bool {
        willWrite()
        if key.count > StoreLimits.keyBytesMax { problem = problem ?? .keyTooLong(bytes: key.count) }
        return problem == nil
    }

    package mutating func willWrite() {
        precondition(!isFinished, "a transaction was used after its write had returned")
        hasWritten = true
    }

    package mutating func finish() { isFinished = true }
}
