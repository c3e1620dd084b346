import HatoModel
import Logging
import NIOCore

/// One connection of a server, on its event loop: reads, hands on requests in order, brings answers back in order,
/// writes.
///
/// Order. Lines stay bytes until their turn comes. A hot request is handed on while earlier ones are still being worked
/// on; a cold one waits until all earlier ones are answered, and everything behind it waits for it; a slow one waits
/// like a cold one, but nothing waits for it. A request whose credential must be verified first holds up what is behind
/// it. Answers leave in the order of the requests (`ResponseQueue`), slow ones when they come.
///
/// Backpressure. While the turn of the next line has not come, because of the order, of the requests in flight or of
/// answers the peer does not take, at most `waitingBytesMax` more are read; then the kernel's window closes on the
/// peer. The same while a line would take more memory than its client may hold (`ProcessBudget`).
///
/// All state is touched on the event loop only.
final class ConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Phase {
        case open
        /// Reads no more; closes when everything accepted is answered and sent.
        case finishing
        /// Has closed its own direction; throws away what still comes, so that the last answer is not lost to a reset.
        case lingering
        case closed
    }

    /// What is read ahead while a request waits for its turn.
    static let waitingBytesMax = 64 << 10

    let connection: RPCConnection
    let server: ServerState
    let hub: LoopHub
    private let usesTLS: Bool
    private(set) var context: ChannelHandlerContext?

    var phase = Phase.open
    var lines = LineBuffer()
    private var hasInputEnded = false
    /// Set when bytes are on their way that nobody will read: closing at once could cost the peer its last answer.
    var mustLinger = false
    private var isReadHeld = false
    private var lastTraffic = NIODeadline.now()
    private var silence = PeerSilence()
    private var handshakeTimeout: Scheduled<Void>?

    // Requests: see ConnectionHandler+Requests.swift.
    var isReading = false
    var isTouched = false
    private var isSettling = false
    /// Whether lines or requests are there whose turn has not come.
    var isHeldUp = false
    var responses = ResponseQueue()
    var batches: [UInt64: BatchResponse] = [:]
    var waiting: WaitingRequests?
    var requestsInFlight = 0
    var bytesInFlight = 0
    /// Requests handed on and not answered, without slow ones.
    var running = 0
    /// Those among the requests in flight that read.
    var readsInFlight = 0
    /// There when the read in flight is the one that may run although too much is held.
    var readOverdraft: ProcessBudget.ReadOverdraft?
    var isWaitingToStartRead = false
    /// Bytes of answers of entries whose batches are not done.
    var gatheredBytes = 0
    var isBarrierRunning = false
    var isVerifying = false
    var isChangingIdentity = false
    /// Of the line that is being read elsewhere; 0: there is none.
    var lineElsewhereBytes = 0
    var identity = Caller.nobody
    /// Whose credential was shown first.
    var shownCaller: Caller?
    /// Whether the connection is not closed for another.
    var hasOwnSlot = false
    var activity = ActivityTicks()
    var expiry: Scheduled<Void>?

    // Memory: see ConnectionHandler+Memory.swift.
    var account: ClientAccount
    var countedBytes = 0
    var claimedBytes = 0
    /// There while the line has a claim, granted or not.
    var lineWatch: Scheduled<Void>?
    /// How long the line was when its watch began, and whether it was held up since.
    var watchedCount = 0
    var hasLineWaited = false

    /// Reads that have outgrown their small reservation.
    var largeReads = LargeReads()

    // Output: see ConnectionHandler+Output.swift.
    var output = OutputQueue()
    var writesUnderWay = 0
    /// Bytes given to the socket, and those of them whose writes are done.
    var writtenBytes = 0
    var sentBytes = 0
    var stall = PeerStall()
    /// Looks in a row at which the peer had stalled while reads of its own waited.
    var looksWithParkedReads = 0
    /// There while the socket has not taken everything.
    var stallWatch: Scheduled<Void>?
    /// The peer gets one last line, and nothing more.
    var isCutOff = false
    var opened = OpenedSubscriptions()

    init(connection: RPCConnection, hub: LoopHub, usesTLS: Bool) {
        self.connection = connection
        self.hub = hub
        self.usesTLS = usesTLS
        server = hub.server
        account = server.budget.enter(Self.clientName(.nobody, connection.clientAddress))
    }

    // MARK: The channel's life

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        connection.handler = self
        hub.add(self)
        if usesTLS {
            let limit = TimeAmount.seconds(Int64(server.limits.handshakeSecondsMax))
            handshakeTimeout = hub.loop.assumeIsolated().scheduleTask(in: limit) { [weak self] in self?.closeNow() }
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { ended() }

    func channelInactive(context: ChannelHandlerContext) {
        ended()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if handshakeTimeout != nil {
            server.notices.notice(
                .failedHandshake, "a TLS handshake failed",
                ["peer": "\(connection.remoteAddress)", "error": "\(error)"])
        } else {
            server.logger.debug("connection failed", metadata: ["error": "\(error)"])
        }
        closeNow()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ServerTLSReady {
            handshakeTimeout?.cancel()
            handshakeTimeout = nil
        }
        guard case .inputClosed? = event as? ChannelEvent else { return context.fireUserInboundEventTriggered(event) }
        hasInputEnded = true
        if phase == .lingering { closeNow() } else { settle() }
    }

    func ended() {
        guard phase != .closed else { return }
        phase = .closed
        // First: what is let go of below may hold requests, which must not be answered here any more.
        let closed = connection.markClosed()
        expiry?.cancel()
        peerDrained()
        responses = ResponseQueue()
        batches = [:]
        dropLargeReads()
        handshakeTimeout?.cancel()
        lines.removeAll()
        waiting = nil
        opened = OpenedSubscriptions()
        output = OutputQueue()
        returnHeldBytes()
        hub.remove(self)
        // One that is cut off counts until it has closed.
        if !isCutOff { server.admission.closed(connection) }
        for callback in closed { callback() }
        context = nil
    }

    func closeNow() {
        context?.close(promise: nil)
    }

    /// Answers what was accepted, then closes.
    func finishAndClose() {
        guard phase == .open else { return }
        phase = .finishing
    }

    func closeIfIdle(since oldest: NIODeadline) {
        guard lastTraffic < oldest, !connection.hasHolds, requestsInFlight == 0, waiting == nil,
            lineElsewhereBytes == 0
        else { return }
        closeNow()
    }

    /// Gives up a peer that has vanished while something is on its way to it; keep-alive finds the others.
    func closeIfVanished() {
        guard let context, let look = PeerSilence.Look.at(context.channel) else { return }
        look.assumeIsolated().whenSuccess { [weak self] look in
            guard let self, self.silence.looked(look, at: .now(), self.server.limits) else { return }
            self.server.logger.debug("a peer has vanished", metadata: ["peer": "\(self.connection.remoteAddress)"])
            self.closeNow()
        }
    }

    // MARK: Reading

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard phase == .open else { return }
        let chunk = unwrapInboundIn(data)
        let count = chunk.readableBytes
        hub.count { $0.bytesRead += count }
        if !hasOwnSlot { noteActivity() }
        lines.append(chunk)
        handOn()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        settle()
        context.fireChannelReadComplete()
    }

    /// The channel asks to read by itself; while requests must wait it is not passed on.
    func read(context: ChannelHandlerContext) {
        if mayRead { context.read() } else { isReadHeld = true }
    }

    private var mayRead: Bool {
        if phase == .lingering { return true }
        guard phase == .open else { return false }
        if !mayHandOn || waiting != nil, lines.count >= Self.waitingBytesMax { return false }
        return hasRoomToReadOn()
    }

    /// Everything that must be looked at again after requests, answers or the socket moved on.
    func settle() {
        isTouched = false
        guard phase != .closed, !isSettling else { return }
        isSettling = true
        defer { isSettling = false }
        repeat {
            handOn()
            flush()
        } while isHeldUp && mayHandOn && waitingCanMove
        lastTraffic = NIODeadline.now()
        countHeldBytes()
        moveLargeReads()
        watchPeer()
        for drained in connection.takeDrainWatches() { drained() }
        finishIfDone()
        if isReadHeld, mayRead {
            isReadHeld = false
            context?.read()
        }
    }

    /// What waits goes on when its turn has come, or when it has not been looked at yet.
    private var waitingCanMove: Bool {
        guard let current = waiting?.current, current.caller != nil else { return true }
        return mayStart(current.method)
    }

    // MARK: Closing

    private func finishIfDone() {
        if hasInputEnded, phase == .open, !isHeldUp { phase = .finishing }
        guard phase == .finishing, responses.isEmpty, !isHeldUp, let context else { return }
        flush()
        guard output.isEmpty else { return }
        phase = .lingering
        lines.removeAll()
        endClaim()
        countHeldBytes()
        let channel = context.channel
        if !mustLinger || hasInputEnded || usesTLS {
            closeAfterWrites(context)
        } else {
            closeAfterWrites(context, mode: .output)
            let patience = hub.loop.scheduleTask(in: .seconds(2)) { channel.close(promise: nil) }
            channel.closeFuture.whenComplete { _ in patience.cancel() }
        }
        if isReadHeld {
            isReadHeld = false
            context.read()
        }
    }

    /// Everything written before is sent first. A peer that does not take it is cut off by the idle limit or the
    /// server's end.
    private func closeAfterWrites(_ context: ChannelHandlerContext, mode: CloseMode = .all) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer())).assumeIsolated().whenComplete { _ in
            context.close(mode: mode, promise: nil)
        }
    }
}

/// Fired into the pipeline when a TLS handshake is done.
struct ServerTLSReady: Sendable {}
