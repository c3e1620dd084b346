import HatoFirebase
import HatoModel
import HatoRPC
import NIOCore
import NIOWebSocket

/// One WebSocket of a client: frames on one side, the session in the middle, a connection to messages of its own on
/// the other side. All on one event loop.
///
/// A client that does not read makes the gateway read no more from messages, which then merges what the client misses;
/// a session that has too much under way makes it read no more from the client.
final class SocketConnection: ChannelInboundHandler, FramedSocket {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private let loopState: LoopState
    private let database: DatabaseName?
    private let address: String
    private let held: HeldBytes
    private var session: SessionStateMachine
    private var frames: FrameAssembler
    private var context: ChannelHandlerContext?
    private var wire: ForwardedWire?
    /// The calls of the session, by their ids on the wire.
    private var calls: [UInt64: Int] = [:]
    private var timers: [SessionStateMachine.Timer: Scheduled<Void>] = [:]
    private var ping: Scheduled<Void>?
    private var lastHeard = NIODeadline.now()
    private var isWirePaused = false
    private var isInputPaused = false
    /// Bytes that count in the budget of the loop.
    private var heldBytes = 0
    /// Bytes of a frame that is not complete.
    private var frameBytes = 0
    /// Whether something was written since the last flush.
    private var needsFlush = false

    /// - Parameters:
    ///   - database: of the namespace; nil: there is none of that name.
    ///   - host: the Host of the request.
    ///   - address: the IP address of the client.
    init(_ loopState: LoopState, _ database: DatabaseName?, host: String, from address: String) {
        (self.loopState, self.database, self.address) = (loopState, database, address)
        held = loopState.held.of(address)
        let limits = loopState.configuration.limits
        session = SessionStateMachine(
            database: database == .default ? nil : database, host: host, session: loopState.secret(),
            limits: limits.session)
        frames = FrameAssembler(messageBytesMax: Self.messageBytesMax)
    }

    /// Bytes of a message; a frame may have as many.
    static let messageBytesMax = 16 << 20

    private var limits: GatewayLimits { loopState.configuration.limits }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        loopState.sockets[ObjectIdentifier(self)] = self
        loopState.metrics.socketsChanged(by: 1)
        guard let database else { return perform(session.handle(.namespaceWasUnknown)) }
        perform(session.handle(.accepted))
        loopState.upstream.prepare(database) { [weak self] in self?.connect() }
        schedulePing()
    }

    private func connect() {
        guard let context, context.channel.isActive else { return }
        wire = loopState.upstream.messages.connect(on: context.eventLoop, for: address, self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        end()
        if loopState.sockets.removeValue(forKey: ObjectIdentifier(self)) != nil {
            loopState.metrics.socketsChanged(by: -1)
        }
        self.context = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        let isWritable = context.channel.isWritable
        if isWritable, isWirePaused {
            isWirePaused = false
            wire?.resume()
        } else if !isWritable, !isWirePaused {
            isWirePaused = true
            wire?.pause()
        }
        setInput()
        context.fireChannelWritabilityChanged()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        guard frame.maskKey != nil else { return close(.protocolError) }
        var payload = frame.unmaskedData
        switch frame.opcode {
        case .text, .continuation:
            let bytes = payload.readBytes(length: payload.readableBytes) ?? []
            defer { hold() }
            if let message = frames.received(bytes[...], isLast: frame.fin) {
                perform(session.handle(.message(message)))
            }
        case .ping:
            context.write(wrapOutboundOut(WebSocketFrame(fin: true, opcode: .pong, data: payload)), promise: nil)
            needsFlush = true
        case .pong: break
        case .connectionClose: return close(.normalClosure)
        default: return close(.unacceptableData)
        }
        setInput()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush()
        context.fireChannelReadComplete()
    }

    // MARK: The session

    private func perform(_ actions: [SessionStateMachine.Action]) {
        for action in actions {
            switch action {
            case .send(let message): send(message)
            case .call(let call, let method, let params): self.call(call, method, params)
            case .authenticate(let call, let credential):
                self.call(call, Session.Authenticate.method, loopState.params(of: credential))
            case .schedule(let timer, let due): schedule(timer, due)
            case .cancel(let timer): timers.removeValue(forKey: timer)?.cancel()
            case .close(let reason):
                loopState.closed(reason)
                close(.normalClosure)
            }
        }
    }

    private func send(_ message: [UInt8]) {
        guard let context else { return }
        for frame in FrameSplitter.frames(of: message) {
            context.write(
                wrapOutboundOut(WebSocketFrame(fin: true, opcode: .text, data: ByteBuffer(bytes: frame))), promise: nil)
        }
        needsFlush = true
    }

    private func call(_ call: Int, _ method: String, _ params: [UInt8]) {
        // A connection that has ended says so by itself.
        guard let id = wire?.send(method, params) else { return }
        calls[id] = call
    }

    private func schedule(_ timer: SessionStateMachine.Timer, _ due: SessionStateMachine.Due) {
        guard let context else { return }
        let delay =
            switch due {
            case .after(let milliseconds): Int64(milliseconds)
            case .at(let time):
                min(max(0, time.subtractingReportingOverflow(loopState.now()).partialValue), Self.delayMax)
            }
        timers.removeValue(forKey: timer)?.cancel()
        timers[timer] = context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(delay)) { [weak self] in
            guard let self else { return }
            self.timers[timer] = nil
            if case .at(let time) = due, time > self.loopState.now() { return self.schedule(timer, due) }
            self.perform(self.session.handle(.timerFired(timer)))
            self.flush()
        }
    }

    /// Milliseconds; a longer delay is waited for in parts.
    private static let delayMax: Int64 = 24 * 3_600_000

    /// The gateway stops: the client shall come back, where another process may listen.
    func leave() {
        perform(session.handle(.stopping))
        flush()
        close(.goingAway)
    }

    // MARK: Pings

    /// Something has come, maybe a part of a long frame.
    func heard(frameBytes: Int) {
        (lastHeard, self.frameBytes) = (.now(), frameBytes)
        hold()
    }

    private func schedulePing() {
        guard let context else { return }
        let pause = TimeAmount.milliseconds(Int64(limits.pingMs))
        ping = context.eventLoop.assumeIsolated().scheduleTask(in: pause) { [weak self] in
            guard let self, let context = self.context else { return }
            let silence = NIODeadline.now() - self.lastHeard
            // A client that is not read cannot be heard; one that does not read is no better than a silent one.
            let isHeard = context.channel.isWritable && self.isInputPaused
            guard isHeard || silence < .milliseconds(Int64(self.limits.silenceMsMax)) else {
                return context.close(promise: nil)
            }
            context.writeAndFlush(
                self.wrapOutboundOut(WebSocketFrame(fin: true, opcode: .ping, data: ByteBuffer())), promise: nil)
            self.schedulePing()
        }
    }

    // MARK: Flow and end

    /// Parts of a message that is not complete, and what messages does not take.
    private func hold() {
        let queued = wire.map { $0.isWritable ? 0 : $0.queuedBytes } ?? 0
        let bytes = frames.heldBytes + frameBytes + queued
        guard held.change(by: bytes - heldBytes) else { return close(.unexpectedServerError) }
        heldBytes = bytes
    }

    private func setInput() {
        guard let context else { return }
        // What a client that does not read asks for would wait here.
        let isPaused = !session.wantsInput || !context.channel.isWritable || wire?.isWritable == false
        guard isPaused != isInputPaused else { return }
        isInputPaused = isPaused
        lastHeard = .now()
        context.channel.setOption(.autoRead, value: !isPaused).whenFailure { _ in }
    }

    private func flush() {
        guard needsFlush else { return }
        needsFlush = false
        context?.flush()
    }

    private func close(_ code: WebSocketErrorCode) {
        guard let context else { return }
        var data = ByteBuffer()
        data.write(webSocketErrorCode: code)
        context.writeAndFlush(
            wrapOutboundOut(WebSocketFrame(fin: true, opcode: .connectionClose, data: data)), promise: nil)
        context.close(promise: nil)
    }

    private func end() {
        ping?.cancel()
        ping = nil
        for timer in timers.values { timer.cancel() }
        timers = [:]
        calls = [:]
        held.release(heldBytes)
        heldBytes = 0
        let wire = wire
        self.wire = nil
        wire?.close()
    }
}

extension SocketConnection: ForwardedWireOwner {
    func wireOpened(_ wire: ForwardedWire) {
        guard wire === self.wire else { return }
        perform(session.handle(.wireOpened(at: loopState.now())))
        flush()
    }

    func wire(_ wire: ForwardedWire, received response: RPCWireResponse) {
        guard wire === self.wire, let call = calls.removeValue(forKey: response.id) else { return }
        switch response.outcome {
        case .result(let text):
            perform(session.handle(.succeeded(call: call, result: Array(text.readableBytesView)[...])))
        case .error(let error, _): perform(session.handle(.refused(call: call, error)))
        }
        setInput()
    }

    func wire(_ wire: ForwardedWire, received notification: RPCWireNotification) {
        guard wire === self.wire else { return }
        perform(
            session.handle(
                .notified(
                    .init(
                        isEnd: notification.method == Messages.Cancelled.method,
                        subscription: notification.subscription, params: notification.object[...]))))
    }

    func wireDelivered(_ wire: ForwardedWire) { flush() }

    func wireBecameWritable(_ wire: ForwardedWire) {
        guard wire === self.wire else { return }
        hold()
        setInput()
    }

    func wireEnded(_ wire: ForwardedWire, _ error: RPCError, unanswered: [UInt64]) {
        guard wire === self.wire else { return }
        self.wire = nil
        perform(session.handle(.wireEnded))
        flush()
    }
}
