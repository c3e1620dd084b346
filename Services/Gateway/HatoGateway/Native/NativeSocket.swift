import HatoFirebase
import HatoModel
import HatoRPC
import NIOCore
import NIOWebSocket

/// One WebSocket of a client that speaks the services' own protocol: each message is one line of a connection to a
/// service, and each line of the service is one message. All on one event loop.
///
/// Nothing is read of the lines: ids, errors, order and limits are those of the service, which knows from the
/// declaration of the connection that its lines are the client's (`session.forward` with `clientLines`). A client that
/// does not read makes the gateway read no more from the service, and a service that does not read makes it read no
/// more from the client. A service that is away ends the socket.
final class NativeSocket: ChannelInboundHandler, FramedSocket {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private let loopState: LoopState
    private let link: ServiceLink
    private let output: UntakenOutput
    private var traffic: NativeTraffic
    private var context: ChannelHandlerContext?
    /// Of NIO's encoder of frames, which text frames pass by (`TextFrame`).
    private var encoder: ChannelHandlerContext?
    private var wire: RPCLineWire?
    private var message: MessageParts
    private var opening: Scheduled<Void>?
    private var ping: Scheduled<Void>?
    private var health = SocketHealth()
    private let held: HeldBytes
    private var isOutputFull = false
    private var isInputPaused = false
    /// The gateway stops: the service responds to what it has.
    private var isLeaving = false
    /// The client has sent a close frame: the service responds to what it has sent before.
    private var hasClientClosed = false
    /// A close frame was sent.
    private var isClosing = false
    /// The service has refused a line, and ends the connection.
    private var isLineRefused = false
    /// What the client's close frame says.
    private var code = WebSocketErrorCode.normalClosure
    /// Bytes that count in the budget of the client.
    private var heldBytes = 0
    private var needsFlush = false

    /// - Parameter output: of the connection.
    init(_ loopState: LoopState, _ link: ServiceLink, _ traffic: NativeTraffic, _ output: UntakenOutput) {
        (self.loopState, self.link, self.traffic, self.output) = (loopState, link, traffic, output)
        held = loopState.held.of(output.address)
        message = MessageParts(bytesMax: loopState.configuration.limits.polls.messageBytesMax)
    }

    private var limits: GatewayLimits { loopState.configuration.limits }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        encoder = try? context.pipeline.syncOperations.context(handlerType: WebSocketFrameEncoder.self)
        loopState.sockets[ObjectIdentifier(self)] = self
        loopState.metrics.socketsChanged(by: 1)
        wire = link.connectLines(on: context.eventLoop, for: output.address, self)
        let time = TimeAmount.milliseconds(Int64(limits.session.wireMsMax))
        opening = context.eventLoop.assumeIsolated().scheduleTask(in: time) { [weak self] in
            self?.close(.unavailable)
        }
        outputChanged()
        setInput()
        schedulePing()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        end("clientLeft")
        if loopState.sockets.removeValue(forKey: ObjectIdentifier(self)) != nil {
            loopState.metrics.socketsChanged(by: -1)
        }
        (self.context, encoder) = (nil, nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        end("clientLeft")
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case NIOWebSocketError.invalidFrameLength: close(.tooLong)
        case is NIOWebSocketError: close(.wrongFrame)
        // Behind a wrong frame the decoder takes nothing: what still comes is read for the client to get the reason.
        case is ByteToMessageDecoderError where isClosing: break
        default:
            end("error")
            context.close(promise: nil)
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        health.outputChanged(isFull: !context.channel.isWritable)
        outputChanged()
        context.fireChannelWritabilityChanged()
    }

    func outputChanged() {
        guard let context else { return }
        let isFull = !context.channel.isWritable || output.isStopped
        guard isFull != isOutputFull else { return }
        isOutputFull = isFull
        if isFull { wire?.pause() } else { wire?.resume() }
        setInput()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        guard !isClosing, !isLeaving || frame.opcode == .connectionClose else {
            if isClosing, frame.opcode == .connectionClose { context.close(promise: nil) }
            return
        }
        // Bits of extensions, of which none was agreed on.
        guard frame.maskKey != nil, !frame.rsv1, !frame.rsv2, !frame.rsv3 else { return close(.wrongFrame) }
        switch frame.opcode {
        case .text, .continuation: take(frame)
        case .ping, .pong: break
        case .connectionClose: clientCloses(frame.unmaskedData)
        case .binary: close(.noText)
        default: close(.wrongFrame)
        }
        health.frameEnded(heldBytes: message.count)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush()
        context.fireChannelReadComplete()
    }

    // MARK: Messages

    private func take(_ frame: WebSocketFrame) {
        switch message.received(frame.unmaskedData, isFirst: frame.opcode == .text, isLast: frame.fin) {
        case .incomplete: break
        case .complete(let text):
            traffic.received(text.readableBytes)
            guard String(validating: text.readableBytesView, as: UTF8.self) != nil else { return close(.notUTF8) }
            // The service would end the connection without a word.
            guard !HTTPGuard.isHTTP(text.readableBytesUInt8Span) else { return close(.noJSON) }
            wire?.send(text.readableBytesUInt8Span)
        case .tooLong: return close(.tooLong)
        case .outOfOrder: return close(.wrongFrame)
        }
        hold()
        setInput()
    }

    private func write(_ frame: WebSocketFrame, _ promise: EventLoopPromise<Void>? = nil) {
        guard !isClosing, let context else { return }
        context.write(wrapOutboundOut(frame), promise: promise)
        needsFlush = true
    }

    private func flush() {
        guard needsFlush else { return }
        needsFlush = false
        context?.flush()
    }

    // MARK: Flow

    func heard(frameBytes: Int) {
        health.heard(frameBytes: frameBytes)
        hold()
    }

    /// Parts of a message that is not complete, and messages that the service has not taken.
    private func hold() {
        let queued = wire.map { $0.isWritable ? 0 : $0.queuedBytes } ?? 0
        let bytes = message.count + health.frameBytes + queued
        guard held.change(by: bytes - heldBytes) else { return close(.busy) }
        heldBytes = bytes
    }

    /// Reads from the client while the service takes what it says, and the client what it gets.
    private func setInput() {
        guard let context else { return }
        let isPaused = !isClosing && (isLeaving || isOutputFull || wire?.isWritable == false)
        guard isPaused != isInputPaused else { return }
        isInputPaused = isPaused
        health.inputChanged(isPaused: isPaused)
        context.channel.setOption(.autoRead, value: !isPaused).whenFailure { _ in }
    }

    private func schedulePing() {
        guard let context else { return }
        let pause = TimeAmount.milliseconds(Int64(limits.pingMs))
        ping = context.eventLoop.assumeIsolated().scheduleTask(in: pause) { [weak self] in
            guard let self, let context = self.context else { return }
            switch self.health.look(at: context.channel, isRead: !self.isInputPaused, self.limits) {
            case .silent:
                self.end("silent")
                return context.close(promise: nil)
            case .tooSlow: return self.close(.tooSlow)
            case .alive: break
            }
            // Behind what the client does not take, it would be of no use.
            if !self.isOutputFull { self.write(WebSocketFrame(fin: true, opcode: .ping, data: ByteBuffer())) }
            self.flush()
            self.schedulePing()
        }
    }

    // MARK: The end

    /// The service responds to what it has, and gets no more.
    var leavesInTurn: Bool { false }

    /// Up to the client's close frame, behind that of the gateway.
    var takesFrames: Bool { context != nil }

    func leave() {
        guard let wire else { return close(.stopping) }
        isLeaving = true
        wire.finish()
        setInput()
    }

    /// The client sends no more: what it has sent still reaches the service, also when its connection ends now. The
    /// socket closes behind the responses.
    ///
    /// - Parameter data: of its close frame, whose code the socket is closed with (RFC 6455 §5.5.1).
    private func clientCloses(_ data: ByteBuffer) {
        var data = data
        if let code = data.readWebSocketErrorCode() { self.code = code.isForFrames ? code : .protocolError }
        guard let context, wire != nil, !hasClientClosed else { return close(.ofClient) }
        (isLeaving, hasClientClosed) = (true, true)
        if opening == nil { wire?.finish() }
        setInput()
        let time = TimeAmount.milliseconds(Int64(limits.finishingMsMax))
        context.eventLoop.assumeIsolated().scheduleTask(in: time) { [weak self] in
            self?.close(.ofClient)
            self?.closeWire()
        }
    }

    private func close(_ end: NativeSocketEnd) {
        guard let context, !isClosing else { return }
        loopState.closed(end)
        // Before the channel may close, as the client having left.
        report("\(end)")
        var data = ByteBuffer()
        data.write(webSocketErrorCode: end == .ofClient ? code : end.code)
        data.writeString(end.reason)
        let written = context.eventLoop.makePromise(of: Void.self)
        if end == .ofClient {
            written.futureResult.assumeIsolated().whenComplete { [weak self] _ in self?.context?.close(promise: nil) }
        }
        write(WebSocketFrame(fin: true, opcode: .connectionClose, data: data), written)
        isClosing = true
        flush()
        self.end("\(end)")
        // Closed at once, a client that still sends would lose the reason.
        setInput()
        let time = TimeAmount.milliseconds(Int64(limits.lingeringMsMax))
        context.eventLoop.assumeIsolated().scheduleTask(in: time) { [weak self] in
            self?.context?.close(promise: nil)
        }
    }

    /// - Parameter reason: for the log.
    private func end(_ reason: String) {
        report(reason)
        opening?.cancel()
        ping?.cancel()
        (opening, ping) = (nil, nil)
        message = MessageParts(bytesMax: 0)
        guard hasClientClosed, let wire else { return closeWire() }
        // It ends when the service has responded, which no one reads, or when `finishingMsMax` have passed.
        health.heard(frameBytes: 0)
        hold()
        wire.resume()
    }

    private func report(_ reason: String) {
        if let record = traffic.ended(reason) { loopState.ended(record) }
    }

    private func closeWire() {
        held.release(heldBytes)
        heldBytes = 0
        let wire = wire
        self.wire = nil
        wire?.close()
    }
}

extension NativeSocket: RPCLineWireDelegate {
    /// Bytes of a line that is copied behind the head of its frame.
    private static let copiedBytesMax = 64 << 10

    func lineWireOpened(_ wire: RPCLineWire) {
        guard wire === self.wire else { return }
        opening?.cancel()
        opening = nil
        if hasClientClosed { wire.finish() }
        hold()
        setInput()
    }

    func lineWire(_ wire: RPCLineWire, received line: ByteBuffer) {
        guard wire === self.wire else { return }
        traffic.sent(line.readableBytes)
        isLineRefused = NativeSocketEnd.isRefusal(line)
        guard !isClosing, let context, let encoder else { return }
        let allocator = context.channel.allocator
        if line.readableBytes > Self.copiedBytesMax {
            encoder.write(NIOAny(TextFrame.head(line.readableBytes, allocator)), promise: nil)
            encoder.write(NIOAny(line), promise: nil)
        } else {
            // A part of what was read keeps all of it in memory.
            encoder.write(NIOAny(TextFrame.bytes(line.readableBytesView, allocator)), promise: nil)
        }
        needsFlush = true
    }

    func lineWireDelivered(_ wire: RPCLineWire) { flush() }

    func lineWireBecameWritable(_ wire: RPCLineWire) {
        guard wire === self.wire else { return }
        hold()
        setInput()
    }

    func lineWireEnded(_ wire: RPCLineWire, _ end: RPCWireEnd) {
        guard wire === self.wire else { return }
        self.wire = nil
        closeWire()
        let own = isLineRefused ? NativeSocketEnd.refusedLine : NativeSocketEnd(end)
        close(hasClientClosed ? .ofClient : isLeaving ? .stopping : own)
    }
}
