import HatoModel
import Logging
import NIOCore

/// One connection of a server, on its event loop: reads, calls methods, writes. `ConnectionStateMachine` decides in
/// which order, and when it reads and closes.
///
/// All state is touched on the event loop only.
final class ConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let connection: RPCConnection
    let server: ServerState
    let hub: LoopHub
    private let usesTLS: Bool
    private(set) var context: ChannelHandlerContext?

    var machine: ConnectionStateMachine
    var lines = LineBuffer()
    private var lastTraffic = NIODeadline.now()
    private var silence = PeerSilence()
    private var handshakeTimeout: Scheduled<Void>?

    // Requests: see ConnectionHandler+Requests.swift.
    var isReading = false
    var isTouched = false
    private var isSettling = false
    var waiting: WaitingRequests? {
        didSet { machine.waitingChanged(waiting?.memory) }
    }
    /// There when the read in flight is the one that may run although too much is held.
    var requestOverdraft: ProcessBudget.RequestOverdraft?
    var identity = Caller.nobody
    /// Whose credential was shown first.
    var shownCaller: Caller?
    /// Whether the connection is not closed for another.
    var hasOwnSlot = false
    var activity = ActivityTicks()
    var expiry: Scheduled<Void>?

    // Memory: see ConnectionHandler+Memory.swift.
    var account: ClientAccount
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
    var opened = OpenedSubscriptions()

    init(connection: RPCConnection, hub: LoopHub, usesTLS: Bool) {
        self.connection = connection
        self.hub = hub
        self.usesTLS = usesTLS
        server = hub.server
        machine = ConnectionStateMachine(.init(hub.server.limits))
        account = server.budget.enter(connection.client(speakingAs: .nobody))
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
        server.noticeFailure(error, of: connection, isHandshake: handshakeTimeout != nil)
        closeNow()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ServerTLSReady {
            handshakeTimeout?.cancel()
            handshakeTimeout = nil
        }
        guard case .inputClosed? = event as? ChannelEvent else { return context.fireUserInboundEventTriggered(event) }
        machine.inputClosed()
        if machine.phase == .lingering { closeNow() } else { settle() }
    }

    func ended() {
        guard machine.phase != .closed else { return }
        let counted = machine.closed()
        // First: what is let go of below may hold requests, which must not be answered here any more.
        let closed = connection.markClosed()
        expiry?.cancel()
        peerDrained()
        dropLargeReads()
        handshakeTimeout?.cancel()
        lines.removeAll()
        waiting = nil
        opened = OpenedSubscriptions()
        output = OutputQueue()
        leaveBudget(counted)
        hub.remove(self)
        // One that is cut off counts until it has closed.
        if !machine.isCutOff { server.admission.closed(connection) }
        for callback in closed { callback() }
        context = nil
    }

    func closeNow() {
        context?.close(promise: nil)
    }

    /// Answers what was accepted, then closes.
    func finishAndClose() {
        machine.stopping()
    }

    func closeIfIdle(since oldest: NIODeadline) {
        guard lastTraffic < oldest, !connection.hasHolds, machine.isIdle else { return }
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
        guard machine.phase == .open else { return }
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
        if mayRead() { context.read() } else { machine.readingChanged(isHeld: true) }
    }

    private func mayRead() -> Bool {
        switch machine.readAsked(bufferedBytes: lines.count, unsentBytes: connection.unsentOwnBytes, mayHoldMore) {
        case .read: true
        case .pause: false
        case .claimLine: claimLine()
        }
    }

    /// Everything that must be looked at again after requests, answers or the socket moved on.
    func settle() {
        isTouched = false
        guard machine.phase != .closed, !isSettling else { return }
        isSettling = true
        defer { isSettling = false }
        repeat {
            handOn()
            flush()
            returnRequestOverdraftIfDone()
        } while machine.isHeldUp && machine.mayHandOn(mayHoldMore) && waitingCanMove
        lastTraffic = NIODeadline.now()
        countHeldBytes()
        moveLargeReads()
        watchPeer()
        for drained in connection.takeDrainWatches() { drained() }
        if let context, let closing = machine.settled(isOutputEmpty: output.isEmpty, usesTLS: usesTLS) {
            close(closing, context)
        }
        resumeReading()
    }

    /// What waits goes on when its turn has come, or when it has not been looked at yet.
    private var waitingCanMove: Bool {
        if let line = waiting?.line { return mayTake(line) }
        guard let current = waiting?.current, current.caller != nil else { return true }
        return mayStart(current.method)
    }

    // MARK: Closing

    private func resumeReading() {
        guard machine.isReadHeld, mayRead() else { return }
        machine.readingChanged(isHeld: false)
        context?.read()
    }

    private func close(_ closing: ConnectionStateMachine.Closing, _ context: ChannelHandlerContext) {
        lines.removeAll()
        endClaim()
        countHeldBytes()
        closeAfterWrites(context, mode: closing == .all ? .all : .output)
        let channel = context.channel
        let seconds = closing == .all ? 3 * server.limits.stalledPeerSecondsMax : 2
        let patience = hub.loop.scheduleTask(in: .seconds(Int64(seconds))) { channel.close(promise: nil) }
        channel.closeFuture.whenComplete { _ in patience.cancel() }
    }

    /// Everything written before is sent first, as far as the peer takes it in time.
    private func closeAfterWrites(_ context: ChannelHandlerContext, mode: CloseMode) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer())).assumeIsolated().whenComplete { _ in
            context.close(mode: mode, promise: nil)
        }
    }
}

/// Fired into the pipeline when a TLS handshake is done.
struct ServerTLSReady: Sendable {}
