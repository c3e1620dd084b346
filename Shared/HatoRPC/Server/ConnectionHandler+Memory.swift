import HatoModel
import NIOCore

// What a connection holds, and whether it may hold more (`ProcessBudget`).
//
// Up to `waitingBytesMax` of a line it reads without asking: a small request is never held up by what others hold. From
// there on it claims the buffer that the line will lie in after the next read, before that read.

extension ConnectionStateMachine.Limits {
    init(_ limits: RPCLimits) {
        self.init(
            requestsInFlightMax: limits.requestsInFlightMax, bytesInFlightMax: limits.connectionBytesInFlightMax,
            readsInFlightMax: limits.readsInFlightMax, readBytes: limits.unreservedReadBytesMax,
            unsentResponseBytesMax: limits.unsentResponseBytesMax, responseBytesMax: limits.responseBytesMax)
    }
}

extension ConnectionHandler {
    /// One read brings at most so much: what the channel's buffers grow to, and `RPCServer` asks for one at a time.
    static let readBytesMax = 64 << 10

    /// Whether client and process may hold more.
    var mayHoldMore: Bool { server.budget.mayHoldMore(account) }

    func countHeldBytes() {
        let line = max(0, charged(lines.capacity) - claimedBytes)
        let change = machine.memoryChanged(lineBytes: line, unsentBytes: connection.unsentOwnBytes)
        if change != 0 { server.budget.add(change, to: account) }
    }

    /// Gives back what is counted, at the end.
    func leaveBudget(_ counted: Int) {
        endClaim()
        if let requestOverdraft { server.budget.returnRequestOverdraft(requestOverdraft) }
        requestOverdraft = nil
        server.budget.add(-counted, to: account)
        server.budget.leave(account)
    }

    /// Who answers for what it holds, from now on.
    func chargeToCaller() {
        let next = server.budget.enter(connection.client(speakingAs: identity))
        server.budget.add(machine.countedBytes, to: next)
        endClaim()
        server.budget.add(-machine.countedBytes, to: account)
        server.budget.leave(account)
        account = next
    }

    // MARK: Reading

    /// Whether the line may grow by another read; if not, this connection is looked at again when it may.
    func claimLine() -> Bool {
        let capacity = charged(LineBuffer.capacity(for: lines.count + Self.readBytesMax))
        guard capacity > claimedBytes else { return true }
        watchLine()
        let connection = connection
        let isGranted = server.budget.claim(capacity, for: connection.id, of: account) {
            connection.hub.post(.run(connection) { _ in })
        }
        if isGranted {
            claimedBytes = capacity
            countHeldBytes()
        } else {
            hasLineWaited = true
        }
        return isGranted
    }

    /// Called when a line is complete or thrown away, and at the end.
    func endClaim() {
        guard lineWatch != nil else { return }
        lineWatch?.cancel()
        lineWatch = nil
        claimedBytes = 0
        server.budget.endClaim(of: connection.id)
    }

    /// Buffers double, but the part that no line can reach is never touched: the machine does not give it.
    private func charged(_ capacity: Int) -> Int { min(capacity, server.limits.lineBytesMax + Self.readBytesMax) }

    // MARK: Requests that read

    /// Whether this connection's request is the one that starts although too much is held; if not, this connection is
    /// called again when one may start.
    func takeRequestOverdraft(for use: ConnectionStateMachine.OverdraftUse) -> Bool {
        let budget = server.budget
        if let overdraft = budget.takeRequestOverdraft(account) {
            requestOverdraft = overdraft
            machine.requestOverdraftTaken(for: use)
            return true
        }
        guard !machine.isWaitingToStart else { return false }
        machine.startWaitChanged(isWaiting: true)
        let connection = connection
        budget.whenARequestMayStart(for: connection.id, of: account) {
            connection.hub.post(.run(connection) { $0.machine.startWaitChanged(isWaiting: false) })
        }
        return false
    }

    /// Called when something was answered, or waits for a large reservation.
    func returnRequestOverdraftIfDone() {
        guard machine.returnsRequestOverdraft(), let overdraft = requestOverdraft else { return }
        requestOverdraft = nil
        server.budget.returnRequestOverdraft(overdraft)
    }

    // MARK: Lines that do not come

    private func watchLine() {
        guard lineWatch == nil else { return }
        watchedCount = lines.count
        hasLineWaited = false
        let patience = TimeAmount.seconds(Int64(server.limits.stalledLineSecondsMax))
        lineWatch = hub.loop.assumeIsolated().scheduleTask(in: patience) { [weak self] in self?.lookAtLine() }
    }

    /// Ends a line that hardly grew although it might, when others wait for what it holds.
    private func lookAtLine() {
        let isOverdrawn = server.budget.isOverdrawn(connection.id)
        let expected = LineStall.growthMin(reserved: claimedBytes, isOverdrawn: isOverdrawn, server.limits)
        // Behind a line that waits for memory it cannot be refused: the refusal would be sent before its response.
        let mayGrow = !hasLineWaited && waiting?.line == nil && machine.mayHandOn(mayHoldMore)
        let isStalled = mayGrow && lines.count - watchedCount < expected
        if machine.phase == .open, isStalled, server.budget.isAwaited(connection.id, of: account) {
            refuseUnfinishedLine(RPCError.lineStalled)
        } else {
            lineWatch = nil
            watchLine()
            server.budget.offer()
        }
        settle()
    }
}
