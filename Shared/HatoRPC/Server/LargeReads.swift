/// The reads of one connection that have outgrown their small reservation, in the order of their requests. Pure.
///
/// One at a time asks for a large reservation, and only when every earlier response has left: so its result can leave
/// at once, and no large result ever waits for another read of its connection.
struct LargeReads {
    /// A request, and the entry of it in a batch.
    struct Key: Hashable, Comparable {
        var sequence: UInt64
        var entry: Int

        init(_ ticket: RequestTicket) {
            sequence = ticket.sequence
            entry = ticket.entry ?? 0
        }

        static func < (left: Key, right: Key) -> Bool {
            (left.sequence, left.entry) < (right.sequence, right.entry)
        }
    }

    typealias Again = @Sendable (ReadReservation) -> Void

    private struct Parked {
        var key: Key
        var again: Again
    }

    private struct Asking {
        var key: Key
        var account: ClientAccount
        var again: Again
        var reservation: ReadReservation?
    }

    private struct Leaving {
        /// Of the output, behind the result.
        var end: Int
        var reservation: ReadReservation
        var isCounted = false
    }

    private var parked: [Parked] = []
    private var asking: Asking?
    private var leaving: [Leaving] = []

    /// Reads that are not answered; they take no memory of their own.
    var count: Int { parked.count + (asking == nil ? 0 : 1) }
    var isEmpty: Bool { parked.isEmpty && asking == nil && leaving.isEmpty }
    /// Whether a read waits that has not asked for its reservation yet.
    var hasParked: Bool { !parked.isEmpty }
    /// The client that a reservation was asked for.
    var account: ClientAccount? { asking?.account }

    mutating func outgrew(_ ticket: RequestTicket, _ again: @escaping Again) {
        let read = Parked(key: Key(ticket), again: again)
        let index = parked.firstIndex { read.key < $0.key } ?? parked.endIndex
        parked.insert(read, at: index)
    }

    /// Whether a reservation is to be asked for now, for `account`.
    ///
    /// - Parameter leavesNext: whether the response of a request would leave as soon as it is complete.
    mutating func ask(for account: ClientAccount, leavesNext: (UInt64) -> Bool) -> Bool {
        guard asking == nil, let index = parked.firstIndex(where: { leavesNext($0.key.sequence) }) else {
            return false
        }
        let read = parked.remove(at: index)
        asking = Asking(key: read.key, account: account, again: read.again)
        return true
    }

    /// The reservation has come: the read begins again.
    mutating func granted(_ reservation: ReadReservation) -> Again? {
        asking?.reservation = reservation
        return asking?.again
    }

    /// A read is answered; the output ends at `end` then. Returns whether it had outgrown its small reservation.
    mutating func answered(_ ticket: RequestTicket, end: Int) -> Bool {
        guard let answered = asking, answered.key == Key(ticket) else { return false }
        asking = nil
        if let reservation = answered.reservation { leaving.append(Leaving(end: end, reservation: reservation)) }
        return true
    }

    /// What was answered is counted by the connection now.
    mutating func counted() {
        for index in leaving.indices where !leaving[index].isCounted {
            leaving[index].isCounted = true
            leaving[index].reservation.counted()
        }
    }

    /// The peer has taken the output up to `position`. Returns what is not open any more.
    mutating func taken(_ position: Int) -> [ReadReservation] {
        guard let first = leaving.first, first.end <= position else { return [] }
        let taken = leaving.prefix { $0.end <= position }.map(\.reservation)
        leaving.removeFirst(taken.count)
        return taken
    }
}
