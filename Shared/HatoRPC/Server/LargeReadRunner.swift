import HatoModel

/// Asks the budget for what the large reads of one connection need, and begins them again when it is there
/// (`LargeReads`, `ReadReservationQueue`). On the event loop only.
final class LargeReadRunner {
    private let state: ConnectionState
    private let memory: ConnectionMemory
    private var reads: LargeReads

    init(_ state: ConnectionState, _ memory: ConnectionMemory) {
        self.state = state
        self.memory = memory
        reads = LargeReads(sizes: state.server.budget.readSizes.count)
    }

    /// Whether a read waits that does not run yet.
    var hasWaitingReads: Bool { reads.hasWaitingReads }
    /// Where in the output the last large result ends that the peer has not taken; nil: there is none.
    var heldEnd: Int? { reads.heldEnd }

    /// `again` runs the read from its beginning, when the memory of a larger one is reserved.
    func outgrew(_ reply: PendingResponse, needsLargest: Bool, _ rerun: @escaping LargeReads.Rerun) {
        guard state.machine.phase != .closed, !state.machine.isCutOff else { return }
        guard state.machine.mayAwaitReservation else {
            state.machine.readRefused(reply.ticket)
            return reply.fail(RPCError.memoryFull)
        }
        let (isFirst, outgrown) = reads.outgrew(reply, needsLargest: needsLargest, rerun)
        if isFirst { state.machine.readOutgrew() }
        // Let go of when the next is asked for at the earliest: others are granted then.
        withExtendedLifetime(outgrown) {}
    }

    /// Returns whether the read that has ended had outgrown its small reservation.
    func responded(_ ticket: RequestTicket) -> Bool { ticket.isRead && reads.responded(ticket) }

    /// The response of a request has left; the output ends at `end` then.
    func left(_ sequence: UInt64, end: Int) { reads.left(sequence, end: end) }

    /// Asks for what the next large read, or a large batch, needs.
    ///
    /// - Parameter sentBytes: what the peer has taken of the output.
    func proceed(sentBytes: Int) {
        guard !reads.isEmpty || state.machine.unreservedBatch != nil else { return }
        reads.counted()
        // Let go of at the end: others are granted then.
        let taken = reads.taken(sentBytes)
        defer { withExtendedLifetime(taken) {} }
        refuseReadsOfFullBatches()
        let (connection, server) = (state.connection, state.server)
        let request = reads.request(
            for: memory.account, batch: state.machine.unreservedBatch,
            mayReserve: state.machine.outputBytes <= server.limits.unsentResponseBytesMax,
            leavesNext: { state.machine.leavesNext($0) })
        guard let request else { return }
        let granted = { @Sendable (reservation: ReadReservation) in
            connection.hub.post(.run(connection) { $0.largeReadGranted(reservation) })
        }
        switch request {
        case .reservation(let size):
            server.budget.reserveRead(size, for: connection.id, of: memory.account, granted: granted)
        case .turn(let reservation): server.budget.runRead(in: reservation, for: connection.id, granted: granted)
        }
    }

    func granted(_ reservation: ReadReservation) {
        guard let (sequence, rerun) = reads.granted(reservation) else { return reservation.readEnded() }
        state.machine.batchReserved(sequence)
        if let rerun { rerun(reservation) } else { reservation.readEnded() }
    }

    /// Refuses the large reads of batches that are full: they would be read in vain.
    private func refuseReadsOfFullBatches() {
        guard reads.hasWaitingReads else { return }
        for sequence in reads.waitingSequences where state.machine.isBatchFull(sequence) {
            for reply in reads.takeWaitingReads(of: sequence) {
                state.machine.outgrownReadEnded()
                reply.fail(RPCError.tooBig(state.server.limits.responseBytesMax))
            }
        }
    }

    /// The connection has closed or is cut off.
    func drop() {
        // Let go of at the end: the requests in it end then, and give back what they have reserved.
        let dropped = reads
        reads = LargeReads(sizes: state.server.budget.readSizes.count)
        let budget = state.server.budget
        if let account = dropped.account { budget.dropReads(of: state.connection.id, account: account) }
        budget.forgetStart(of: state.connection.id, memory.account)
        withExtendedLifetime(dropped) {}
    }
}
