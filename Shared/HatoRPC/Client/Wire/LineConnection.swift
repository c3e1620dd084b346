import NIOCore
import NIOTLS

/// What a connection of lines reports: on its event loop, and never inside a call of its owner.
protocol LineReceiver: AnyObject {
    func connected()
    /// A line without its end, not blank.
    func received(_ line: ByteBuffer)
    /// No more of what has come is delivered now.
    func delivered()
    /// The connection was not writable and is again.
    func becameWritable()
    /// The last call.
    func ended(_ end: RPCWireEnd)
}

/// One connection to a service that carries lines: connects, cuts what comes, gathers what goes, and ends.
///
/// Apart from TLS it is the only handler of its channel. It keeps its receiver until the end. What is sent in one turn
/// of the event loop goes out in one write, and while the socket has not taken that one, more gathers: `queuedBytes` is
/// all that the socket has not taken. While it is paused it delivers nothing and does not ask for more; it holds what
/// one read brings, and at the end what the system had received. On the event loop only.
final class LineConnection: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Phase {
        case connecting, open
        /// The channel has closed, and lines that came before are still to be delivered.
        case finishing(RPCWireEnd)
        case ended
    }

    private let connector: RPCWireConnector
    private let loop: any EventLoop
    private var receiver: (any LineReceiver)?
    private var phase = Phase.connecting
    private var context: ChannelHandlerContext?
    /// Of the handshake of TLS.
    private var timeout: Scheduled<Void>?
    private var deadline = NIODeadline.distantFuture

    private var lines = LineBuffer()
    private var isPaused = false
    private var isReadHeld = false
    private var isDelivering = false
    private var isResumePlanned = false

    private var output = ByteBuffer()
    /// What the channel was given and the socket has not taken.
    private var writingBytes = 0
    private var isFlushPlanned = false
    private var isOutputEnding = false
    private(set) var isWritable = true

    /// What went wrong in the channel, in words.
    private var problem: String?
    private var hasHandshakeFailed = false

    init(_ connector: RPCWireConnector, on loop: any EventLoop, _ receiver: any LineReceiver) {
        self.connector = connector
        self.loop = loop
        self.receiver = receiver
    }

    private var limits: RPCWireConfiguration { connector.configuration }

    // MARK: The owner's calls

    var isEnded: Bool { if case .ended = phase { true } else { false } }

    /// Nil before the connection stands, and at the end.
    var channel: (any Channel)? { context?.channel }

    /// What the socket has not taken.
    var queuedBytes: Int { writingBytes + output.readableBytes }

    /// Whether what was sent in this turn of the event loop is still to go out, and what follows goes out with it.
    var isGathering: Bool { isFlushPlanned && writingBytes == 0 }

    func connect() {
        deadline = .now() + TimeAmount(limits.connectTimeout)
        connector.channel(on: loop).assumeIsolated().whenComplete { [self] outcome in
            switch outcome {
            case .success(let channel): start(channel)
            case .failure(let error): finish(RPCWireEnd(connecting: error, within: limits.connectTimeout))
            }
        }
    }

    func send(_ id: UInt64, _ method: String, _ params: Span<UInt8>) {
        guard !isEnded else { return }
        RequestLine.write(id, method, params, into: &output)
        wasQueued()
    }

    /// Sends a text that was not read as one line (`RequestLine.writeUnread`).
    func send(_ text: Span<UInt8>) {
        guard !isEnded else { return }
        RequestLine.writeUnread(text, into: &output)
        output.writeStaticString("\n")
        wasQueued()
    }

    /// Sends whole lines, each with its end.
    func sendLines(_ lines: ByteBuffer) {
        guard !isEnded, lines.readableBytes > 0 else { return }
        output.writeImmutableBuffer(lines)
        wasQueued()
    }

    private func wasQueued() {
        if queuedBytes > limits.queuedBytesHigh { isWritable = false }
        planFlush()
    }

    func pause() { isPaused = true }

    func resume() {
        guard isPaused else { return }
        isPaused = false
        guard !isDelivering, !isResumePlanned, !isEnded else { return }
        isResumePlanned = true
        loop.assumeIsolated().execute { [self] in
            isResumePlanned = false
            deliver()
            guard isReadHeld, !isPaused else { return }
            isReadHeld = false
            context?.read()
        }
    }

    /// Ends its own direction behind what was sent: the service responds to that and closes.
    func endOutput() {
        guard case .open = phase, !isOutputEnding else { return }
        isOutputEnding = true
        endOutputIfSent()
    }

    private func endOutputIfSent() {
        guard isOutputEnding, case .open = phase, queuedBytes == 0 else { return }
        context?.close(mode: .output, promise: nil)
    }

    /// What the socket takes at once still goes out; the rest is dropped.
    func close() {
        guard !isEnded else { return }
        if case .open = phase, writingBytes == 0, output.readableBytes > 0 {
            context?.writeAndFlush(wrapOutboundOut(output), promise: nil)
        }
        let receiver = end()
        loop.assumeIsolated().execute { receiver?.ended(.closed) }
    }

    // MARK: The channel's life

    private func start(_ channel: any Channel) {
        guard case .connecting = phase else { return channel.close(promise: nil) }
        do {
            try ClientChannel.start(channel, connector.tls, self)
        } catch {
            channel.close(promise: nil)
            finish(.connectFailed(ConnectionProblem.words(error)))
        }
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        guard connector.tls != nil else { return stands() }
        timeout = loop.assumeIsolated().scheduleTask(deadline: deadline) { [self] in
            finish(.connectTimedOut(limits.connectTimeout))
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent { stands() }
        context.fireUserInboundEventTriggered(event)
    }

    private func stands() {
        guard case .connecting = phase else { return }
        phase = .open
        timeout?.cancel()
        timeout = nil
        receiver?.connected()
        flush()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        problem = problem ?? ConnectionProblem.words(error)
        if ConnectionProblem.isFailedHandshake(error) { hasHandshakeFailed = true }
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        let failure = RPCWireEnd.connectFailed(problem ?? "the server closed the connection at once")
        switch phase {
        case .connecting: finish(failure)
        case .open:
            // Written behind the handshake, and so never sent.
            phase = .finishing(hasHandshakeFailed ? failure : .lost(problem))
            output = ByteBuffer()
            deliver()
        case .finishing, .ended: break
        }
        context.fireChannelInactive()
    }

    /// Ends it for a reason that is not the owner's: nothing more is delivered.
    func finish(_ end: RPCWireEnd) {
        guard !isEnded else { return }
        self.end()?.ended(end)
    }

    /// Returns what hears of the end.
    @discardableResult
    private func end() -> (any LineReceiver)? {
        phase = .ended
        timeout?.cancel()
        timeout = nil
        lines.removeAll()
        output = ByteBuffer()
        context?.close(promise: nil)
        defer { receiver = nil }
        return receiver
    }

    // MARK: Reading

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .open = phase else { return }
        lines.append(unwrapInboundIn(data))
        deliver()
    }

    /// The channel asks to read by itself; while the connection is paused it is not passed on.
    func read(context: ChannelHandlerContext) {
        if isPaused, case .open = phase { isReadHeld = true } else { context.read() }
    }

    private func deliver() {
        guard !isDelivering, !isPaused else { return }
        isDelivering = true
        var count = 0
        while let line = nextLine() {
            count += 1
            receiver?.received(line)
        }
        isDelivering = false
        if count > 0, !isEnded { receiver?.delivered() }
        guard !isPaused else { return }
        if case .finishing(let end) = phase { finish(end) }
    }

    /// Nil when none is to be delivered now.
    private func nextLine() -> ByteBuffer? {
        guard !isPaused, !isEnded else { return nil }
        let line = lines.nextLine()
        guard line?.readableBytes ?? lines.unfinishedCount <= limits.lineBytesMax else {
            finish(.lineTooLong(limits.lineBytesMax))
            return nil
        }
        return line
    }

    // MARK: Writing

    private func planFlush() {
        guard case .open = phase, !isFlushPlanned, writingBytes == 0 else { return }
        isFlushPlanned = true
        loop.assumeIsolated().execute { [self] in
            isFlushPlanned = false
            flush()
        }
    }

    /// One write for all that has gathered.
    private func flush() {
        guard case .open = phase, writingBytes == 0, output.readableBytes > 0, let context else { return }
        let full = output
        output = ByteBuffer()
        writingBytes = full.readableBytes
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenSuccess { [self] in sent() }
        context.writeAndFlush(wrapOutboundOut(full), promise: promise)
    }

    private func sent() {
        writingBytes = 0
        flush()
        endOutputIfSent()
        guard case .open = phase, !isWritable, queuedBytes <= limits.queuedBytesLow else { return }
        isWritable = true
        receiver?.becameWritable()
    }
}
