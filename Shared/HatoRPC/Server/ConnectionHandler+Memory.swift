import HatoModel
import NIOCore

// What a connection holds, and whether it may hold more (`ProcessBudget`).
//
// Up to `waitingBytesMax` of a line it reads without asking: a small request is never held up by what others hold. From
// there on it claims the buffer that the line will lie in after the next read, before that read.

extension ConnectionHandler {
    /// One read brings at most so much: what the channel's buffers grow to, and `RPCServer` asks for one at a time.
    static let readBytesMax = 64 << 10

    /// What this connection counts against the process; what its line has claimed, and what is read elsewhere, is
    /// counted there.
    private var heldBytes: Int {
        max(0, charged(lines.capacity) - claimedBytes) + unansweredBytes - lineElsewhereBytes + reservedReadBytes
    }

    /// Requests that are not answered, and answers that are not taken: it becomes less by itself.
    private var unansweredBytes: Int {
        lineElsewhereBytes + (waiting?.byteCount ?? 0) + bytesInFlight + gatheredBytes + responses.waitingBytes
            + connection.unsentOwnBytes
    }

    func countHeldBytes() {
        let held = heldBytes
        guard countedBytes != held, phase != .closed else { return }
        server.budget.add(held - countedBytes, to: account)
        countedBytes = held
    }

    func returnHeldBytes() {
        endClaim()
        returnReadOverdraft()
        server.budget.add(-countedBytes, to: account)
        countedBytes = 0
        server.budget.leave(account)
    }

    /// Who answers for what it holds, from now on.
    func chargeToCaller() {
        let next = server.budget.enter(Self.clientName(identity, connection.clientAddress))
        server.budget.add(countedBytes, to: next)
        endClaim()
        server.budget.add(-countedBytes, to: account)
        server.budget.leave(account)
        account = next
    }

    /// A user, wherever the connections come from; else the address.
    static func clientName(_ caller: Caller, _ address: ClientAddress) -> String {
        if case .user(let user) = caller { return "user \(user.uid)" }
        return "address \(address.network)"
    }

    // MARK: Reading

    /// Whether another read may be held; if not, this connection is looked at again when it may.
    func hasRoomToReadOn() -> Bool {
        if lines.count > Self.waitingBytesMax { return claimLine() }
        return unansweredBytes <= Self.waitingBytesMax || server.budget.mayHoldMore(account)
    }

    private func claimLine() -> Bool {
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

    /// Whether the client and the process may hold the answer of another request that reads; if not, this connection is
    /// called again.
    func hasRoomForARead() -> Bool {
        let budget = server.budget
        guard !budget.mayStartRead(account) else { return true }
        // With one of its own on the way, or not taken, the connection looks again when that is answered, or taken.
        guard readsInFlight == 0, outputBytes == 0 else { return false }
        if readOverdraft == nil { readOverdraft = budget.takeReadOverdraft(account) }
        if readOverdraft != nil { return true }
        guard !isWaitingToStartRead else { return false }
        isWaitingToStartRead = true
        let connection = connection
        budget.whenAReadMayStart(for: connection.id, of: account) {
            connection.hub.post(.run(connection) { $0.isWaitingToStartRead = false })
        }
        return false
    }

    /// Called when the read is answered, and at the end.
    func returnReadOverdraft() {
        guard let overdraft = readOverdraft else { return }
        readOverdraft = nil
        server.budget.returnReadOverdraft(overdraft)
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
        let expected = LineStall.growthMin(reserved: claimedBytes, server.limits)
        let isStalled = !hasLineWaited && mayHandOn && lines.count - watchedCount < expected
        if phase == .open, isStalled, server.budget.isAwaited(connection.id, of: account) {
            refuseUnfinishedLine(RPCError.lineStalled)
        } else {
            lineWatch = nil
            watchLine()
            server.budget.offer()
        }
        settle()
    }
}
