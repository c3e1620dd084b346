import Synchronization

/// The lines that claim memory and what calls them; guarded by the mutex of `ProcessBudget`.
struct LineState {
    struct Claiming {
        var client: ClientAccount
        var resume: @Sendable () -> Void
    }

    var queue: LineClaims
    /// Connections whose lines have claims, granted or not.
    var claiming: [UInt64: Claiming] = [:]
}

extension ProcessBudget {
    /// True when the line of this connection may lie in a buffer of `capacity` bytes, which are counted from then on
    /// until `endClaim`. False when it must wait: `resume` is called, from any thread, when it need not any more.
    func claim(
        _ capacity: Int, for connection: UInt64, of client: ClientAccount, resume: @escaping @Sendable () -> Void
    ) -> Bool {
        let (isGranted, others) = lines.withLock { state -> (Bool, [@Sendable () -> Void]) in
            if state.queue.claimed(capacity, by: connection, of: client.name) { return (true, []) }
            if state.claiming[connection] == nil {
                state.claiming[connection] = LineState.Claiming(client: client, resume: resume)
            }
            client.setWaiting(true)
            let granted = grantLines(&state)
            return (granted.contains(connection), resumes(granted.filter { $0 != connection }, state))
        }
        for resume in others { resume() }
        return isGranted
    }

    /// The line is complete, or the connection has closed.
    func endClaim(of connection: UInt64) {
        let ended = lines.withLock { state -> (client: ClientAccount, granted: Int)? in
            guard let claiming = state.claiming.removeValue(forKey: connection) else { return nil }
            return (claiming.client, state.queue.ended(connection))
        }
        guard let ended else { return }
        // Outside of the mutex: others may go on.
        add(-ended.granted, to: ended.client)
        offerLines()
    }

    /// Counts a line that is read elsewhere, and may outlive its connection, until the value that is returned goes.
    func charge(_ count: Int, to account: ClientAccount) -> LineCharge {
        let account = enter(account.name)
        lines.withLock { $0.queue.chargeBegan(of: account.name) }
        add(count, to: account)
        return LineCharge(count, of: account, in: self)
    }

    fileprivate func change(_ charge: LineCharge, by change: Int) { add(change, to: charge.account) }

    fileprivate func end(_ charge: LineCharge, _ count: Int) {
        lines.withLock { $0.queue.chargeEnded(of: charge.account.name) }
        add(-count, to: charge.account)
        leave(charge.account)
        offerLines()
    }

    /// Whether the line of this connection is the one that goes on although nothing fits.
    func isExempt(_ connection: UInt64) -> Bool { lines.withLock { $0.queue.isExempt(connection) } }

    /// Grants what can be granted now.
    func offerLines() {
        let ready = lines.withLock { state in
            state.queue.waitingCount == 0 ? [] : resumes(grantLines(&state), state)
        }
        for resume in ready { resume() }
    }

    private func grantLines(_ state: inout LineState) -> [UInt64] {
        // What is given back from now on waits for the mutex; what was given back before is seen here.
        leastLineNeed.store(.min, ordering: .sequentiallyConsistent)
        var granted: [UInt64] = []
        while let grant = state.queue.next(.init(used: usedBytes, usedByClient: { self.usedBytes(of: $0) })) {
            if let claiming = state.claiming[grant.connection] { add(grant.growth, to: claiming.client) }
            granted.append(grant.connection)
        }
        leastLineNeed.store(state.queue.leastNeed ?? .max, ordering: .sequentiallyConsistent)
        return granted
    }

    private func resumes(_ connections: [UInt64], _ state: LineState) -> [@Sendable () -> Void] {
        connections.compactMap { state.claiming[$0]?.resume }
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
