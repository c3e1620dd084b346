import HatoModel
import NIOCore

/// What one connection holds, counted in the budget of the process for its client (`ProcessBudget`), and whether it may
/// hold more. On the event loop only.
final class ConnectionMemory {
    private let state: ConnectionState
    private var budget: ProcessBudget { state.server.budget }
    /// The client that is charged for the connection.
    private(set) var account: ClientAccount
    /// There when the request in flight is the one that may run although too much is held.
    private var exemption: ProcessBudget.StartExemption?
    /// Reads with a small reservation, as last counted.
    private var countedReads = 0
    /// Whether the budget has called this connection to look whether its request may start.
    private var isCalled = false

    init(_ state: ConnectionState) {
        self.state = state
        account = state.server.budget.clients.enter(state.connection.client(speakingAs: .nobody))
    }

    /// Whether client and process may hold more.
    var mayHoldMore: Bool { budget.mayHoldMore(account) }

    /// - Parameter lineBytes: the memory of what was read, without what its line has claimed.
    func count(lineBytes: Int) {
        let change = state.machine.memoryChanged(lineBytes: lineBytes, unsentBytes: state.connection.unsentOwnBytes)
        // Those that wait for an earlier request of the connection wait for no thread.
        let reads = countReads(state.connection.isTurnHeld ? 0 : state.machine.smallReads)
        if change != 0 { budget.add(change, to: account) }
        // A reservation that is given back lets others start; `add` does this when the bytes are fewer.
        if reads < 0, change >= 0 { budget.readsEnded(of: account) }
    }

    /// Returns by how much the count changes.
    @discardableResult
    private func countReads(_ count: Int) -> Int {
        let change = count - countedReads
        countedReads = count
        if change != 0 { budget.smallReads.changed(by: change, of: account) }
        return change
    }

    /// Another client is charged from now on.
    func charge(to client: String) {
        let next = budget.clients.enter(client)
        let (counted, reads) = (state.machine.countedBytes, countedReads)
        budget.smallReads.changed(by: reads, of: next)
        budget.smallReads.changed(by: -reads, of: account)
        budget.add(counted, to: next)
        budget.add(-counted, to: account)
        budget.clients.leave(account)
        account = next
    }

    /// The connection has closed.
    ///
    /// - Parameter counted: what is given back.
    func leave(counted: Int) {
        if let exemption { budget.returnExemption(exemption) }
        exemption = nil
        countReads(0)
        budget.add(-counted, to: account)
        budget.clients.leave(account)
    }

    /// Counts what the channel has been given and keeps until it has closed, for longer than the connection is counted.
    ///
    /// - Returns: what ends that.
    func countUntilClosed(_ count: Int) -> @Sendable () -> Void {
        let budget = budget
        let account = budget.clients.enter(account.name)
        budget.add(count, to: account)
        return {
            budget.add(-count, to: account)
            budget.clients.leave(account)
        }
    }

    // MARK: Requests

    /// A line of so many bytes, whose values take no more than `smallLineMemoryMax`, is read also when client or
    /// process hold too much.
    private static let smallLineBytesMax = 2 << 10
    private static let smallLineMemoryMax = 8 << 10

    /// Whether a request of this method may start now.
    func mayStart(_ method: RPCMethod) -> Bool {
        let mayStartRead = budget.mayStart(.read, account)
        return mayStart(state.machine.requestArrived(method.kind, mayStartRead), .read)
    }

    /// Whether a line may be read now: what is in it takes many times its own bytes. A small one is read also when too
    /// much is held, unless requests of the connection are in flight.
    func mayTakeLine(_ size: LineSize) -> Bool {
        let mayStartLine = budget.mayStart(size.use, account)
        return mayStart(state.machine.lineTurnCame(isSmall: size == .small, mayStartLine), size.use)
    }

    func size(of line: ByteBuffer) -> LineSize {
        if line.readableBytes <= Self.smallLineBytesMax { return .small }
        return line.readableBytes <= state.server.limits.mediumLineBytesMax ? .medium : .long
    }

    /// Whether the values of a small line take little, too.
    func isSmall(_ line: Result<ReadLine, JSONError>) -> Bool {
        guard case .success(let line) = line else { return true }
        return line.memory <= Self.smallLineMemoryMax
    }

    private func mayStart(_ start: ConnectionStateMachine.Start, _ use: ConnectionStateMachine.ExemptionUse) -> Bool {
        switch start {
        case .start: true
        case .wait: false
        case .askForExemption: takeExemption(for: use)
        }
    }

    /// Whether this connection's request is the one that starts although too much is held; if not, this connection is
    /// called again when one may start.
    private func takeExemption(for use: ConnectionStateMachine.ExemptionUse) -> Bool {
        if let exemption = budget.takeExemption(use, account) {
            self.exemption = exemption
            state.machine.exemptionTaken(for: use)
            return true
        }
        guard !state.machine.isWaitingToStart else { return false }
        state.machine.startWaitChanged(isWaiting: true)
        let connection = state.connection
        budget.whenOneMayStart(use, for: connection.id, of: account) {
            connection.hub.post(.run(connection) { $0.requestMayStart() })
        }
        return false
    }

    /// The budget calls: the request that waits is looked at again when the connection settles.
    func requestMayStart() {
        state.machine.startWaitChanged(isWaiting: false)
        isCalled = true
    }

    /// The connection has settled: if it was called, the next one is.
    func passOnCall() {
        guard isCalled else { return }
        isCalled = false
        budget.startLooked(of: account)
    }

    /// Whether client or process hold so much that no other read starts before the result of the last one is taken:
    /// results that no peer takes would take any memory, one after another.
    private var isFarTooMuchHeld: Bool {
        let share = budget.readShare
        return budget.usedBytes - budget.limit > budget.limit / 8 || account.usedBytes - share > share / 8
    }

    /// Called when something has ended, or waits for a large reservation.
    func returnExemptionIfDone() {
        guard let exemption, state.machine.returnsExemption(isFarTooMuchHeld: isFarTooMuchHeld) else { return }
        self.exemption = nil
        budget.returnExemption(exemption)
    }
}
