import HatoModel
import Synchronization

/// Counts the bytes that all connections use, in total and by client: of unfinished lines, of requests, of entries of
/// batches that have not run yet, and of responses that are not sent or that the client has not read.
///
/// A connection may always keep the bytes of one read; these are counted and never wait (`ConnectionMemory`). Larger
/// uses wait in one of four queues, each a value that decides:
///
/// - Lines that grow beyond one read claim the buffer they will lie in (`LineClaims`). They get three quarters of the
///   limit; so all claims together leave free memory for responses.
/// - The size of a read's result is not known before. It starts with a small reservation; all of these take a quarter
///   of the limit at most. While a client holds more than its share, which is no more than what is free, or all hold
///   more than the limit, only one at a time of that client, or in all, starts (`StartQueue`). So does a line whose
///   values take many times its bytes, while all hold more than three quarters of the limit, or seven eighths if it is
///   of medium length: what is written in large pieces leaves memory for small reads, and long lines leave some for
///   shorter ones.
/// - A read that outgrows its reservation begins again with a larger one (`ReadSize`, `ReadReservationQueue`).
/// - Events that connections share take half of the limit (`EventCapacity`).
///
/// Released bytes continue the waiting uses that fit, at a cost logarithmic in their number. Counts are atomic; each
/// queue is behind a mutex of its own, and no callback runs under a mutex.
final class ProcessBudget: Sendable {
    let limit: Int
    let clientMax: Int
    /// What a read reserves when it starts.
    let readBytes: Int
    /// The reads that have such a reservation.
    let smallReads: SmallReads
    private let used = Atomic(0)
    let clients = ClientAccounts()
    /// See ProcessBudget+Lines.swift.
    let lines: Mutex<LineState>
    let linesMax: Int
    /// The memory of the longest line of medium length.
    let mediumLineCapacity: Int
    /// The free memory with which a claim goes on.
    let leastLineNeed = Atomic(Int.max)
    /// See ProcessBudget+Requests.swift.
    let readStarts: StartGate
    let lineStarts: StartGate
    let mediumLineStarts: StartGate
    /// See ProcessBudget+Reads.swift.
    let readSizes: [ReadSize]
    let largeReads: Mutex<LargeReadState>
    let largeReadsWaiting = Atomic(0)
    /// See ProcessBudget+Events.swift.
    let events: Mutex<EventCapacity>
    let areEventsAwaited = Atomic(false)

    init(_ limits: RPCLimits) {
        limit = limits.processBytesInFlightMax
        clientMax = limits.clientBytesInFlightMax
        readBytes = max(1, limits.unreservedReadBytesMax)
        smallReads = SmallReads(countMax: limit / 4 / readBytes)
        linesMax = limit - limit / 4
        readStarts = StartGate(limit: limit)
        lineStarts = StartGate(limit: linesMax)
        mediumLineStarts = StartGate(limit: limit - limit / 8)
        mediumLineCapacity = LineBuffer.capacity(for: limits.mediumLineBytesMax + LineIntake.readBytesMax)
        lines = Mutex(
            LineState(
                queue: LineClaims(
                    linesMax: linesMax, clientMax: clientMax, reserved: limit / 8, forCapacity: mediumLineCapacity)))
        readSizes = ReadSize.all(limits)
        largeReads = Mutex(LargeReadState(readSizes, limits))
        events = Mutex(EventCapacity(bytesMax: min(limits.processEventBytesMax, limit - limit / 2)))
    }

    var usedBytes: Int { used.load(ordering: .sequentiallyConsistent) }
    /// What nothing takes; less than 0 when more is taken than the limit.
    var freeBytes: Int { limit - usedBytes }

    /// Small reservations of the client were given back, and no bytes: lets those go on that waited for them.
    func readsEnded(of account: ClientAccount) {
        if account.isWaiting { lookAgain(at: account) }
        offerStarts()
    }

    // MARK: Counting

    /// What the client of this name holds.
    func usedBytes(of name: String) -> Int { clients.account(of: name)?.usedBytes ?? 0 }

    /// Counts what a client holds more, or less.
    func add(_ change: Int, to account: ClientAccount) {
        used.wrappingAdd(change, ordering: .sequentiallyConsistent)
        account.add(change)
        if change < 0 { released(by: account) }
    }

    /// Counts what belongs to no client alone.
    func addShared(_ change: Int) {
        used.wrappingAdd(change, ordering: .sequentiallyConsistent)
        if change < 0 { released(by: nil) }
    }

    /// Lets those go on that waited for what is free now. Costs a look at each queue while none waits.
    private func released(by account: ClientAccount?) {
        if let account, account.isWaiting { lookAgain(at: account) }
        if linesMax - usedBytes >= leastLineNeed.load(ordering: .sequentiallyConsistent) { offerLines() }
        offerStarts()
        if largeReadsWaiting.load(ordering: .sequentiallyConsistent) > 0 { grantReads() }
        offerEventMemory()
    }

    /// The client holds less: what of it waits for that is looked at again.
    private func lookAgain(at account: ClientAccount) {
        // Before the looks: what begins to wait from now on sets it again.
        account.setWaiting(false)
        let isLineWaiting = lines.withLock { state in
            state.queue.heldChanged(account.name)
            leastLineNeed.store(state.queue.leastNeed ?? .max, ordering: .sequentiallyConsistent)
            return state.queue.isWaiting(account.name)
        }
        let isStartWaiting = lookAgainAtStarts(of: account)
        let isReadWaiting = largeReads.withLock { $0.heldChanged(account.name) }
        if isLineWaiting || isStartWaiting || isReadWaiting { account.setWaiting(true) }
    }

    /// Whether connections of this client may go on reading although they hold something already.
    func mayHoldMore(_ account: ClientAccount) -> Bool {
        let held = account.usedBytes
        return held <= clientMax && held <= limit - usedBytes
    }

    /// Whether another connection waits for what this one holds: one of the same client, or one that finds no free
    /// memory. A process that holds more than its limit waits itself.
    ///
    /// - Parameter holdsEvents: whether it has events to take that connections share.
    func isAwaited(_ connection: UInt64, of client: ClientAccount, holdsEvents: Bool = false) -> Bool {
        usedBytes > limit || isAwaitedByReads(connection, of: client)
            || isStartWaiting(but: connection, of: client)
            || holdsEvents && areEventsAwaited(butBy: connection)
            || lines.withLock { $0.queue.isAwaited(connection, of: client.name) }
    }
}
