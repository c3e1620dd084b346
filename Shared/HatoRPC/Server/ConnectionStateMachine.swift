/// Decides in which order the requests of one connection start and their responses leave, how many are in flight, what
/// is read ahead of them, what the connection holds and when it closes: a value without a clock, a channel or a lock.
/// `ConnectionHandler` calls the event that happened and does what it returns.
///
/// Order. Lines stay bytes until their turn comes. An `immediate` request starts while earlier ones are in
/// flight; any other waits until all earlier ones have ended, and everything behind it waits for it unless it is slow.
/// A request whose credential must be verified first holds up what is behind it, so does a change of the identity until
/// it is taken over. Responses leave in the order of the requests (`ResponseQueue`), slow ones when they come.
///
/// Backpressure. While the turn of the next line has not come, because of the order, of the requests in flight or of
/// responses the peer does not take, at most `waitingBytesMax` more are read; then the kernel's window closes on the
/// peer.
///
/// Memory. All bytes that the connection holds are counted here. Whether the client and the process may hold more is
/// asked of `ProcessBudget` by the handler and passed in: by a constant, since a call beside it would copy the machine.
struct ConnectionStateMachine: Hashable, Sendable {
    struct Limits: Hashable, Sendable {
        var requestsInFlightMax: Int
        var bytesInFlightMax: Int
        var readsInFlightMax: Int
        /// What a read reserves when it starts.
        var readBytes: Int
        var unsentResponseBytesMax: Int
        var responseBytesMax: Int
        /// What is read ahead while a request waits for its turn.
        var waitingBytesMax = 64 << 10
        /// What of a line is read without a claim while client or process hold too much: less than this.
        var smallLineBytesMax = 2 << 10
    }

    enum Phase: Hashable, Sendable {
        case open
        /// Reads no more; closes when every response to what was accepted is sent.
        case finishing
        /// Has closed its own direction; throws away what still comes, so that a reset does not lose the last response.
        case lingering
        case closed
    }

    /// What to hand on next.
    enum Step: Hashable, Sendable {
        case takeLine
        /// The request or the entries of a batch that wait.
        case continueWaiting
        case wait
    }

    /// Whether a request starts.
    enum Start: Hashable, Sendable {
        case start
        case wait
        /// The client or the process holds too much: the read starts if it is the one that may all the same.
        case askForExemption
    }

    /// What runs although client or process hold too much.
    enum ExemptionUse: Hashable, Sendable, CaseIterable {
        /// The reads in flight.
        case read
        /// A line, with everything in it: no other line is taken meanwhile.
        case line
        /// The same, for which long lines leave some memory.
        case mediumLine
    }

    /// What a request for more bytes of the peer comes to.
    enum Reading: Hashable, Sendable {
        case read
        case pause
        /// Read if the line is granted the buffer that it grows into.
        case claimLine
    }

    /// Where a response goes.
    enum Completion: Hashable, Sendable {
        /// Other entries of its batch are missing.
        case gathered
        /// Leaves in its order, with `nextResponse`.
        case queued
        /// Leaves at once; nil: there is none to send.
        case leaves([UInt8]?)
    }

    enum Closing: Hashable, Sendable {
        case all
        /// Only the direction to the peer, which may still be sending.
        case output
    }

    private let limits: Limits

    // Life.
    private(set) var phase = Phase.open
    private var hasInputEnded = false
    /// Set when bytes are on their way that are never read: closing at once could cost the peer its last response.
    private var mustLinger = false
    private(set) var isCutOff = false

    // Order.
    private var responses = ResponseQueue()
    private var batches: [UInt64: BatchResponse] = [:]
    /// The batch whose entries are handed on.
    private var currentBatch: UInt64?
    private var requestsInFlight = 0
    /// Requests started and not ended, without slow ones.
    private var running = 0
    private var readsInFlight = 0
    /// Those among the reads in flight that wait for a large reservation, or have one.
    private var outgrownReads = 0
    private var isBarrierRunning = false
    private var isVerifying = false
    private var isChangingIdentity = false
    /// Whether lines or requests are there whose turn has not come.
    private(set) var isHeldUp = false
    private(set) var isReadHeld = false

    // Memory.
    private var bytesInFlight = 0
    /// Of the line that is read on another thread; 0: there is none.
    private var lineElsewhereBytes = 0
    /// Of the requests that are read and not started; nil: there are none.
    private var waitingBytes: Int?
    /// Of responses of entries whose batches are not done, without those of batches with a reservation.
    private var gatheredBytes = 0
    /// What is written and not yet taken by the socket; notifications that wait for the response before them are not.
    private(set) var outputBytes = 0
    /// What the process's budget counts for the connection, without claims of its line.
    private(set) var countedBytes = 0
    /// What the connection does although too much is held; nil: nothing.
    private(set) var exemption: ExemptionUse?
    private(set) var isWaitingToStart = false

    init(_ limits: Limits) { self.limits = limits }

    /// Whether requests that were read are still accepted.
    var isTaking: Bool { phase == .open || phase == .finishing }
    /// Whether nothing is being worked on.
    var isIdle: Bool { requestsInFlight == 0 && waitingBytes == nil && lineElsewhereBytes == 0 }

    // MARK: Order

    /// Whether another request may be handed on now.
    ///
    /// - Parameter mayHoldMore: whether client and process may hold more (`ProcessBudget`).
    func mayHandOn(_ mayHoldMore: Bool) -> Bool {
        !isBarrierRunning && !isVerifying && !isChangingIdentity && lineElsewhereBytes == 0
            && requestsInFlight < limits.requestsInFlightMax && bytesInFlight < limits.bytesInFlightMax
            && unreservedBatch == nil && (!isLineExempt || waitingBytes != nil)
            && mayRespond(mayHoldMore)
    }

    /// The batch that goes on with a large reservation: its responses have outgrown what a read may take without one.
    var unreservedBatch: UInt64? {
        guard mayAwaitReservation, let currentBatch, let batch = batches[currentBatch] else { return nil }
        return !batch.isReserved && batch.byteCount > limits.readBytes ? currentBatch : nil
    }

    /// Whether what is handed on may wait for a large reservation. What was taken although too much is held may not: it
    /// would keep its memory while the next line is taken, and so would the next.
    var mayAwaitReservation: Bool { !isLineExempt }

    /// Whether the connection takes a line although too much is held.
    private var isLineExempt: Bool { exemption == .line || exemption == .mediumLine }

    /// Whether the reads of a batch that follow are refused: they would need a large reservation, or one before them
    /// would have.
    func lacksReservation(_ sequence: UInt64) -> Bool {
        guard !mayAwaitReservation, let batch = batches[sequence] else { return false }
        return !batch.isReserved && (batch.isRefusedMemory || batch.byteCount > limits.readBytes)
    }

    /// A read has outgrown its memory, and may not wait for more.
    mutating func readRefused(_ ticket: RequestTicket) { batches[ticket.sequence]?.isRefusedMemory = true }

    /// Whether what is handed on is in a batch whose responses have their memory.
    private var isBatchReserved: Bool { currentBatch.flatMap { batches[$0]?.isReserved } ?? false }

    /// While the client or the process holds too much, a peer that has not taken 64 KiB gets no further responses.
    private func mayRespond(_ mayHoldMore: Bool) -> Bool {
        let waiting = untakenResponseBytes
        guard waiting <= limits.unsentResponseBytesMax else { return false }
        return waiting <= limits.waitingBytesMax || mayHoldMore
    }

    func next(_ mayHoldMore: Bool) -> Step {
        guard isTaking, mayHandOn(mayHoldMore) else { return .wait }
        return waitingBytes == nil ? .takeLine : .continueWaiting
    }

    /// No complete line is left.
    mutating func linesRanOut() { isHeldUp = false }

    /// Nothing more is handed on for now.
    ///
    /// - Parameter hasLines: whether bytes are left that were read.
    mutating func handingOnStopped(hasLines: Bool) {
        // What a connection that is refused still holds is never handed on: nothing waits for its turn.
        isHeldUp = isTaking && (waitingBytes != nil || hasLines || lineElsewhereBytes > 0)
    }

    /// The turn of a line with one request has come. Returns its place in the order of responses.
    mutating func lineArrived(isSlow: Bool) -> UInt64 { responses.open(isSlow: isSlow) }

    /// The turn of a line with a batch has come; it is slow when one of its entries is.
    mutating func batchArrived(count: Int, isSlow: Bool) -> UInt64 {
        let sequence = responses.open(isSlow: isSlow)
        let batch = BatchResponse(count: count, bytesMax: limits.responseBytesMax)
        batches[sequence] = batch
        currentBatch = sequence
        gatheredBytes += batch.byteCount
        return sequence
    }

    /// The line whose turn has come is read on another thread.
    mutating func lineLeftLoop(_ count: Int) { lineElsewhereBytes = count }

    var isReadingLine: Bool { lineElsewhereBytes > 0 }

    mutating func lineCameBack() { lineElsewhereBytes = 0 }

    /// The requests that were read and wait take so many bytes; nil: there are none.
    mutating func waitingChanged(_ count: Int?) {
        waitingBytes = count
        if count == nil { currentBatch = nil }
    }

    mutating func verificationBegan() { isVerifying = true }

    mutating func verificationEnded() { isVerifying = false }

    /// - Parameter isTakenOver: whether nothing is left to do for what watches the identity.
    mutating func identityChanged(isTakenOver: Bool) { isChangingIdentity = !isTakenOver }

    /// The turn of an identified request has come.
    ///
    /// - Parameter mayStartRequest: whether client and process may hold the result of another read.
    func requestArrived(_ kind: RequestKind, _ mayStartRequest: Bool) -> Start {
        switch kind.start {
        case .session: return .start
        case .afterEarlier where running > 0: return .wait
        case .afterEarlier where !kind.isRead, .immediate where !kind.isRead: return .start
        case .afterEarlier, .immediate:
            guard readsInFlight < limits.readsInFlightMax else { return .wait }
            // A connection that holds memory does not wait for those that wait for memory.
            if isBatchReserved || mayStartRequest { return .start }
            // With a read in flight, or a response not taken, that is looked at again when it ends, or is taken.
            guard readsInFlight == 0, outputBytes == 0 else { return .wait }
            return exemption == nil ? .askForExemption : .start
        }
    }

    /// The turn of a line has come.
    ///
    /// - Parameters:
    ///   - isSmall: whether what is in it takes little: it is read whatever is held, but one at a time, beside few slow
    ///     requests.
    ///   - mayStart: whether client and process may hold what is in another line.
    func lineTurnCame(isSmall: Bool, _ mayStart: Bool) -> Start {
        if isSmall, running == 0, requestsInFlight < limits.readsInFlightMax { return .start }
        // No other line is taken while the connection has the exemption of one: it is for this one.
        if isLineExempt || mayStart { return .start }
        // With a request in flight, or a response not taken, that is looked at again when it ends, or is taken.
        guard requestsInFlight == 0, outputBytes == 0, exemption == nil else { return .wait }
        return .askForExemption
    }

    mutating func requestStarted(_ kind: RequestKind, sequence: UInt64, entry: Int?, byteCount: Int) -> RequestTicket {
        let isBarrier = kind.start == .afterEarlier && !kind.isSlow
        requestsInFlight += 1
        bytesInFlight += byteCount
        if !kind.isSlow { running += 1 }
        if isBarrier { isBarrierRunning = true }
        if kind.isRead { readsInFlight += 1 }
        return RequestTicket(
            sequence: sequence, entry: entry, isSlow: kind.isSlow, isBarrier: isBarrier, isRead: kind.isRead,
            byteCount: byteCount)
    }

    mutating func requestEnded(_ ticket: RequestTicket, _ response: [UInt8]?) -> Completion {
        requestsInFlight -= 1
        bytesInFlight -= ticket.byteCount
        if !ticket.isSlow { running -= 1 }
        if ticket.isBarrier { isBarrierRunning = false }
        if ticket.isRead { readsInFlight -= 1 }
        return responseCame(ticket.sequence, ticket.entry, response)
    }

    /// The response of a request, or of an entry of a batch, is there; nil: there is none to send.
    mutating func responseCame(_ sequence: UInt64, _ entry: Int?, _ response: [UInt8]?) -> Completion {
        guard let entry else { return complete(sequence, response) }
        guard let added = batches[sequence]?.set(entry, response), let batch = batches[sequence] else {
            return .gathered
        }
        if !batch.isReserved { gatheredBytes += added }
        guard batch.isDone else { return .gathered }
        if !batch.isReserved { gatheredBytes -= batch.byteCount }
        batches[sequence] = nil
        return complete(sequence, batch.bytes)
    }

    private mutating func complete(_ sequence: UInt64, _ response: [UInt8]?) -> Completion {
        responses.respond(sequence, response) ? .leaves(response) : .queued
    }

    /// Whether the response of another entry does not fit into a batch; false when there is no such batch.
    func isBatchFull(_ sequence: UInt64) -> Bool { batches[sequence]?.isFull ?? false }

    /// The memory of the largest response is reserved for this request.
    mutating func batchReserved(_ sequence: UInt64) {
        guard let batch = batches[sequence], !batch.isReserved else { return }
        gatheredBytes -= batch.byteCount
        batches[sequence]?.isReserved = true
    }

    /// The next response whose turn has come.
    mutating func nextResponse() -> (sequence: UInt64, response: [UInt8]?)? {
        if let next = responses.next() { return next }
        responses.shrink()
        return nil
    }

    /// Whether the response of a request has not left yet.
    func awaitsResponse(_ sequence: UInt64) -> Bool { responses.isOpen(sequence) }

    /// Whether the response of a request would leave as soon as it is complete.
    func leavesNext(_ sequence: UInt64) -> Bool { responses.leavesNext(sequence) }

    // MARK: Memory

    mutating func outputAppended(_ count: Int) { outputBytes += count }

    /// The socket has taken so many bytes.
    mutating func outputDrained(_ count: Int) { outputBytes -= count }

    mutating func readOutgrew() { outgrownReads += 1 }

    mutating func outgrownReadEnded() { outgrownReads -= 1 }

    /// The budget lets this connection's request be the one that starts although too much is held.
    mutating func exemptionTaken(for use: ExemptionUse) { exemption = use }

    /// The budget calls when a request may start, or has called.
    mutating func startWaitChanged(isWaiting: Bool) { isWaitingToStart = isWaiting }

    /// Bytes of responses that the peer has not taken.
    var untakenResponseBytes: Int { outputBytes + responses.waitingBytes }

    /// What a peer may leave of a response whose exemption goes back although far too much is held.
    private static let leftBytesMax = 4 << 10

    /// Whether the exemption goes back, now that what it is for has ended or waits for a large reservation. That of a
    /// line goes back when the peer has taken its response: many large responses that no peer takes would take any
    /// memory, one after another. So does that of a read while far too much is held.
    ///
    /// - Parameter isFarTooMuchHeld: by client or process.
    mutating func returnsExemption(isFarTooMuchHeld: Bool = false) -> Bool {
        switch exemption {
        case nil: return false
        case .read:
            guard readsInFlight == outgrownReads else { return false }
            let leftMax = isFarTooMuchHeld ? Self.leftBytesMax : .max
            guard untakenResponseBytes <= leftMax || phase == .closed else { return false }
        case .line, .mediumLine:
            guard waitingBytes == nil, lineElsewhereBytes == 0, running == 0 else { return false }
            guard untakenResponseBytes <= limits.readBytes || phase == .closed else { return false }
        }
        exemption = nil
        return true
    }

    /// What the connection holds has changed. Returns by how much the budget's count of it changes.
    ///
    /// - Parameters:
    ///   - lineBytes: the memory of what was read, without what its line has claimed.
    ///   - unsentBytes: what is on its way to the peer, without what connections share.
    mutating func memoryChanged(lineBytes: Int, unsentBytes: Int) -> Int {
        guard phase != .closed else { return 0 }
        // What is read elsewhere is charged by itself.
        let reserved = smallReads * limits.readBytes
        let held = lineBytes + unansweredBytes(unsentBytes) - lineElsewhereBytes + reserved
        defer { countedBytes = held }
        return held - countedBytes
    }

    /// Reads that run with a small reservation.
    var smallReads: Int { phase == .closed ? 0 : readsInFlight - outgrownReads }

    /// Requests that have not ended, and responses that are not taken: it becomes less by itself.
    private func unansweredBytes(_ unsentBytes: Int) -> Int {
        lineElsewhereBytes + (waitingBytes ?? 0) + bytesInFlight + gatheredBytes + responses.waitingBytes + unsentBytes
    }

    // MARK: Reading

    /// The channel asks for more, or may be asked for what was held.
    func readAsked(bufferedBytes: Int, unsentBytes: Int, _ mayHoldMore: Bool) -> Reading {
        if phase == .lingering { return .read }
        guard phase == .open else { return .pause }
        if bufferedBytes >= limits.waitingBytesMax, !mayGrowLine(mayHoldMore) { return .pause }
        // A line that cannot be taken when it is complete, because of a request before it, would keep what it claims.
        let mayClaim = requestsInFlight == 0
        if bufferedBytes > limits.waitingBytesMax { return mayClaim || mayHoldMore ? .claimLine : .pause }
        let unanswered = unansweredBytes(unsentBytes)
        guard bufferedBytes >= limits.smallLineBytesMax || unanswered > limits.waitingBytesMax, !mayHoldMore else {
            return .read
        }
        return unanswered > limits.waitingBytesMax || !mayGrowLine(false) || !mayClaim ? .pause : .claimLine
    }

    /// Whether more of a line is read as soon as it may claim its memory: nothing before it waits.
    func mayGrowLine(_ mayHoldMore: Bool) -> Bool {
        waitingBytes == nil && mayHandOn(mayHoldMore)
    }

    mutating func readingChanged(isHeld: Bool) { isReadHeld = isHeld }

    // MARK: Closing

    /// The peer sends nothing more.
    mutating func inputClosed() { hasInputEnded = true }

    /// The server responds to what was accepted, then closes.
    mutating func stopping() { if phase == .open { phase = .finishing } }

    /// The rest of what the peer sends is not read: it is closed when every response to what was accepted has left.
    mutating func inputRefused() {
        mustLinger = true
        phase = .finishing
    }

    /// The connection closes without responding to what it holds.
    mutating func refused() { phase = .lingering }

    /// The peer has stalled: it gets one last line, and nothing more.
    mutating func cutOff() { isCutOff = true }

    /// Everything that could move has moved. Returns what closes now that the last response is on its way.
    mutating func settled(isOutputEmpty: Bool, usesTLS: Bool) -> Closing? {
        if hasInputEnded, phase == .open, !isHeldUp { phase = .finishing }
        guard phase == .finishing, responses.isEmpty, !isHeldUp, isOutputEmpty else { return nil }
        phase = .lingering
        return !mustLinger || hasInputEnded || usesTLS ? .all : .output
    }

    /// The channel has closed. Returns the bytes to give back.
    mutating func closed() -> Int {
        defer {
            let wasCutOff = isCutOff
            self = Self(limits)
            isCutOff = wasCutOff
            phase = .closed
        }
        return countedBytes
    }
}
