import Synchronization

extension ProcessBudget {
    /// What waits for memory to start.
    typealias Start = ConnectionStateMachine.ExemptionUse

    /// The one that starts although too much is held, of all or of a client.
    enum StartExemption {
        case process(Start)
        case client(ClientAccount)
    }

    func withGate<Result: Sendable>(_ start: Start, _ body: (borrowing StartGate) -> Result) -> Result {
        switch start {
        case .read: body(readStarts)
        case .line: body(lineStarts)
        case .mediumLine: body(mediumLineStarts)
        }
    }

    func mayStart(_ start: Start, _ account: ClientAccount) -> Bool {
        usedBytes <= withGate(start) { $0.limit } && !isBeyondShare(start, account)
            && (start != .read || smallReads.free > 0)
    }

    /// What a client may hold when another read of it starts: no more than all leave free. So a few clients that take
    /// no results leave free what each of them holds. While all hold more than the limit, they wait for each other.
    var readShare: Int {
        let free = limit - usedBytes
        return free < 0 ? clientMax : min(clientMax, free)
    }

    /// Nil when another one has it. To be returned when the request ends.
    func takeExemption(_ start: Start, _ account: ClientAccount) -> StartExemption? {
        // A client waits for what it holds itself before it takes what is left for all.
        if isBeyondShare(start, account) { return Self.take(account.isStartExempt) ? .client(account) : nil }
        return withGate(start) { Self.take($0.isExempt) } ? .process(start) : nil
    }

    private static func take(_ isExempt: borrowing Atomic<Bool>) -> Bool {
        isExempt.compareExchange(expected: false, desired: true, ordering: .sequentiallyConsistent).exchanged
    }

    func returnExemption(_ exemption: StartExemption) {
        switch exemption {
        case .process(let start): withGate(start) { $0.isExempt.store(false, ordering: .sequentiallyConsistent) }
        case .client(let account):
            account.isStartExempt.store(false, ordering: .sequentiallyConsistent)
            lookAgain(account.name)
        }
        offerStarts()
    }

    private func lookAgain(_ client: String) {
        for start in Start.allCases { withGate(start) { $0.change { $0.queue.lookAgain(client) } } }
    }

    /// Calls once, when one of this connection may start or an exemption is free; not after `forgetStart`. The
    /// connection calls `startLooked` when it has looked: then the next one is called.
    func whenOneMayStart(
        _ start: Start, for connection: UInt64, of account: ClientAccount, _ resume: @escaping @Sendable () -> Void
    ) {
        withGate(start) {
            $0.change { state in
                state.queue.waits(connection, of: account.name)
                state.resumes[connection] = resume
            }
        }
        account.setWaiting(true)
        // What was given back before is seen here.
        offerStarts()
    }

    /// A connection that was called has looked, and starts its request or waits again.
    func startLooked(of account: ClientAccount) {
        guard isAnyWaitingToStart else { return }
        lookAgain(account.name)
        offerStarts()
    }

    /// Asked whenever something ends: without a loop, which allocates.
    private var isAnyWaitingToStart: Bool { !readStarts.isEmpty || !lineStarts.isEmpty || !mediumLineStarts.isEmpty }

    /// The connection has closed. If it was called just before, it is the turn of the next.
    func forgetStart(of connection: UInt64, _ account: ClientAccount) {
        for start in Start.allCases {
            withGate(start) {
                $0.change { state in
                    state.queue.forget(connection)
                    state.resumes[connection] = nil
                }
            }
        }
        startLooked(of: account)
    }

    /// Calls those that may start now: as many as there is memory for, or as exemptions are free. Costs one look while
    /// none waits.
    func offerStarts() {
        guard isAnyWaitingToStart else { return }
        for start in Start.allCases where withGate(start, { !$0.isEmpty }) {
            for resume in readyToStart(start) { resume() }
        }
    }

    private func readyToStart(_ start: Start) -> [@Sendable () -> Void] {
        withGate(start) { gate in
            gate.change { state in
                var ready: [@Sendable () -> Void] = []
                // The memory for what may start, as if each were a read; less than 0: nothing may.
                var free = gate.limit - usedBytes
                if case .read = start {
                    free = min(free, smallReads.free.multipliedReportingOverflow(by: readBytes).partialValue - 1)
                }
                // The share of a client grows with what others give back.
                if case .read = start { state.queue.lookAgainAtOneBeyondShare() }
                var isExemptionFree = !gate.isExempt.load(ordering: .sequentiallyConsistent)
                while let connection = state.queue.next(memory(start, mayStart: free >= 0 || isExemptionFree)) {
                    if free < 0 { isExemptionFree = false }
                    free = free.subtractingReportingOverflow(readBytes).partialValue
                    if let resume = state.resumes.removeValue(forKey: connection) { ready.append(resume) }
                }
                return ready
            }
        }
    }

    /// Whether what a client has is more than its share.
    private func isBeyondShare(_ start: Start, _ account: ClientAccount) -> Bool {
        guard start == .read else { return account.usedBytes > clientMax }
        return account.usedBytes > readShare || smallReads.isBeyondShare(account)
    }

    private func memory(_ start: Start, mayStart: Bool) -> StartQueue.Memory {
        StartQueue.Memory(
            mayStart: mayStart,
            isBeyondShare: { self.clients.account(of: $0).map { self.isBeyondShare(start, $0) } ?? false },
            isExemptionFree: { name in
                !(self.clients.account(of: name)?.isStartExempt.load(ordering: .sequentiallyConsistent) ?? false)
            })
    }

    func isStartWaiting(but connection: UInt64, of client: ClientAccount) -> Bool {
        Start.allCases.contains { start in
            withGate(start) { gate in
                let isFull = usedBytes > gate.limit
                return gate.change { state in
                    isFull
                        ? state.queue.isAwaited(butBy: connection)
                        : state.queue.isAwaited(butBy: connection, of: client.name)
                }
            }
        }
    }

    func isStartWaiting(of name: String) -> Bool {
        Start.allCases.contains { withGate($0) { $0.change { $0.queue.isWaiting(name) } } }
    }

    /// The client is within its share again, if it is: what of it waits looks again.
    func lookAgainAtStarts(of account: ClientAccount) -> Bool {
        if account.usedBytes <= clientMax { lookAgain(account.name) }
        return isStartWaiting(of: account.name)
    }
}
