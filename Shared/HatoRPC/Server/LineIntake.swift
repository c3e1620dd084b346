import HatoModel
import NIOCore

/// Cuts what one peer sends into lines, and claims the memory that an unfinished line grows into.
///
/// It reads up to `waitingBytesMax` of a line without asking: a small request is never held up by what others hold.
/// From there on it claims the buffer that the line will lie in after the next read, before that read. A line that does
/// not come while others wait for what it holds is refused (`LineStall`). The claim ends when the line is taken, not
/// when it is complete: complete lines that wait would hold what the next one grows into. On the event loop only.
final class LineIntake {
    /// One read brings at most so much: what the channel's buffers grow to, and `RPCServer` asks for one at a time.
    static let readBytesMax = 64 << 10

    /// An unfinished line of so many bytes is watched.
    private static let watchedBytesMin = 2 << 10

    private let state: ConnectionState
    private let memory: ConnectionMemory
    private var buffer = LineBuffer()
    /// What is claimed for a line: the unfinished one, or the one before it that has not been taken.
    private(set) var claimedBytes = 0
    /// Counts the claims that have ended: a line that claims has a number of its own.
    private var claimNumber = 0
    /// There while an unfinished line holds memory that others may wait for, or has a claim, granted or not.
    private var watch: Scheduled<Void>?
    private var stall = LineStall(count: 0)
    /// Whether the line had to wait for memory since the last look.
    private var hasWaited = false
    /// Whether the gate counts the unfinished line, as one of a connection without a credential.
    private var isCounted = false
    /// Whether the line that is watched is complete, and not taken yet.
    private var isComplete = false
    /// For how many seconds the line went on although nothing fits, and was held up by its own connection.
    private var keptSeconds = 0
    /// There while the line lies in memory for medium lines, and is not overdue.
    private var mediumWatch: Scheduled<Void>?
    private var mediumLooks = 0

    init(_ state: ConnectionState, _ memory: ConnectionMemory) {
        self.state = state
        self.memory = memory
    }

    var count: Int { buffer.count }
    var isEmpty: Bool { buffer.isEmpty }
    /// Whether there is an unfinished line that holds memory, or waits for it.
    var isWatched: Bool { watch != nil && !isComplete }
    /// The memory of what was read, without what the line has claimed.
    /// A line that is complete and not taken has the claim for itself.
    var unclaimedBytes: Int { max(0, touched(buffer.capacity) - (isComplete ? 0 : claimedBytes)) }
    /// Whether this line has not ended.
    func isUnfinished(_ number: Int) -> Bool { isWatched && claimNumber == number }
    /// Of the line at the front, of which no end has come.
    var unfinishedCount: Int { buffer.unfinishedCount }
    /// Whether the unfinished line at the front opens an HTTP request.
    var beginsWithHTTP: Bool { buffer.beginsWithHTTP }

    func append(_ chunk: ByteBuffer) { buffer.append(chunk) }

    /// The next complete line, if there is one. What it has claimed is claimed until `endClaim`.
    func next() -> ByteBuffer? {
        // Asked for after each line and each response.
        if buffer.isEmpty { return nil }
        guard let line = buffer.nextLine() else {
            // Others may wait for what it holds before it claims anything.
            if buffer.count >= Self.watchedBytesMin { beginWatch() }
            return nil
        }
        if watch != nil {
            isComplete = true
            uncount()
            if mediumWatch != nil {
                let id = state.connection.id
                state.server.budget.offerLines { $0.completed(id) }
            }
        }
        return line
    }

    /// Drops everything that was read.
    func removeAll() {
        buffer.removeAll()
        endClaim()
    }

    // MARK: Memory

    /// Whether the line may grow by another read; if not, this connection is looked at again when it may.
    func claim() -> Bool {
        let capacity = touched(LineBuffer.capacity(for: buffer.count + Self.readBytesMax))
        guard capacity > claimedBytes else { return true }
        beginWatch()
        let (connection, budget, claimNumber) = (state.connection, state.server.budget, claimNumber)
        let isGranted = budget.claim(
            capacity, for: connection.id,
            .init(
                client: memory.account, resume: { connection.hub.post(.run(connection) { _ in }) },
                refuse: { connection.hub.post(.run(connection) { $0.refuseLine(claimNumber) }) }))
        if isGranted {
            claimedBytes = capacity
            memory.count(lineBytes: unclaimedBytes)
            if mediumWatch == nil, budget.exemption(of: connection.id) == .medium { lookAtMediumLineLater() }
        } else {
            hasWaited = true
        }
        return isGranted
    }

    /// Called when a line is taken or dropped, and when another client is charged.
    func endClaim() {
        guard watch != nil else { return }
        watch?.cancel()
        watch = nil
        mediumWatch?.cancel()
        (mediumWatch, mediumLooks) = (nil, 0)
        claimNumber &+= 1
        let isLineComplete = isComplete
        claimedBytes = 0
        isComplete = false
        keptSeconds = 0
        uncount()
        state.server.budget.endClaim(of: state.connection.id, isComplete: isLineComplete)
    }

    private func uncount() {
        guard isCounted else { return }
        isCounted = false
        state.server.admission.lineEnded(of: state.connection)
    }

    /// Buffers double, but the part that no line can reach is never touched: the machine does not give it.
    private func touched(_ capacity: Int) -> Int { min(capacity, state.server.limits.lineBytesMax + Self.readBytesMax) }

    /// A line that waits: copied where it keeps a buffer in memory of which it is a small part.
    func kept(_ line: ByteBuffer) -> ByteBuffer {
        line.readableBytes < line.storageCapacity / 4 ? ByteBuffer(bytes: line.readableBytesView) : line
    }

    /// The memory that a line keeps as long as it exists: that of the buffer it came in.
    func heldBytes(of line: ByteBuffer) -> Int { max(line.readableBytes, touched(line.storageCapacity)) }

    // MARK: Lines that do not come

    private func beginWatch() {
        guard watch == nil else { return }
        stall = LineStall(count: buffer.count)
        lookInASecond()
        guard !state.hasShownCredential else { return }
        isCounted = true
        state.server.admission.lineBegan(of: state.connection, used: state.server.budget.usedBytes)
    }

    private func lookInASecond() {
        hasWaited = false
        let connection = state.connection
        watch = state.hub.loop.assumeIsolated().scheduleTask(in: .seconds(1)) { connection.handler?.lineIsDue() }
    }

    /// Called when the watch is due. Returns whether the line comes too slowly, or cannot be taken because of what is
    /// before it on its connection, while others wait for what it holds; else it is looked at again in a second.
    func hasStalled() -> Bool {
        let (budget, connection) = (state.server.budget, state.connection)
        let isHeldUp = isComplete ? !state.machine.isWaitingToStart : state.machine.isReadHeld && !hasWaited
        let exemption = budget.exemption(of: connection.id)
        keptSeconds = isHeldUp && exemption != nil ? keptSeconds + 1 : 0
        let isKept = keptSeconds >= state.server.limits.stalledLineSecondsMax
        if isKept, budget.isAwaited(connection.id, of: memory.account) { return true }
        guard !isComplete else {
            lookInASecond()
            return false
        }
        let sample = LineStall.Sample(
            count: buffer.count,
            reserved: exemption == .medium ? max(claimedBytes, budget.mediumLineCapacity) : claimedBytes,
            isExempt: exemption == .one,
            mightGrow: !hasWaited && !state.machine.isReadHeld && state.machine.mayGrowLine(memory.mayHoldMore))
        let isStalled = stall.sampled(sample, state.server.limits)
        if state.machine.phase == .open, isStalled, budget.isAwaited(connection.id, of: memory.account) { return true }
        lookInASecond()
        return false
    }

    // MARK: Medium lines

    /// A medium line is to be complete after this time, or to come quickly.
    private static let mediumTime = TimeAmount.milliseconds(250)
    /// It comes quickly when it grows by so much in so much time. A loop that is busy reads once in it at least: what
    /// waits in the socket comes quickly, however busy the loop is.
    private static let quickGrowth = (bytes: 16 << 10, time: TimeAmount.milliseconds(10))
    /// After so many looks it is overdue, however quickly it comes.
    private static let mediumLooksMax = 4

    private func lookAtMediumLineLater(in time: TimeAmount = mediumTime, from count: Int? = nil) {
        let connection = state.connection
        mediumWatch = state.hub.loop.assumeIsolated().scheduleTask(in: time) {
            connection.handler?.mediumLineIsDue(count)
        }
    }

    /// Called when a line that lies in memory for medium lines is to be looked at: then it is overdue, or is looked at
    /// again.
    ///
    /// - Parameter count: how long it was a moment ago; nil: that is not known.
    func lookAtMediumLine(_ count: Int?) {
        guard let count else { return lookAtMediumLineLater(in: Self.quickGrowth.time, from: buffer.count) }
        mediumLooks += 1
        let isQuick = buffer.count - count >= Self.quickGrowth.bytes
        if isComplete || isQuick && mediumLooks < Self.mediumLooksMax { return lookAtMediumLineLater() }
        let id = state.connection.id
        state.server.budget.offerLines { $0.isOverdue(id) }
    }
}
