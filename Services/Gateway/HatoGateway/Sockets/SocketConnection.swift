import HatoFirebase
import NIOCore
import NIOHTTP1
import NIOWebSocket

/// What the messages of a WebSocket are for: on its event loop.
protocol SocketOwner: AnyObject {
    /// Whether the client should be read; when not, messages that were read already are still taken.
    var wantsInput: Bool { get }
    /// Bytes of the client that wait for the service.
    var queuedBytes: Int { get }
    /// The first call.
    func socketOpened(_ socket: SocketConnection)
    /// A message of the client.
    func socketReceived(_ message: ReceivedMessage)
    /// The client takes bytes again, or no more.
    func socketWritabilityChanged(_ isWritable: Bool)
    /// The last call.
    func socketEnded()
    /// Whether the gateway calls `gatewayStops` in the turn of the socket.
    var leavesInTurn: Bool { get }
    /// The gateway stops: the client shall come back, where another process may listen.
    func gatewayStops()
}

/// One WebSocket of a client: puts messages together from frames and splits them into frames, sends pings, and closes
/// when nothing comes for long.
final class SocketConnection: ChannelInboundHandler, FramedSocket {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private let loopState: LoopState
    private let owner: any SocketOwner
    /// Nil: it has ended.
    private var record: RequestRecord?
    private var frames: FrameAssembler
    private var context: ChannelHandlerContext?
    /// Of NIO's encoder of frames, which text frames pass by (`TextFrame`).
    private var encoder: ChannelHandlerContext?
    private var ping: Scheduled<Void>?
    private var health = SocketHealth()
    private var isInputPaused = false
    /// Whether there should be more for the client.
    private var takesOutput = true
    private let output: UntakenOutput
    private let held: HeldBytes
    /// Bytes that count in the budget of the client.
    private var heldBytes = 0
    /// Whether something was written since the last flush.
    private var needsFlush = false
    private var hasEnded = false
    /// The close frame was sent; what still comes is read and dropped.
    private var isLingering = false

    /// - Parameters:
    ///   - head: the request for it.
    ///   - output: of the connection.
    init(_ loopState: LoopState, _ owner: any SocketOwner, _ head: HTTPRequestHead, _ output: UntakenOutput) {
        (self.loopState, self.owner, self.output) = (loopState, owner, output)
        held = loopState.held.of(output.address)
        var record = RequestRecord(head, from: output.address, .socket)
        record.status = HTTPResponseStatus.switchingProtocols.code
        self.record = record
        frames = FrameAssembler(messageBytesMax: loopState.configuration.limits.polls.messageBytesMax)
    }

    private var limits: GatewayLimits { loopState.configuration.limits }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        encoder = try? context.pipeline.syncOperations.context(handlerType: WebSocketFrameEncoder.self)
        loopState.sockets[ObjectIdentifier(self)] = self
        loopState.metrics.socketsChanged(by: 1)
        owner.socketOpened(self)
        outputChanged()
        flush()
        schedulePing()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        end()
        releaseHeld()
        if loopState.sockets.removeValue(forKey: ObjectIdentifier(self)) != nil {
            loopState.metrics.socketsChanged(by: -1)
        }
        (self.context, encoder) = (nil, nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Behind a wrong frame the decoder takes nothing: what still comes is read for the client to get the code.
        if hasEnded, error is ByteToMessageDecoderError { return }
        guard !hasEnded, let error = error as? NIOWebSocketError else { return context.close(promise: nil) }
        close(error == .invalidFrameLength ? .tooLong : .wrongFrame)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        health.outputChanged(isFull: !context.channel.isWritable)
        outputChanged()
        context.fireChannelWritabilityChanged()
    }

    func outputChanged() {
        guard let context, !hasEnded else { return }
        let takesOutput = context.channel.isWritable && !output.isStopped
        guard takesOutput != self.takesOutput else { return }
        self.takesOutput = takesOutput
        owner.socketWritabilityChanged(takesOutput)
        setInput()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        guard !hasEnded else {
            if isLingering, frame.opcode == .connectionClose { context.close(promise: nil) }
            return
        }
        // Bits of extensions, of which none was agreed on.
        guard frame.maskKey != nil, !frame.rsv1, !frame.rsv2, !frame.rsv3 else { return close(.wrongFrame) }
        var payload = frame.unmaskedData
        switch frame.opcode {
        case .text, .continuation:
            guard (frame.opcode == .text) != frames.isFrameSplit else { return close(.wrongFrame) }
            let bytes = payload.readBytes(length: payload.readableBytes) ?? []
            defer { hold() }
            if let message = frames.received(bytes[...], isLast: frame.fin) { owner.socketReceived(message) }
        case .ping, .pong: break
        case .connectionClose: return close(SocketEnd(closedWith: payload))
        case .binary: return close(.noText)
        default: return close(.wrongFrame)
        }
        health.frameEnded(heldBytes: frames.heldBytes)
        setInput()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush()
        context.fireChannelReadComplete()
    }

    // MARK: The owner's calls

    /// Sends a message; it goes out when the owner's turn ends.
    ///
    /// - Parameter promise: it succeeds when the socket has taken the message.
    func send(_ message: [UInt8], promise: EventLoopPromise<Void>? = nil) {
        guard let context, let encoder, !hasEnded else { return promise?.fail(ChannelError.ioOnClosedChannel) ?? () }
        record?.bytes += message.count
        let frames = FrameSplitter.frames(of: message)
        for (index, frame) in frames.enumerated() {
            encoder.write(
                NIOAny(TextFrame.bytes(frame, context.channel.allocator)),
                promise: index == frames.count - 1 ? promise : nil)
        }
        if frames.isEmpty { promise?.succeed(()) }
        needsFlush = true
    }

    /// A turn of the owner ends: what it sent goes out, and `wantsInput` may have changed.
    func turned() {
        flush()
        hold()
        setInput()
    }

    var takesFrames: Bool { !hasEnded || isLingering }

    var leavesInTurn: Bool { owner.leavesInTurn }

    /// The gateway stops.
    func leave() { if !hasEnded { owner.gatewayStops() } }

    /// The client gets the code and the reason; the first call counts.
    func close(_ end: SocketEnd) {
        guard let context, !hasEnded else { return }
        var data = ByteBuffer()
        data.write(webSocketErrorCode: end.code)
        data.writeString(end.reason)
        context.writeAndFlush(
            wrapOutboundOut(WebSocketFrame(fin: true, opcode: .connectionClose, data: data)), promise: nil)
        isLingering = end.lingers
        // At once, and not with the channel: one with TLS waits for its client, of which nothing is taken any more.
        self.end()
        guard isLingering else { return context.close(promise: nil) }
        if isInputPaused { context.channel.setOption(.autoRead, value: true).whenFailure { _ in } }
        let time = TimeAmount.milliseconds(Int64(limits.lingeringMsMax))
        context.eventLoop.assumeIsolated().scheduleTask(in: time) { [weak self] in
            self?.context?.close(promise: nil)
        }
    }

    // MARK: Pings

    /// Something has come, maybe a part of a long frame.
    func heard(frameBytes: Int) {
        health.heard(frameBytes: frameBytes)
        hold()
    }

    private func schedulePing() {
        guard let context, !hasEnded else { return }
        let pause = TimeAmount.milliseconds(Int64(limits.pingMs))
        ping = context.eventLoop.assumeIsolated().scheduleTask(in: pause) { [weak self] in
            guard let self, let context = self.context else { return }
            switch self.health.look(at: context.channel, isRead: !self.isInputPaused, self.limits) {
            case .silent:
                self.end()
                return context.close(promise: nil)
            case .tooSlow: return self.close(.tooSlow)
            case .alive: break
            }
            // Behind what the client does not take, it would be of no use.
            if context.channel.isWritable {
                context.writeAndFlush(
                    self.wrapOutboundOut(WebSocketFrame(fin: true, opcode: .ping, data: ByteBuffer())), promise: nil)
            }
            self.schedulePing()
        }
    }

    // MARK: Flow and end

    /// Parts of a message that is not complete, and what the service does not take.
    private func hold() {
        guard !hasEnded || isLingering else { return }
        let bytes = frames.heldBytes + health.frameBytes + (hasEnded ? 0 : owner.queuedBytes)
        guard held.change(by: bytes - heldBytes) else {
            return isLingering ? context?.close(promise: nil) ?? () : close(.busy)
        }
        heldBytes = bytes
    }

    private func setInput() {
        guard let context, !hasEnded else { return }
        // What a client that does not read asks for would wait here.
        let isPaused = !owner.wantsInput || !takesOutput
        guard isPaused != isInputPaused else { return }
        isInputPaused = isPaused
        health.inputChanged(isPaused: isPaused)
        context.channel.setOption(.autoRead, value: !isPaused).whenFailure { _ in }
    }

    private func flush() {
        guard needsFlush else { return }
        needsFlush = false
        context?.flush()
    }

    private func end() {
        guard !hasEnded else { return }
        hasEnded = true
        if let record { loopState.ended(record) }
        record = nil
        ping?.cancel()
        ping = nil
        frames = FrameAssembler(messageBytesMax: 0)
        releaseHeld()
        owner.socketEnded()
    }

    private func releaseHeld() {
        held.release(heldBytes)
        heldBytes = 0
    }
}
