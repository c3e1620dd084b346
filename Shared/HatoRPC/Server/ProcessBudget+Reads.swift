import NIOCore
import Synchronization

/// The memory of one large read: counted for its client from the grant until the connection counts the result itself,
/// or this value goes.
///
/// The reader keeps it until the result is complete, and the connection until its peer has taken the result.
public final class ReadReservation: Sendable {
    fileprivate let id: UInt64
    private let bytes: Atomic<Int>
    fileprivate let account: ClientAccount
    private let budget: ProcessBudget

    fileprivate init(_ id: UInt64, bytes: Int, of account: ClientAccount, in budget: ProcessBudget) {
        self.id = id
        self.bytes = Atomic(bytes)
        self.account = account
        self.budget = budget
    }

    deinit {
        counted()
        budget.readTaken(id, account)
    }

    /// The result is complete, or the read has failed: the next one may run.
    public func readEnded() { budget.readEnded(id) }

    /// From now on the connection counts what the result takes.
    func counted() {
        let reserved = bytes.exchange(0, ordering: .sequentiallyConsistent)
        if reserved > 0 { budget.add(-reserved, to: account) }
    }
}

/// The large reads of a process and what calls them; guarded by the mutex of `ProcessBudget`.
struct LargeReadState {
    struct Waiting {
        var account: ClientAccount
        /// The reservation of its batch, in which the read runs; nil: it needs one.
        var reservation: ReadReservation?
        var granted: @Sendable (ReadReservation) -> Void
    }

    var queue: ReadReservationQueue
    var waiting: [UInt64: Waiting] = [:]
    var lastID: UInt64 = 0
}

extension ProcessBudget {
    /// Calls `granted` once, from any thread, when the memory of a large read is reserved; never when
    /// `dropReads(of:account:)` comes first.
    func reserveRead(
        for connection: UInt64, of account: ClientAccount, granted: @escaping @Sendable (ReadReservation) -> Void
    ) {
        // The account must exist until the reservation goes, also when its connections are gone.
        let account = enter(account.name)
        account.setWaiting(true)
        largeReads.withLock { state in
            state.lastID += 1
            state.queue.outgrew(.init(id: state.lastID, connection: connection, client: account.name))
            state.waiting[state.lastID] = .init(account: account, granted: granted)
            largeReadsWaiting.store(state.queue.waitingCount, ordering: .sequentiallyConsistent)
        }
        grantReads()
    }

    /// Calls `granted` once, from any thread, when another large read may run in a reservation that is there already;
    /// never when `dropReads(of:account:)` comes first.
    func runRead(
        in reservation: ReadReservation, for connection: UInt64,
        granted: @escaping @Sendable (ReadReservation) -> Void
    ) {
        let account = reservation.account
        account.setWaiting(true)
        largeReads.withLock { state in
            state.waiting[reservation.id] = .init(account: account, reservation: reservation, granted: granted)
            state.queue.runsAgain(.init(id: reservation.id, connection: connection, client: account.name))
            largeReadsWaiting.store(state.queue.waitingCount, ordering: .sequentiallyConsistent)
        }
        grantReads()
    }

    /// The connection has closed, or its client is another one from now on.
    func dropReads(of connection: UInt64, account: ClientAccount) {
        let dropped = largeReads.withLock { state in
            defer { largeReadsWaiting.store(state.queue.waitingCount, ordering: .sequentiallyConsistent) }
            return state.queue.closed(connection, of: account.name).compactMap {
                state.waiting.removeValue(forKey: $0)
            }
        }
        for read in dropped where read.reservation == nil { leave(read.account) }
    }

    /// Grants what can be granted now.
    func grantReads() {
        while let (read, reservation) = nextRead() { read.granted(reservation) }
    }

    private func nextRead() -> (LargeReadState.Waiting, ReadReservation)? {
        largeReads.withLock { state in
            let memory = ReadReservationQueue.Memory(
                used: usedBytes, usedByClient: { self.usedBytes(of: $0) }, now: Self.now)
            guard let request = state.queue.next(memory), let read = state.waiting.removeValue(forKey: request.id)
            else { return nil }
            largeReadsWaiting.store(state.queue.waitingCount, ordering: .sequentiallyConsistent)
            if let reservation = read.reservation { return (read, reservation) }
            let bytes = state.queue.bytes
            add(bytes, to: read.account)
            return (read, ReadReservation(request.id, bytes: bytes, of: read.account, in: self))
        }
    }

    fileprivate func readEnded(_ id: UInt64) {
        largeReads.withLock { $0.queue.readEnded(id) }
        grantReads()
    }

    fileprivate func readTaken(_ id: UInt64, _ account: ClientAccount) {
        largeReads.withLock { $0.queue.taken(id, at: Self.now) }
        leave(account)
        grantReads()
    }

    /// Milliseconds.
    private static var now: UInt64 { NIODeadline.now().uptimeNanoseconds / 1_000_000 }

    /// Whether another connection waits to read for what this one holds.
    func isAwaitedByReads(_ connection: UInt64, of client: ClientAccount) -> Bool {
        let used = usedBytes
        return largeReads.withLock { $0.queue.isAwaited(connection, of: client.name, used: used) }
    }

    /// Reads that wait, and reservations that are not given back; for tests.
    var largeReadCounts: (waiting: Int, open: Int) {
        largeReads.withLock { ($0.queue.waitingCount, $0.queue.openCount) }
    }
}
