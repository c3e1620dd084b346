/// The reads of one connection that have outgrown their small reservation, in the order of their requests. Pure.
///
/// One request at a time has a large reservation, and only when every earlier response has left: so its response can
/// leave at once, and no large response ever waits for another read of its connection. It begins with the smallest size
/// (`ReadSize`) and, when it outgrows that, again with the next. A batch has one reservation of the largest size for
/// all its entries; its large reads run in it one after another.
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

    typealias Rerun = @Sendable (ReadReservation) -> Void

    /// What to ask the budget for.
    enum MemoryRequest {
        /// Of this size, of `sizes`.
        case reservation(size: Int)
        /// A turn to run in the reservation that the batch has.
        case turn(ReadReservation)
    }

    private struct OutgrownRead {
        var reply: PendingResponse
        var rerun: Rerun
        /// The size that it has not outgrown yet.
        var size: Int

        var key: Key { Key(reply.ticket) }
    }

    /// The request that has the large reservation, or waits for it.
    private struct Holder {
        var sequence: UInt64
        var account: ClientAccount
        var size: Int
        var reservation: ReadReservation?
        var running: Key?
        var isWaiting = true
        /// Its response has left before the reservation came.
        var hasLeft = false
    }

    private struct SentResponse {
        /// Of the output, behind the response.
        var end: Int
        var reservation: ReadReservation
        var isCounted = false
    }

    /// How many sizes there are.
    private let sizes: Int
    private var waiting: [OutgrownRead] = []
    private var holder: Holder?
    private var sentResponses: [SentResponse] = []

    init(sizes: Int) { self.sizes = sizes }

    var isEmpty: Bool { waiting.isEmpty && holder == nil && sentResponses.isEmpty }
    /// Whether a read waits that does not run yet.
    var hasWaitingReads: Bool { !waiting.isEmpty }
    /// Where in the output the last response with a reservation ends that the peer has not taken; nil: there is none.
    var heldEnd: Int? { sentResponses.last?.end }
    /// The client that a reservation was asked for.
    var account: ClientAccount? { holder?.account }

    /// Returns whether the read had its small reservation until now, and the reservation that it gives back.
    mutating func outgrew(
        _ reply: PendingResponse, needsLargest: Bool = false, _ rerun: @escaping Rerun
    ) -> (isFirst: Bool, ReadReservation?) {
        let isLargest = needsLargest || reply.ticket.entry != nil
        var read = OutgrownRead(reply: reply, rerun: rerun, size: isLargest ? sizes - 1 : 0)
        var outgrown: ReadReservation?
        if let holder, holder.running == read.key {
            read.size = min(holder.size + 1, sizes - 1)
            outgrown = holder.reservation
            outgrown?.goes(because: .outgrown)
            self.holder = nil
        }
        let index = waiting.firstIndex { read.key < $0.key } ?? waiting.endIndex
        waiting.insert(read, at: index)
        return (outgrown == nil, outgrown)
    }

    /// What is to be asked for now, for `account`.
    ///
    /// - Parameters:
    ///   - batch: the batch that has gathered more than it may without a reservation.
    ///   - mayReserve: whether the peer has taken nearly all that came before.
    ///   - leavesNext: whether the response of a request would leave as soon as it is complete.
    mutating func request(
        for account: ClientAccount, batch: UInt64?, mayReserve: Bool, leavesNext: (UInt64) -> Bool
    ) -> MemoryRequest? {
        if let holder {
            guard let reservation = holder.reservation, holder.running == nil, !holder.isWaiting,
                waiting.contains(where: { $0.key.sequence == holder.sequence })
            else { return nil }
            self.holder?.isWaiting = true
            return .turn(reservation)
        }
        guard mayReserve else { return nil }
        let candidates = waiting.lazy.map { ($0.key.sequence, $0.size) } + (batch.map { [($0, sizes - 1)] } ?? [])
        guard let (sequence, size) = candidates.first(where: { leavesNext($0.0) }) else { return nil }
        holder = Holder(sequence: sequence, account: account, size: size)
        return .reservation(size: size)
    }

    /// The reservation, or the turn to run in it, has come. Returns the request that has it, and its read that begins
    /// again, if one waits.
    mutating func granted(_ reservation: ReadReservation) -> (sequence: UInt64, rerun: Rerun?)? {
        guard var holder, !holder.hasLeft else {
            self.holder = nil
            reservation.goes(because: .outgrown)
            return nil
        }
        holder.reservation = reservation
        holder.isWaiting = false
        defer { self.holder = holder }
        guard let index = waiting.firstIndex(where: { $0.key.sequence == holder.sequence }) else {
            return (holder.sequence, nil)
        }
        let read = waiting.remove(at: index)
        holder.running = read.key
        return (holder.sequence, read.rerun)
    }

    /// The reads of a batch into which their results do not fit. They never run again.
    mutating func takeWaitingReads(of batch: UInt64) -> [PendingResponse] {
        defer { waiting.removeAll { $0.key.sequence == batch } }
        return waiting.filter { $0.key.sequence == batch }.map(\.reply)
    }

    /// The batches whose reads wait.
    var waitingSequences: Set<UInt64> { Set(waiting.map(\.key.sequence)) }

    /// A read has ended. Returns whether it had outgrown its small reservation.
    mutating func responded(_ ticket: RequestTicket) -> Bool {
        guard holder?.running == Key(ticket) else { return false }
        holder?.running = nil
        return true
    }

    /// The response of a request has left; the output ends at `end` then.
    mutating func left(_ sequence: UInt64, end: Int) {
        guard let left = holder, left.sequence == sequence else { return }
        guard let reservation = left.reservation else {
            holder?.hasLeft = true
            return
        }
        holder = nil
        sentResponses.append(SentResponse(end: end, reservation: reservation))
    }

    /// What has left is counted by the connection now.
    mutating func counted() {
        for index in sentResponses.indices where !sentResponses[index].isCounted {
            sentResponses[index].isCounted = true
            sentResponses[index].reservation.counted()
        }
    }

    /// The peer has taken the output up to `position`. Returns what is not open any more.
    mutating func taken(_ position: Int) -> [ReadReservation] {
        guard let first = sentResponses.first, first.end <= position else { return [] }
        let taken = sentResponses.prefix { $0.end <= position }.map(\.reservation)
        sentResponses.removeFirst(taken.count)
        for reservation in taken { reservation.goes(because: .taken) }
        return taken
    }
}
