import HatoModel
import NIOCore

// Reads that have outgrown their small reservation (`LargeReads`, `ReadReservationQueue`).

extension ConnectionHandler {
    /// `again` runs the read from its beginning, when the memory of a large one is reserved.
    func readOutgrew(_ ticket: RequestTicket, _ again: @escaping LargeReads.Again) {
        guard machine.phase != .closed, !machine.isCutOff else { return }
        largeReads.outgrew(ticket, again)
        machine.readOutgrew()
        // Small reads of others do not wait for what this one waits for.
        returnReadOverdraftIfDone()
    }

    /// Asks for the next large reservation when the peer has taken nearly all that came before.
    func moveLargeReads() {
        guard !largeReads.isEmpty else { return }
        largeReads.counted()
        // Let go of at the end: others are granted then.
        let taken = largeReads.taken(sentBytes)
        defer { withExtendedLifetime(taken) {} }
        guard machine.outputBytes <= server.limits.unsentResponseBytesMax,
            largeReads.ask(for: account, leavesNext: { machine.leavesNext($0) })
        else { return }
        let connection = connection
        server.budget.reserveRead(for: connection.id, of: account) { reservation in
            connection.hub.post(.run(connection) { $0.largeReads.granted(reservation)?(reservation) })
        }
    }

    /// Called when the connection has closed or is cut off.
    func dropLargeReads() {
        // Let go of at the end: the requests in it end then, and give back what they have reserved.
        let dropped = largeReads
        largeReads = LargeReads()
        if let account = dropped.account { server.budget.dropReads(of: connection.id, account: account) }
        server.budget.forgetRead(of: connection.id)
        withExtendedLifetime(dropped) {}
    }
}
