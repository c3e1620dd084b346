import Synchronization

/// The lines that claim memory and what calls them; guarded by the mutex of `ProcessBudget`.
struct LineState {
    struct Claiming {
        var client: ClientAccount
        /// Called from any thread, when the line need not wait any more.
        var resume: @Sendable () -> Void
        /// The same, when it is to be dropped.
        var refuse: @Sendable () -> Void
    }

    var queue: LineClaims
    /// Connections whose lines have claims, granted or not.
    var claiming: [UInt64: Claiming] = [:]
}

extension ProcessBudget {
    /// True when the line of this connection may lie in a buffer of `capacity` bytes, which are counted from then on
    /// until `endClaim`. False when it must wait for a call.
    func claim(_ capacity: Int, for connection: UInt64, _ claiming: LineState.Claiming) -> Bool {
        let (isGranted, calls) = lines.withLock { state -> (Bool, [@Sendable () -> Void]) in
            if state.queue.claimed(capacity, by: connection, of: claiming.client.name) { return (true, []) }
            if state.claiming[connection] == nil { state.claiming[connection] = claiming }
            claiming.client.setWaiting(true)
            return decide(&state, for: connection)
        }
        for call in calls { call() }
        return isGranted
    }

    /// The line is complete, or is dropped.
    func endClaim(of connection: UInt64, isComplete: Bool) {
        let ended = lines.withLock { state -> (client: ClientAccount, granted: Int)? in
            guard let claiming = state.claiming.removeValue(forKey: connection) else { return nil }
            return (claiming.client, state.queue.ended(connection, isComplete: isComplete))
        }
        guard let ended else { return }
        // Outside of the mutex: others may go on.
        add(-ended.granted, to: ended.client)
        offerLines()
    }

    /// Counts a line that is read elsewhere, and may outlive its connection, until the value that is returned goes.
    func charge(_ count: Int, to account: ClientAccount) -> LineCharge {
        let account = clients.enter(account.name)
        lines.withLock { $0.queue.chargeBegan(of: account.name) }
        add(count, to: account)
        return LineCharge(count, of: account, in: self)
    }

    fileprivate func change(_ charge: LineCharge, by change: Int) { add(change, to: charge.account) }

    fileprivate func end(_ charge: LineCharge, _ count: Int) {
        lines.withLock { $0.queue.chargeEnded(of: charge.account.name) }
        add(-count, to: charge.account)
        clients.leave(charge.account)
        offerLines()
    }

    /// Why the line of this connection goes on although nothing fits; nil: it does not.
    func exemption(of connection: UInt64) -> LineExemption? { lines.withLock { $0.queue.exemption(of: connection) } }

    /// Grants what can be granted now, after an event.
    func offerLines(after event: (inout LineClaims) -> Void = { _ in }) {
        let calls = lines.withLock { state in
            event(&state.queue)
            return state.queue.waitingCount == 0 ? [] : decide(&state, for: nil).calls
        }
        for call in calls { call() }
    }

    /// - Parameter asking: a connection that is not called when its claim is granted.
    /// - Returns: whether it is, and what is to be called.
    private func decide(
        _ state: inout LineState, for asking: UInt64?
    ) -> (isGranted: Bool, calls: [@Sendable () -> Void]) {
        // What is given back from now on waits for the mutex; what was given back before is seen here.
        leastLineNeed.store(.min, ordering: .sequentiallyConsistent)
        var (isGranted, calls): (Bool, [@Sendable () -> Void]) = (false, [])
        while let decision = state.queue.next(.init(used: usedBytes, usedByClient: { self.usedBytes(of: $0) })) {
            switch decision {
            case .grant(let grant):
                guard let claiming = state.claiming[grant.connection] else { continue }
                add(grant.growth, to: claiming.client)
                if grant.connection == asking { isGranted = true } else { calls.append(claiming.resume) }
            case .refuse(let connection): calls += state.claiming[connection].map { [$0.refuse] } ?? []
            }
        }
        leastLineNeed.store(state.queue.leastNeed ?? .max, ordering: .sequentiallyConsistent)
        return (isGranted, calls)
    }
}

/// Bytes of a line that count for a client as long as this exists.
final class LineCharge: Sendable {
    fileprivate let account: ClientAccount
    private let count: Atomic<Int>
    private let budget: ProcessBudget

    fileprivate init(_ count: Int, of account: ClientAccount, in budget: ProcessBudget) {
        self.count = Atomic(count)
        self.account = account
        self.budget = budget
    }

    /// It is known now that it takes no more than this.
    func reduce(to known: Int) {
        let before = count.min(known, ordering: .relaxed).oldValue
        if known < before { budget.change(self, by: known - before) }
    }

    deinit { budget.end(self, count.load(ordering: .relaxed)) }
}
