import NIOCore
import Synchronization

/// The memory of one large read: counted for its client from the grant until the connection counts the result itself,
/// or this value goes.
///
/// The reader keeps it until the result is complete, and the connection until its peer has taken the result.
public final class ReadReservation: Sendable {
    typealias Outcome = ReadReservationQueue.Outcome

    fileprivate let id: UInt64
    /// Its size, of `ProcessBudget.readSizes`.
    fileprivate let size: Int
    private let bytes: Atomic<Int>
    private let outcome = Mutex(Outcome.dropped)
    fileprivate let account: ClientAccount
    private let budget: ProcessBudget

    fileprivate init(_ id: UInt64, size: Int, of account: ClientAccount, in budget: ProcessBudget) {
        self.id = id
        self.size = size
        bytes = Atomic(budget.readSizes[size].bytes)
        self.account = account
        self.budget = budget
    }

    deinit {
        counted()
        budget.readTaken(id, size, account, outcome.withLock { $0 })
    }

    /// What the result may take. A read that needs more begins again (`RPCReply.readAgain`), unless that is all that
    /// any response may have.
    public var resultBytesMax: Int { budget.readSizes[size].bytes }

    /// The result is complete, or the read has failed: the next one may run.
    public func readEnded() { budget.readEnded(id, size) }

    /// Why it goes; without a call, because its connection has closed.
    func goes(because outcome: Outcome) { self.outcome.withLock { $0 = outcome } }

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

    /// One for each size.
    var queues: [ReadReservationQueue]
    var waiting: [UInt64: Waiting] = [:]
    var lastID: UInt64 = 0

    init(_ sizes: [ReadSize], _ limits: RPCLimits) {
        // One of each size at least, so that none waits for reads of another.
        let runningMax = max(1, limits.largeReadsRunningMax / sizes.count)
        queues = sizes.map {
            ReadReservationQueue($0, clientMax: limits.clientBytesInFlightMax, runningMax: runningMax)
        }
    }

    var waitingCount: Int { queues.reduce(0) { $0 + $1.waitingCount } }

    /// The client may hold less. Returns whether something of it waits.
    mutating func heldChanged(_ client: String) -> Bool {
        for size in queues.indices { queues[size].heldChanged(client) }
        return queues.contains { $0.isWaiting(client) }
    }
}

extension ProcessBudget {
    /// Calls `granted` once, from any thread, when the memory of a large read is reserved; never when
    /// `dropReads(of:account:)` comes first.
    ///
    /// - Parameter size: of `readSizes`.
    func reserveRead(
        _ size: Int, for connection: UInt64, of account: ClientAccount,
        granted: @escaping @Sendable (ReadReservation) -> Void
    ) {
        // The account must exist until the reservation goes, also when its connections are gone.
        let account = clients.enter(account.name)
        account.setWaiting(true)
        largeReads.withLock { state in
            state.lastID += 1
            state.queues[size].outgrew(.init(id: state.lastID, connection: connection, client: account.name))
            state.waiting[state.lastID] = .init(account: account, granted: granted)
            largeReadsWaiting.store(state.waitingCount, ordering: .sequentiallyConsistent)
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
            state.queues[reservation.size].runsAgain(
                .init(id: reservation.id, connection: connection, client: account.name))
            largeReadsWaiting.store(state.waitingCount, ordering: .sequentiallyConsistent)
        }
        grantReads()
    }

    /// The connection has closed, or its client is another one from now on.
    func dropReads(of connection: UInt64, account: ClientAccount) {
        let dropped = largeReads.withLock { state in
            defer { largeReadsWaiting.store(state.waitingCount, ordering: .sequentiallyConsistent) }
            return state.queues.indices
                .flatMap { state.queues[$0].closed(connection, of: account.name) }
                .compactMap { state.waiting.removeValue(forKey: $0) }
        }
        for read in dropped where read.reservation == nil { clients.leave(read.account) }
    }

    /// Grants what can be granted now.
    func grantReads() {
        while let (read, reservation) = nextRead() { read.granted(reservation) }
    }

    private func nextRead() -> (LargeReadState.Waiting, ReadReservation)? {
        largeReads.withLock { state in
            let memory = ReadReservationQueue.Memory(
                used: usedBytes, usedByClient: { self.usedBytes(of: $0) }, now: Self.now)
            for size in state.queues.indices {
                guard let request = state.queues[size].next(memory),
                    let read = state.waiting.removeValue(forKey: request.id)
                else { continue }
                largeReadsWaiting.store(state.waitingCount, ordering: .sequentiallyConsistent)
                if let reservation = read.reservation { return (read, reservation) }
                add(readSizes[size].bytes, to: read.account)
                return (read, ReadReservation(request.id, size: size, of: read.account, in: self))
            }
            return nil
        }
    }

    fileprivate func readEnded(_ id: UInt64, _ size: Int) {
        largeReads.withLock { $0.queues[size].readEnded(id) }
        grantReads()
    }

    fileprivate func readTaken(_ id: UInt64, _ size: Int, _ account: ClientAccount, _ end: ReadReservation.Outcome) {
        largeReads.withLock { $0.queues[size].taken(id, end, at: Self.now) }
        clients.leave(account)
        grantReads()
    }

    /// Milliseconds.
    private static var now: UInt64 { NIODeadline.now().uptimeNanoseconds / 1_000_000 }

    /// Whether another connection waits to read for what this one holds.
    func isAwaitedByReads(_ connection: UInt64, of client: ClientAccount) -> Bool {
        let (used, held) = (usedBytes, client.usedBytes)
        return largeReads.withLock { state in
            state.queues.contains { $0.isAwaited(connection, of: client.name, used: used, held: held) }
        }
    }

    /// Reads that wait, and reservations that are not given back; for tests.
    var largeReadCounts: (waiting: Int, open: Int) {
        largeReads.withLock { ($0.waitingCount, $0.queues.reduce(0) { $0 + $1.openCount }) }
    }
}
