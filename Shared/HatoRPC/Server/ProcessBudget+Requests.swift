import Synchronization

/// The requests that wait to start and what calls them; guarded by the mutex of `ProcessBudget`.
struct RequestState {
    var queue = StartQueue()
    var resumes: [UInt64: @Sendable () -> Void] = [:]
}

extension ProcessBudget {
    /// The one request that runs although too much is held, of all or of a client.
    enum RequestExemption {
        case process
        case client(ClientAccount)
    }

    func mayStartRequest(_ account: ClientAccount) -> Bool { usedBytes <= limit && account.usedBytes <= clientMax }

    /// Nil when another request has it. To be returned when the request ends.
    func takeRequestExemption(_ account: ClientAccount) -> RequestExemption? {
        // A client waits for what it holds itself before it takes what is left for all.
        if account.usedBytes > clientMax { return Self.take(account.isRequestExempt) ? .client(account) : nil }
        return Self.take(isRequestExempt) ? .process : nil
    }

    private static func take(_ isExempt: borrowing Atomic<Bool>) -> Bool {
        isExempt.compareExchange(expected: false, desired: true, ordering: .sequentiallyConsistent).exchanged
    }

    func returnRequestExemption(_ exemption: RequestExemption) {
        switch exemption {
        case .process: isRequestExempt.store(false, ordering: .sequentiallyConsistent)
        case .client(let account):
            account.isRequestExempt.store(false, ordering: .sequentiallyConsistent)
            requests.withLock { $0.queue.lookAgain(account.name) }
        }
        offerRequests()
    }

    /// Calls once, when a request of this connection may start or an exemption is free; not after `forgetRequest`. The
    /// connection calls `requestLooked` when it has looked: then the next one is called.
    func whenARequestMayStart(
        for connection: UInt64, of account: ClientAccount, _ resume: @escaping @Sendable () -> Void
    ) {
        requests.withLock { state in
            state.queue.waits(connection, of: account.name)
            state.resumes[connection] = resume
            requestsWaiting.store(state.queue.waitingCount, ordering: .sequentiallyConsistent)
        }
        account.setWaiting(true)
        // What was given back before is seen here.
        offerRequests()
    }

    /// A connection that was called has looked, and starts its request or waits again.
    func requestLooked(of account: ClientAccount) {
        guard requestsWaiting.load(ordering: .sequentiallyConsistent) > 0 else { return }
        requests.withLock { $0.queue.lookAgain(account.name) }
        offerRequests()
    }

    /// The connection has closed. If it was called just before, it is the turn of the next.
    func forgetRequest(of connection: UInt64, _ account: ClientAccount) {
        requests.withLock { state in
            state.queue.forget(connection)
            state.resumes[connection] = nil
            requestsWaiting.store(state.queue.waitingCount, ordering: .sequentiallyConsistent)
        }
        requestLooked(of: account)
    }

    /// Calls those that may start now: as many as there is memory for, or as exemptions are free. Costs one look while
    /// none waits.
    func offerRequests() {
        guard requestsWaiting.load(ordering: .sequentiallyConsistent) > 0 else { return }
        let ready = requests.withLock { state in
            var ready: [@Sendable () -> Void] = []
            var free = freeBytes
            var isExemptionFree = !isRequestExempt.load(ordering: .sequentiallyConsistent)
            while let connection = state.queue.next(memory(mayStart: free >= 0 || isExemptionFree)) {
                if free < 0 { isExemptionFree = false }
                free = free.subtractingReportingOverflow(readBytes).partialValue
                if let resume = state.resumes.removeValue(forKey: connection) { ready.append(resume) }
            }
            requestsWaiting.store(state.queue.waitingCount, ordering: .sequentiallyConsistent)
            return ready
        }
        for resume in ready { resume() }
    }

    private func memory(mayStart: Bool) -> StartQueue.Memory {
        StartQueue.Memory(
            mayStart: mayStart, isBeyondShare: { self.usedBytes(of: $0) > self.clientMax },
            isExemptionFree: { name in
                !(self.account(of: name)?.isRequestExempt.load(ordering: .sequentiallyConsistent) ?? false)
            })
    }

    func areRequestsWaiting(but connection: UInt64, of client: ClientAccount) -> Bool {
        let isFull = usedBytes > limit
        return requests.withLock { state in
            isFull
                ? state.queue.isAwaited(butBy: connection)
                : state.queue.isAwaited(butBy: connection, of: client.name)
        }
    }
}
