import HatoModel
import NIOCore

// Reads that have outgrown their small reservation (`LargeReads`, `ReadReservationQueue`).

extension ConnectionHandler {
    /// `again` runs the read from its beginning, when the memory of a large one is reserved.
    func readOutgrew(_ reply: PendingReply, _ again: @escaping LargeReads.Again) {
        guard machine.phase != .closed, !machine.isCutOff else { return }
        largeReads.outgrew(reply, again)
        machine.readOutgrew()
    }

    /// Asks for what the next large read, or a large batch, needs.
    func moveLargeReads() {
        guard !largeReads.isEmpty || machine.unreservedBatch != nil else { return }
        largeReads.counted()
        // Let go of at the end: others are granted then.
        let taken = largeReads.taken(sentBytes)
        defer { withExtendedLifetime(taken) {} }
        refuseReadsWithoutRoom()
        let need = largeReads.need(
            for: account, batch: machine.unreservedBatch,
            mayReserve: machine.outputBytes <= server.limits.unsentResponseBytesMax,
            leavesNext: { machine.leavesNext($0) })
        guard let need else { return }
        let connection = connection
        let granted = { @Sendable (reservation: ReadReservation) in
            connection.hub.post(.run(connection) { $0.largeReadGranted(reservation) })
        }
        switch need {
        case .reservation: server.budget.reserveRead(for: connection.id, of: account, granted: granted)
        case .turn(let reservation): server.budget.runRead(in: reservation, for: connection.id, granted: granted)
        }
    }

    private func largeReadGranted(_ reservation: ReadReservation) {
        guard let (sequence, again) = largeReads.granted(reservation) else { return reservation.readEnded() }
        machine.batchReserved(sequence)
        if let again { again(reservation) } else { reservation.readEnded() }
    }

    /// Answers the large reads of batches that are full: they would be read in vain.
    private func refuseReadsWithoutRoom() {
        guard largeReads.hasParked else { return }
        for sequence in largeReads.parkedSequences where machine.isBatchFull(sequence) {
            for reply in largeReads.takeParked(of: sequence) {
                machine.outgrownReadAnswered()
                reply.fail(RPCError.tooBig(server.limits.responseBytesMax))
            }
        }
    }

    /// Called when the connection has closed or is cut off.
    func dropLargeReads() {
        // Let go of at the end: the requests in it end then, and give back what they have reserved.
        let dropped = largeReads
        largeReads = LargeReads()
        if let account = dropped.account { server.budget.dropReads(of: connection.id, account: account) }
        server.budget.forgetRequest(of: connection.id)
        withExtendedLifetime(dropped) {}
    }
}
