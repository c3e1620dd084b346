import HatoModel
import Synchronization

/// The bytes that all connections together hold, in all and by client: lines being read, requests read, entries of
/// batches whose turn has not come, and answers that are not sent or not taken.
///
/// Nothing small ever waits here: what one read brings a connection may always hold, and it is only counted
/// (`ConnectionMemory`). A line that grows beyond that claims the buffer it will lie in before it is
/// read. Three rules decide on a claim, so that a client is held up by what it holds itself and not by others:
///
/// - Room for the next: a client may grow while as much stays free as it then holds. The more a client has, the
///   earlier it waits, and whoever has nothing yet finds something.
/// - A share: a client may hold `clientBytesInFlightMax`, and beyond that grow one line at a time.
/// - An end: where that leaves no room for anybody, one line in all may grow, of the client that holds the least.
///   Otherwise a memory full of unfinished lines would stay full. That line has to come fast (`LineStall`).
///
/// Neither exception is made while complete lines are still being read elsewhere (`charge`), of that client or of
/// all: they come to their end by themselves, and with them the room that is waited for.
///
/// Lines get three quarters of the limit; so all claims together leave room for answers. Claims that must wait are
/// granted in the order in which they came, as far as the rules allow.
///
/// Nobody knows how large the result of a read will be. It starts with a small reservation, and while a client holds
/// more than its share, or all hold more than the limit, only one at a time of that client, or in all, starts
/// (`mayStartRequest`). One that outgrows its reservation begins again with a large one, which it may have to wait for
/// (`ReadReservationQueue`).
final class ProcessBudget: Sendable {
    /// Memory for the line of one connection.
    private struct Claim {
        var client: ClientAccount
        var granted = 0
        /// What is waited for; nil when nothing is.
        var wanted: Int?
        var resume: @Sendable () -> Void
    }

    private struct Client {
        var account: ClientAccount
        var connections = 0
        /// The connection whose line may grow beyond the share.
        var overdrawn: UInt64?
        var charges = 0
    }

    private struct WaitingRequest {
        var client: ClientAccount
        var resume: @Sendable () -> Void
    }

    private struct State {
        var clients: [String: Client] = [:]
        var claims: [UInt64: Claim] = [:]
        /// Connections whose claims wait, the first first.
        var waiting: [UInt64] = []
        /// The connection whose line may grow although too little stays free.
        var overdrawn: UInt64?
        var charges = 0
    }

    /// Given back in so small pieces, memory is not offered to those who wait until it adds up to as much.
    private static let offeredBytesMin = 64 << 10

    let limit: Int
    private let linesMax: Int
    private let clientMax: Int
    private let used = Atomic(0)
    private let isRequestOverdrawn = Atomic(false)
    /// Connections whose next request, a read, waits for room.
    private let waitingRequests = Mutex<[UInt64: WaitingRequest]>([:])
    /// See ProcessBudget+Reads.swift.
    let largeReads: Mutex<LargeReadState>
    /// Large reads that wait for their reservations.
    let largeReadsWaiting = Atomic(0)
    private let waitingCount = Atomic(0)
    /// Given back since it was last offered.
    private let returned = Atomic(0)
    private let state = Mutex(State())
    /// Events that connections share (`ProcessBudget+Events.swift`).
    let events: Mutex<EventRoom>
    let areEventsAwaited = Atomic(false)

    /// - Parameters:
    ///   - largeReadBytes: what a large read reserves.
    ///   - largeReadsRunningMax: those that run at a time.
    init(limit: Int, clientMax: Int, largeReadBytes: Int = 0, largeReadsRunningMax: Int = 1) {
        self.limit = limit
        largeReads = Mutex(
            LargeReadState(
                queue: ReadReservationQueue(
                    bytes: largeReadBytes, limit: limit, clientMax: clientMax, runningMax: largeReadsRunningMax)))
        linesMax = limit - limit / 4
        events = Mutex(EventRoom(bytesMax: limit - limit / 2))
        self.clientMax = clientMax
    }

    var usedBytes: Int { used.load(ordering: .sequentiallyConsistent) }

    // MARK: Clients

    /// The account of a client; to be left as often as it is entered.
    func enter(_ name: String) -> ClientAccount {
        state.withLock { state in
            var client = state.clients[name] ?? Client(account: ClientAccount(name))
            client.connections += 1
            state.clients[name] = client
            return client.account
        }
    }

    func leave(_ account: ClientAccount) {
        state.withLock { state in
            guard var client = state.clients[account.name] else { return }
            client.connections -= 1
            state.clients[account.name] = client.connections > 0 ? client : nil
        }
    }

    /// What the client of this name holds.
    func usedBytes(of name: String) -> Int { state.withLock { $0.clients[name]?.account.usedBytes ?? 0 } }

    /// Counts what a connection holds more, or less.
    func add(_ change: Int, to account: ClientAccount) {
        count(change, account)
        guard change < 0, waitingCount.load(ordering: .sequentiallyConsistent) > 0 else { return }
        if returned.wrappingAdd(-change, ordering: .relaxed).newValue >= Self.offeredBytesMin { offer() }
    }

    /// Counts bytes that may outlive their connection, until the value that is returned goes.
    func charge(_ count: Int, to account: ClientAccount) -> BudgetCharge {
        let account = enter(account.name)
        changeCharges(of: account, by: 1)
        add(count, to: account)
        return BudgetCharge(count, of: account, in: self)
    }

    fileprivate func end(_ charge: BudgetCharge) {
        changeCharges(of: charge.account, by: -1)
        count(-charge.count, charge.account)
        leave(charge.account)
        if waitingCount.load(ordering: .sequentiallyConsistent) > 0 { offer() }
    }

    private func changeCharges(of account: ClientAccount, by change: Int) {
        state.withLock { state in
            state.charges += change
            state.clients[account.name]?.charges += change
        }
    }

    /// What nothing takes; less than 0 when more is taken than the limit.
    var freeBytes: Int { limit - usedBytes }

    /// Counts what belongs to no client alone.
    func addShared(_ change: Int) {
        let all = used.wrappingAdd(change, ordering: .sequentiallyConsistent)
        if all.oldValue > limit && all.newValue <= limit { resumeRequests() }
        if change < 0, waitingCount.load(ordering: .sequentiallyConsistent) > 0 { offer() }
        if change < 0, largeReadsWaiting.load(ordering: .sequentiallyConsistent) > 0 { grantReads() }
    }

    private func count(_ change: Int, _ account: ClientAccount) {
        defer { if change < 0 { offerEventRoom() } }
        let all = used.wrappingAdd(change, ordering: .sequentiallyConsistent)
        let own = account.used.wrappingAdd(change, ordering: .sequentiallyConsistent)
        let hasRoomAgain = all.oldValue > limit && all.newValue <= limit
        if hasRoomAgain || own.oldValue > clientMax && own.newValue <= clientMax { resumeRequests() }
        if change < 0, largeReadsWaiting.load(ordering: .sequentiallyConsistent) > 0 { grantReads() }
    }

    /// Whether connections of this client may go on reading although they hold something already.
    func mayHoldMore(_ account: ClientAccount) -> Bool {
        let held = account.usedBytes
        return held <= clientMax && held <= limit - usedBytes
    }

    // MARK: Claims

    /// True when the line of this connection may lie in a buffer of `capacity` bytes, which are counted from then on
    /// until `endClaim`. False when it must wait: `resume` is called, from any thread, when it need not any more.
    func claim(
        _ capacity: Int, for connection: UInt64, of client: ClientAccount, resume: @escaping @Sendable () -> Void
    ) -> Bool {
        state.withLock { state in
            var claim = state.claims[connection] ?? Claim(client: client, resume: resume)
            guard capacity > claim.granted else { return true }
            // It waits already, at its place.
            if let wanted = claim.wanted, wanted >= capacity { return false }
            if claim.wanted == nil { state.waiting.append(connection) }
            claim.wanted = capacity
            state.claims[connection] = claim
            // Whoever gives back from now on knows that somebody waits; what was given back before is seen here.
            waitingCount.store(state.waiting.count, ordering: .sequentiallyConsistent)
            guard grant(connection, &state) else { return false }
            state.waiting.removeAll { $0 == connection }
            waitingCount.store(state.waiting.count, ordering: .sequentiallyConsistent)
            return true
        }
    }

    /// The line is complete, or the connection has closed.
    func endClaim(of connection: UInt64) {
        let ended: Claim? = state.withLock { state in
            guard let claim = state.claims.removeValue(forKey: connection) else { return nil }
            if claim.wanted != nil {
                state.waiting.removeAll { $0 == connection }
                waitingCount.store(state.waiting.count, ordering: .sequentiallyConsistent)
            }
            if state.overdrawn == connection { state.overdrawn = nil }
            if state.clients[claim.client.name]?.overdrawn == connection {
                state.clients[claim.client.name]?.overdrawn = nil
            }
            return claim
        }
        // Outside of the mutex: reads may go on.
        if let ended { count(-ended.granted, ended.client) }
        if waitingCount.load(ordering: .sequentiallyConsistent) > 0 { offer() }
    }

    /// Whether another connection waits for what this one holds: one of the same client, or one that the whole process
    /// has no room for. A process that holds more than its limit waits itself.
    ///
    /// - Parameter holdsEvents: whether it has events to take that connections share.
    func isAwaited(_ connection: UInt64, of client: ClientAccount, holdsEvents: Bool = false) -> Bool {
        let isFull = usedBytes > limit
        if isFull || isAwaitedByReads(connection, of: client) { return true }
        if holdsEvents, areEventsAwaited(butBy: connection) { return true }
        return state.withLock { state in
            state.waiting.contains { other in
                guard other != connection, let claim = state.claims[other] else { return false }
                return claim.client === client || !leavesRoom(claim)
            }
        }
    }

    /// Grants what can be granted now.
    func offer() {
        let resumed: [@Sendable () -> Void] = state.withLock { state in
            returned.store(0, ordering: .relaxed)
            var resumed: [@Sendable () -> Void] = []
            let waiting = state.waiting
            state.waiting = []
            for connection in waiting {
                if grant(connection, &state, mayOverdraw: false) {
                    if let claim = state.claims[connection] { resumed.append(claim.resume) }
                } else {
                    state.waiting.append(connection)
                }
            }
            if let least = leastHeld(state), grant(least, &state) {
                state.waiting.removeAll { $0 == least }
                if let claim = state.claims[least] { resumed.append(claim.resume) }
            }
            waitingCount.store(state.waiting.count, ordering: .sequentiallyConsistent)
            return resumed
        }
        for resume in resumed { resume() }
    }

    /// The first waiting claim of the client that holds the least: where nothing fits, it is the one that goes on.
    private func leastHeld(_ state: State) -> UInt64? {
        guard state.overdrawn == nil, state.charges == 0 else { return nil }
        func held(_ connection: UInt64) -> Int { state.claims[connection]?.client.usedBytes ?? .max }
        return state.waiting.min { held($0) < held($1) }
    }

    /// Whether the line of this connection is the one that goes on although nothing fits.
    func isOverdrawn(_ connection: UInt64) -> Bool { state.withLock { $0.overdrawn == connection } }

    /// - Parameter mayOverdraw: whether it may become the one that goes on although nothing fits.
    private func grant(_ connection: UInt64, _ state: inout State, mayOverdraw: Bool = true) -> Bool {
        guard var claim = state.claims[connection], let wanted = claim.wanted else { return false }
        let growth = wanted - claim.granted
        let name = claim.client.name
        if !leavesRoom(claim) {
            let isFree = mayOverdraw && state.charges == 0
            guard state.overdrawn.map({ $0 == connection }) ?? isFree else { return false }
            state.overdrawn = connection
        } else if claim.client.usedBytes + growth > clientMax {
            let client = state.clients[name]
            guard client?.overdrawn.map({ $0 == connection }) ?? (client?.charges == 0) else { return false }
            state.clients[name]?.overdrawn = connection
        }
        claim.granted = wanted
        claim.wanted = nil
        state.claims[connection] = claim
        count(growth, claim.client)
        return true
    }

    /// Whether as much stays free as the client then holds.
    private func leavesRoom(_ claim: Claim) -> Bool {
        let growth = (claim.wanted ?? claim.granted) - claim.granted
        return claim.client.usedBytes + growth <= linesMax - usedBytes - growth
    }

    // MARK: Requests that read

    /// The one request that reads although too much is held, of all or of a client.
    enum RequestOverdraft {
        case process
        case client(ClientAccount)
    }

    func mayStartRequest(_ account: ClientAccount) -> Bool { usedBytes <= limit && account.usedBytes <= clientMax }

    /// Whoever gets one returns it when the request is answered.
    func takeRequestOverdraft(_ account: ClientAccount) -> RequestOverdraft? {
        // A client waits for what it holds itself before it takes what is left for all.
        if account.usedBytes > clientMax { return Self.take(account.isRequestOverdrawn) ? .client(account) : nil }
        return Self.take(isRequestOverdrawn) ? .process : nil
    }

    func returnRequestOverdraft(_ overdraft: RequestOverdraft) {
        switch overdraft {
        case .process: isRequestOverdrawn.store(false, ordering: .sequentiallyConsistent)
        case .client(let account): account.isRequestOverdrawn.store(false, ordering: .sequentiallyConsistent)
        }
        resumeRequests()
    }

    /// Calls once, when a read may start or an overdraft is free again; not after `forgetRequest`.
    func whenARequestMayStart(
        for connection: UInt64, of account: ClientAccount, _ resume: @escaping @Sendable () -> Void
    ) {
        waitingRequests.withLock { $0[connection] = WaitingRequest(client: account, resume: resume) }
        // Room may have come between the caller's look and the append.
        let isOverdrawn =
            account.usedBytes > clientMax
            ? account.isRequestOverdrawn.load(ordering: .sequentiallyConsistent)
            : isRequestOverdrawn.load(ordering: .sequentiallyConsistent)
        if mayStartRequest(account) || !isOverdrawn { resumeRequests() }
    }

    private static func take(_ overdrawn: borrowing Atomic<Bool>) -> Bool {
        overdrawn.compareExchange(expected: false, desired: true, ordering: .sequentiallyConsistent).exchanged
    }

    /// The connection has closed.
    func forgetRequest(of connection: UInt64) {
        waitingRequests.withLock { _ = $0.removeValue(forKey: connection) }
    }

    func areRequestsWaiting(but connection: UInt64, of client: ClientAccount) -> Bool {
        let isFull = usedBytes > limit
        return waitingRequests.withLock { waiting in
            waiting.contains { $0.key != connection && (isFull || $0.value.client === client) }
        }
    }

    private func resumeRequests() {
        let resumed = waitingRequests.withLock { waiting in
            defer { waiting = [:] }
            return waiting
        }
        for read in resumed.values { read.resume() }
    }
}

/// Bytes that count for a client as long as this exists.
final class BudgetCharge: Sendable {
    fileprivate let count: Int
    fileprivate let account: ClientAccount
    private let budget: ProcessBudget

    fileprivate init(_ count: Int, of account: ClientAccount, in budget: ProcessBudget) {
        self.count = count
        self.account = account
        self.budget = budget
    }

    deinit { budget.end(self) }
}

/// What one client holds over all its connections.
final class ClientAccount: Sendable {
    let name: String
    fileprivate let used = Atomic(0)
    fileprivate let isRequestOverdrawn = Atomic(false)

    init(_ name: String) { self.name = name }

    /// A user, wherever the connections come from; else the address.
    static func name(_ caller: Caller, _ address: ClientAddress) -> String {
        if case .user(let user) = caller { return "user \(user.uid)" }
        return "address \(address.network)"
    }

    var usedBytes: Int { used.load(ordering: .sequentiallyConsistent) }
}
