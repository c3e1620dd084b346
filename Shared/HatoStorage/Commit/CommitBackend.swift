/// What differs between stores: how a transaction reads and is applied, and how what was applied becomes durable.
///
/// Everything down to `seal` is called on the writer's thread, where transactions are made. `snapshot` and
/// `makeDurable` are about what was sealed, and are called there too, or on one other thread if `seal` allowed it;
/// `seal` is called again when they are through.
package protocol CommitBackend: AnyObject, Sendable {
    associatedtype Transaction: CommitTransaction

    /// A transaction on everything applied so far, which has left `derived`.
    func begin(nextVersion: UInt64, derived: (any StoreDerived)?) -> Transaction

    /// Applies rows and record as one atomic step, not durable yet; the new version is `transaction.nextVersion`.
    func apply(_ transaction: Transaction)

    /// Forgets what a transaction wrote that will not be applied.
    func discard(_ transaction: Transaction)

    /// Sets apart what was applied since the last time. True when transactions may be made while it becomes durable:
    /// they see it.
    func seal() -> Bool

    /// A snapshot of everything sealed. It goes to nobody before `makeDurable`.
    func snapshot(at version: UInt64, derived: (any StoreDerived)?) -> any StoreSnapshot

    /// Makes everything sealed durable.
    func makeDurable(through version: UInt64) throws(StoreError)

    /// Throws when nothing more may be written although what was made durable is; called after its answers.
    func checkHealth() throws(StoreError)

    /// The newest version whose commit may be in the log: the next opening may find commits up to here. Asked after a
    /// failure, when nothing is applied any more.
    var loggedVersion: UInt64 { get }

    /// The last call. Nothing was submitted after what has been answered.
    func shutDown()
}

package protocol CommitTransaction: StoreTransaction {
    var phase: TransactionPhase { get }
    /// Bytes of keys, values and record written so far.
    var writtenBytes: Int { get }
    var recorded: [UInt8] { get }
    var note: (any Sendable)? { get }
    /// What `setDerived` was given last.
    var newDerived: (any StoreDerived)? { get }

    /// The write has returned; whoever kept the transaction and uses it traps.
    func finish()
}

/// Where a transaction stands: it reads, then it writes, then it is over. A write that breaks the order is wrong and
/// traps.
package struct TransactionPhase {
    package private(set) var hasWritten = false
    /// What makes the commit impossible although its write did not throw.
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
