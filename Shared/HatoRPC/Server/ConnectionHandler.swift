import HatoModel
import Logging
import NIOCore
import NIOSSL

/// One connection of a server in its channel: passes on what the channel and other threads report, and closes.
///
/// `ConnectionStateMachine` decides; what it decides is done by the parts, each of which owns its own state:
/// `LineIntake` (lines), `RequestRunner` (requests), `ConnectionSession` (identity), `ConnectionMemory` (budget),
/// `LargeReadRunner` (reads that are begun again), `ConnectionOutput` (responses, notifications), `PeerWatch` (stalls).
/// After each event `settle` looks at everything again that it may have moved. On the event loop only.
final class ConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let connection: RPCConnection
    private let server: ServerState
    private let hub: LoopHub
    private let state: ConnectionState
    private let memory: ConnectionMemory
    private let lines: LineIntake
    private let session: ConnectionSession
    private let largeReads: LargeReadRunner
    private let output: ConnectionOutput
    private let requests: RequestRunner
    private let peerWatch: PeerWatch
    private let usesTLS: Bool

    private var context: ChannelHandlerContext?
    private var lastTraffic = NIODeadline.now()
    private var silence = PeerSilence()
    private var handshakeTimeout: Scheduled<Void>?
    /// Whether the channel was asked for bytes that have not come.
    private var isReadAsked = false
    private var isTouched = false
    private var isSettling = false

    init(connection: RPCConnection, hub: LoopHub, usesTLS: Bool) {
        self.connection = connection
        self.hub = hub
        self.usesTLS = usesTLS
        server = hub.server
        state = ConnectionState(connection, hub)
        memory = ConnectionMemory(state)
        lines = LineIntake(state, memory)
        session = ConnectionSession(state)
        largeReads = LargeReadRunner(state, memory)
        output = ConnectionOutput(state, largeReads)
        requests = RequestRunner(state, memory, session, from: lines, to: output)
        peerWatch = PeerWatch(state, memory, largeReads, output)
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
        state.machine.inputClosed()
        guard state.machine.phase != .lingering else { return closeNow() }
        settle()
        switch state.machine.phase {
        case .open, .finishing:
            server.admission.halfClosed(connection)
            closeAtLatest(in: server.limits.halfClosedSecondsMax, context.channel)
        case .lingering, .closed: break
        }
    }

    private func ended() {
        guard state.machine.phase != .closed else { return }
        let counted = state.machine.closed()
        // First: what is let go of below may hold requests, which must not respond here any more.
        let closed = connection.markClosed()
        session.cancelExpiry()
        peerWatch.cancel()
        largeReads.drop()
        handshakeTimeout?.cancel()
        lines.removeAll()
        requests.removeAll()
        output.removeAll()
        // Behind what the mailbox has for the connection, which lies in memory until then.
        hub.loop.assumeIsolated().execute { [memory] in memory.leave(counted: counted) }
        hub.remove(self)
        // One that is cut off counts until it has closed.
        if !state.machine.isCutOff { server.admission.closed(connection) }
        for callback in closed { callback() }
        context = nil
    }

    // MARK: Reading

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard state.machine.phase == .open else { return }
        // When the peer has reset the connection, the channel first reads everything that is left, asked or not.
        if output.isWriting || state.machine.isHeldUp, SocketInput.isReset(context.channel) { return peerIsLost() }
        let chunk = unwrapInboundIn(data)
        let count = chunk.readableBytes
        hub.count { $0.bytesRead += count }
        session.wasActive()
        // When the peer closes its direction, the channel reads everything that is left, asked or not.
        guard isReadAsked || !state.machine.isReadHeld || memory.mayHoldMore else { return requests.refuseRest() }
        lines.append(chunk)
        requests.handOn()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        isReadAsked = false
        hub.hasRead()
        settle()
        context.fireChannelReadComplete()
    }

    /// The channel asks to read by itself; while requests must wait it is not passed on.
    func read(context: ChannelHandlerContext) {
        guard mayRead() else { return state.machine.readingChanged(isHeld: true) }
        isReadAsked = true
        context.read()
    }

    private func mayRead() -> Bool {
        let (buffered, unsent, mayHoldMore) = (lines.count, connection.unsentOwnBytes, memory.mayHoldMore)
        switch state.machine.readAsked(bufferedBytes: buffered, unsentBytes: unsent, mayHoldMore) {
        case .read: return true
        case .pause: return false
        case .claimLine: return lines.claim()
        }
    }

    private func resumeReading() {
        guard state.machine.isReadHeld, mayRead() else { return }
        state.machine.readingChanged(isHeld: false)
        isReadAsked = true
        context?.read()
    }

    /// Everything that must be looked at again after requests, responses or the socket moved on.
    func settle() {
        isTouched = false
        guard state.machine.phase != .closed, !isSettling else { return }
        isSettling = true
        defer { isSettling = false }
        repeat {
            requests.handOn()
            if let context { output.flush(context) }
            // Its peer may be lost.
            guard state.machine.phase != .closed else { return }
            memory.returnExemptionIfDone()
        } while state.machine.isHeldUp && state.machine.mayHandOn(memory.mayHoldMore) && requests.waitingMayMove
        lastTraffic = NIODeadline.now()
        memory.count(lineBytes: lines.unclaimedBytes)
        memory.passOnCall()
        largeReads.proceed(sentBytes: output.sentBytes)
        peerWatch.settled(context?.channel)
        for drained in connection.takeDrainWatches() { drained() }
        if let context, let closing = state.machine.settled(isOutputEmpty: output.isEmpty, usesTLS: usesTLS) {
            close(closing, context)
        }
        resumeReading()
    }

    // MARK: Closing

    func closeNow() {
        context?.close(promise: nil)
    }

    /// Responds to what was accepted, then closes.
    func finishAndClose() {
        state.machine.stopping()
    }

    func closeIfIdle(since oldest: NIODeadline) {
        guard lastTraffic < oldest, !connection.hasHolds, state.machine.isIdle else { return }
        cutOff(RPCError.idle(server.limits.idleSecondsMax), endsTLS: true)
    }

    /// Gives up a peer that has vanished while something is on its way to it; keep-alive finds the others.
    func closeIfVanished() {
        guard let context, let sample = PeerSilence.Sample.at(context.channel) else { return }
        sample.assumeIsolated().whenSuccess { [weak self] sample in
            guard let self, self.silence.looked(sample, at: .now(), self.server.limits) else { return }
            self.server.logger.debug("a peer has vanished", metadata: ["peer": "\(self.connection.shownAddress)"])
            self.closeNow()
        }
    }

    private func close(_ closing: ConnectionStateMachine.Closing, _ context: ChannelHandlerContext) {
        lines.removeAll()
        memory.count(lineBytes: 0)
        closeAfterWrites(context, mode: closing == .all ? .all : .output)
        let seconds = closing == .all ? 3 * server.limits.stalledPeerSecondsMax : 2
        closeAtLatest(in: seconds, context.channel)
    }

    /// Everything written before is sent first, as far as the peer takes it in time.
    private func closeAfterWrites(_ context: ChannelHandlerContext, mode: CloseMode) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer())).assumeIsolated().whenComplete { _ in
            context.close(mode: mode, promise: nil)
        }
    }

    private func closeAtLatest(in seconds: Int, _ channel: any Channel) {
        let patience = hub.loop.scheduleTask(in: .seconds(Int64(seconds))) { channel.close(promise: nil) }
        channel.closeFuture.whenComplete { _ in patience.cancel() }
    }

    /// Closes at once and answers nothing more. The peer gets the reason if its socket takes one line more: nothing
    /// waits for it.
    ///
    /// - Parameter endsTLS: whether the end of TLS is exchanged, which may take the peer a moment.
    func cutOff(_ error: RPCError, endsTLS: Bool = false) {
        guard let context else { return }
        // Its last response is on its way to a peer that may never take it.
        guard state.machine.isTaking else { return closeNow() }
        if !output.isWriting, output.isEmpty, context.channel.isWritable {
            let line = Response.bytes(id: "null", error: error) + [UInt8(ascii: "\n")]
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: line)), promise: nil)
        }
        state.machine.refused()
        lines.removeAll()
        if endsTLS { closeNow() } else { context.closeWithoutTLSEnd() }
    }

    /// The peer takes nothing while others wait for the memory: everything the connection holds is let go of. What the
    /// socket takes of the last line says why; the response it has taken a part of ends with the line before.
    private func cutOffStalled(_ error: RPCError) {
        guard let context else { return }
        server.logger.debug("cut off a peer that takes nothing", metadata: ["peer": "\(connection.shownAddress)"])
        hub.count { $0.stalledPeers += 1 }
        state.machine.cutOff()
        let (channel, server, connection) = (context.channel, server, connection)
        let endsCount = memory.countUntilClosed(output.writtenBytes - output.sentBytes)
        channel.closeFuture.whenComplete { _ in
            server.admission.closed(connection)
            endsCount()
        }
        guard state.machine.isTaking else { return closeNow() }
        var last = ByteBuffer(string: "\n")
        last.writeBytes(Response.bytes(id: "null", error: error))
        last.writeString("\n")
        context.writeAndFlush(wrapOutboundOut(last)).whenComplete { _ in channel.close(promise: nil) }
        closeAtLatest(in: server.limits.stalledPeerSecondsMax, channel)
        ended()
    }
}

// MARK: - What the hub, other threads and timers report

extension ConnectionHandler {
    /// Whether requests are being started on the loop: what responds at once needs no mailbox.
    var isHandingOn: Bool { requests.isHandingOn }

    /// Something was reported that `settle` must look at. False when something was reported before.
    func touch() -> Bool {
        guard !isTouched else { return false }
        isTouched = true
        return true
    }

    /// Takes the response of a request, or of an entry of a batch.
    func responded(_ ticket: RequestTicket, _ response: [UInt8]?, isError: Bool) {
        if isError { hub.count { $0.errors += 1 } }
        let wasLarge = largeReads.responded(ticket)
        output.leave(ticket.sequence, state.machine.requestEnded(ticket, response))
        if wasLarge { state.machine.outgrownReadEnded() }
    }

    func deliver(_ notification: OutgoingNotification) { output.deliver(notification) }

    func subscriptionOpened(_ subscription: String, by sequence: UInt64) {
        output.subscriptionOpened(subscription, by: sequence)
    }

    func lineWasRead(_ line: Result<ReadLine, JSONError>) { requests.lineCameBack(line) }

    func wasVerified(_ outcome: Result<Caller, RPCError>, _ speaksAs: JSONValue?) {
        requests.verified(outcome, speaksAs)
    }

    /// What watched the identity has taken over the new one.
    func identityWorkIsDone() { state.machine.identityChanged(isTakenOver: true) }

    /// A watch of the identity was added that ends before all others.
    func scheduleExpiry() { session.scheduleExpiry() }

    /// Identities have ended before their tokens.
    func endIdentities() { connection.endIdentities() }

    func requestMayStart() { memory.requestMayStart() }

    func readOutgrew(_ reply: PendingResponse, needsLargest: Bool, _ rerun: @escaping LargeReads.Rerun) {
        largeReads.outgrew(reply, needsLargest: needsLargest, rerun)
    }

    func largeReadGranted(_ reservation: ReadReservation) { largeReads.granted(reservation) }

    /// The watch of an unfinished line is due.
    func lineIsDue() {
        if lines.hasStalled() { requests.refuseStalledLine() }
        settle()
    }

    /// The line lies in memory for medium lines, and is to be looked at.
    func mediumLineIsDue(_ count: Int?) { lines.lookAtMediumLine(count) }

    /// Others need the memory that the line waits or lies in. It may have ended meanwhile.
    func refuseLine(_ number: Int) {
        guard lines.isUnfinished(number), state.machine.phase == .open else { return }
        requests.refuseUnfinishedLine(RPCError.memoryFull)
        settle()
    }

    /// Too many connections without a credential have unfinished lines. This one may have ended meanwhile, or its
    /// connection may have shown one.
    func refuseUnfinishedLine() {
        guard lines.isWatched, !state.hasShownCredential, state.machine.phase == .open else { return }
        requests.refuseUnfinishedLine(RPCError.lineStalled)
        settle()
    }

    /// The peer has shown a credential.
    func widenSocket() {
        if let channel = context?.channel { SocketInput.widen(channel, server.limits) }
    }

    /// The lines are a client's, which has shown none.
    func narrowSocket() {
        if let channel = context?.channel { SocketInput.narrow(channel, server.limits) }
    }

    /// The socket takes nothing any more; the channel closes.
    func peerIsLost() {
        closeNow()
        ended()
    }

    /// The watch of a peer whose socket is full is due.
    func peerIsDue() {
        if peerWatch.hasStalled(context?.channel) { return cutOffStalled(RPCError.peerStalled) }
        // Less may be held now.
        memory.returnExemptionIfDone()
    }
}

extension ChannelHandlerContext {
    /// TLS would wait for the peer's own end, and keep the socket for as long.
    fileprivate func closeWithoutTLSEnd() {
        if let tls = try? pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self) {
            tls.close(promise: nil)
        } else {
            close(promise: nil)
        }
    }
}

/// Fired into the pipeline when a TLS handshake is done.
struct ServerTLSReady: Sendable {}
