import NIOCore
import NIOHTTP1
import NIOHTTPCompression

/// One connection of a client, as long as it speaks HTTP: one request after the other, each handled by an exchange.
///
/// Parts of a request that come inside a call of this handler wait in a queue, and so does the next request until the
/// socket has taken the response of the former one; meanwhile nothing is read. It bounds the times of heads, bodies,
/// responses and idleness.
final class HTTPConnection: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private enum Phase {
        /// Between two requests.
        case idle
        /// A request is handled; its response has not begun.
        case handling
        /// The response has begun.
        case responding
        /// The response is complete, and the socket has not taken all of it.
        case sending
        /// Nothing more is taken.
        case ended
    }

    private enum Part {
        case request(HTTPServerRequestPart)
        /// What came is no HTTP.
        case wrong(HTTPParserError)
    }

    private let loopState: LoopState
    let peer: Peer
    private let compression: ResponseCompression
    private let output: UntakenOutput
    private var context: ChannelHandlerContext?
    private var phase = Phase.idle
    private var exchange: (any HTTPExchange)?
    private var head: HTTPRequestHead?
    private var hasRequestEnded = true
    private var mayGoOn = true
    private(set) var isLeaving = false
    private var parts: [Part] = []
    private var isTaking = false
    private var isReadHeld = false
    /// The request under way.
    private var record: RequestRecord?
    /// Whether it is counted: it was not refused, and has a handler.
    private var (isAdmitted, isHandled) = (false, false)
    /// How many requests have begun, counted without end.
    private(set) var requestCount = 0
    private var isHeadDue = true
    /// Whether the decoder reads no further than the end of the request.
    private var stopsDecoder = false
    private var protocols: ProtocolSwitch?
    /// Whether the request asks for a WebSocket, and has not ended.
    private var opensSocket = false
    /// When the connection closes, or the time of an exchange is over; nil: not by time.
    private var deadline: NIODeadline?
    /// Runs not later than the deadline, and then looks at it again: most deadlines are put off before they come.
    private var timer: (due: NIODeadline, task: Scheduled<Void>)?
    /// Of the response that is being sent.
    private var whenTaken: (() -> Void)?

    init(_ loopState: LoopState, from peer: Peer, _ compression: ResponseCompression, _ output: UntakenOutput) {
        (self.loopState, self.peer, self.compression, self.output) = (loopState, peer, compression, output)
    }

    /// Requests may make a socket of the connection.
    func mayBecomeSocket(by protocols: ProtocolSwitch) { self.protocols = protocols }

    private var limits: GatewayLimits { loopState.configuration.limits }
    /// Whether the client takes bytes, and may get them (`UntakenShares`).
    var isWritable: Bool { context.map { $0.channel.isWritable && !output.isStopped } ?? false }
    /// Whether the client gets nothing from services before it has taken what it has.
    var isStopped: Bool { output.isStopped }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        loopState.connections[ObjectIdentifier(self)] = self
        loopState.metrics.connectionsChanged(by: 1)
        schedule(limits.headMsMax)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        end()
        if loopState.connections.removeValue(forKey: ObjectIdentifier(self)) != nil {
            loopState.metrics.connectionsChanged(by: -1)
        }
        self.context = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        outputChanged()
        context.fireChannelWritabilityChanged()
    }

    /// The client takes bytes again or no more, or was stopped, or may go on.
    func outputChanged() { exchange?.writabilityChanged(isWritable) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // What a client sends behind what is no HTTP.
        if phase == .ended, error is ByteToMessageDecoderError || error is HTTPParserError { return }
        // A client that leaves within a request is no error of its request.
        guard let error = error as? HTTPParserError, phase != .ended, context.channel.isActive else {
            end()
            return context.close(promise: nil)
        }
        parts.append(.wrong(error))
        takeParts()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard phase != .ended else { return }
        parts.append(.request(unwrapInboundIn(data)))
        takeParts()
    }

    /// While parts wait, no more are read; neither behind a request at which the decoder stops: it would keep all that
    /// comes.
    func read(context: ChannelHandlerContext) {
        if parts.isEmpty, !(stopsDecoder && hasRequestEnded) { context.read() } else { isReadHeld = true }
    }

    // MARK: Requests

    private func takeParts() {
        guard !isTaking else { return }
        isTaking = true
        var count = 0
        while count < parts.count, mayTake(parts[count]) {
            let part = parts[count]
            count += 1
            take(part)
        }
        isTaking = false
        if phase == .ended { parts = [] } else { parts.removeFirst(count) }
        guard parts.isEmpty, isReadHeld, !(stopsDecoder && hasRequestEnded) else { return }
        isReadHeld = false
        context?.read()
    }

    /// The next head waits for the end of the former response.
    private func mayTake(_ part: Part) -> Bool {
        switch part {
        case .request(.head): phase == .idle
        case .request: phase != .ended
        case .wrong: phase == .idle || phase == .handling && !hasRequestEnded
        }
    }

    private func take(_ part: Part) {
        switch part {
        case .request(.head(let head)): began(head)
        case .request(.body(let bytes)):
            guard phase == .handling else { return }
            schedule(limits.bodyStallMs)
            exchange?.received(bytes)
        case .request(.end):
            hasRequestEnded = true
            guard phase == .handling else { return }
            if opensSocket { openSocket() } else { endRequest() }
        case .wrong(let error): refuse(error)
        }
    }

    /// Responds to what is no HTTP, and closes.
    private func refuse(_ error: HTTPParserError) {
        mayGoOn = false
        var response = HTTPResponse(refusing: error)
        if phase == .handling {
            let exchange = exchange
            self.exchange = nil
            respond(response)
            exchange?.clientLeft()
            return
        }
        phase = .sending
        loopState.gate.restrictOrigins(&response.headers, HTTPRequestHead(version: .http1_1, method: .GET, uri: "/"))
        response.headers.add(name: "Connection", value: "close")
        response.headers.add(name: "Content-Length", value: String(response.body.readableBytes))
        let head = HTTPResponseHead(version: .http1_1, status: response.status, headers: response.headers)
        // The compressor counts heads: it must not see this one.
        let below = try? context?.pipeline.syncOperations.context(handlerType: HTTPResponseCompressor.self)
        below?.write(wrapOutboundOut(.head(head)), promise: nil)
        below?.write(wrapOutboundOut(.body(.byteBuffer(response.body))), promise: nil)
        below?.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        end()
        context?.close(mode: .output, promise: nil)
        schedule(limits.lingeringMsMax)
    }

    private func endRequest() {
        deadline = nil
        exchange?.requestEnded()
    }

    private func openSocket() {
        opensSocket = false
        guard let context, let head, let protocols else { return }
        protocols.headers(for: head, on: context.channel).assumeIsolated().whenComplete { [self] result in
            guard phase == .handling else { return }
            switch result {
            case .success(let headers):
                let channel = context.channel
                end()
                protocols.begin(head, headers, self, context)
                // What was held here is the socket's to read.
                channel.read()
            case .failure:
                // It has a response like any other one.
                handle(head, RequestFraming(head))
                if phase == .handling { endRequest() }
            }
        }
    }

    private func began(_ head: HTTPRequestHead) {
        (self.head, hasRequestEnded, phase) = (head, false, .handling)
        (requestCount, isHeadDue) = (requestCount &+ 1, false)
        stopsDecoder = head.method == .CONNECT || head.headers.contains(name: "upgrade")
        mayGoOn = head.isKeepAlive && !isLeaving && !stopsDecoder
        schedule(limits.bodyStallMs)
        let framing = RequestFraming(head)
        opensSocket = protocols != nil && framing.problem == nil && head.opensSocket
        if !opensSocket { handle(head, framing) }
    }

    private func handle(_ head: HTTPRequestHead, _ framing: RequestFraming) {
        let client = loopState.gate.client(of: head, peer)
        record = RequestRecord(head, from: client)
        output.belongs(to: client)
        if let refusal = loopState.gate.requestBegan(head, from: client, peer) {
            loopState.metrics.refused(refusal.reason)
            if peer.isRefused { mayGoOn = false }
            return respond(refusal.response)
        }
        isAdmitted = true
        if let problem = framing.problem {
            mayGoOn = false
            return respond(problem.response)
        }
        let exchange = loopState.router.exchange(for: head, from: client, self)
        guard phase == .handling else { return }
        self.exchange = exchange
        if let kind = exchange?.kind {
            record?.kind = kind
            isHandled = true
            loopState.metrics.underWay(kind, by: 1)
        }
        if let bytes = framing.bodyBytes { exchange?.announced(bodyBytes: bytes) }
        if framing.waitsForContinue, phase == .handling {
            // The compressor counts heads: it must not see this one.
            let below = try? context?.pipeline.syncOperations.context(handlerType: HTTPResponseCompressor.self)
            below?.writeAndFlush(
                wrapOutboundOut(.head(HTTPResponseHead(version: head.version, status: .continue))), promise: nil)
        }
    }

    /// The exchange of a complete request gets `timeCame` after so many milliseconds, unless its response has begun.
    func limitTime(_ milliseconds: Int) { if phase == .handling, hasRequestEnded { schedule(milliseconds) } }

    /// Bytes have come since so many requests had begun: a head that they begin must be complete in time.
    func bytesCame(after count: Int) {
        guard phase == .idle, !isHeadDue, requestCount == count else { return }
        isHeadDue = true
        schedule(limits.headMsMax)
    }

    private func requestEnded() {
        guard let record else { return }
        if isAdmitted { loopState.gate.requestEnded(from: record.address, peer) }
        if isHandled { loopState.metrics.underWay(record.kind, by: -1) }
        (self.record, isAdmitted, isHandled) = (nil, false, false)
        loopState.ended(record)
    }

    // MARK: Responses

    /// Sends a whole response. A second one is not sent.
    func respond(_ response: HTTPResponse) {
        guard phase == .handling, let context, let head else {
            response.whenTaken?()
            return
        }
        phase = .responding
        whenTaken = response.whenTaken
        record?.status = response.status.code
        var headers = response.headers
        let hasBody = response.status.mayHaveResponseBody
        if hasBody { headers.replaceOrAdd(name: "Content-Length", value: String(response.body.readableBytes)) }
        let omitsBody = response.omitsBody || head.method == .HEAD
        compression.hasBody = hasBody && !omitsBody
        setConnection(&headers, head)
        context.write(
            wrapOutboundOut(
                .head(HTTPResponseHead(version: head.version, status: response.status, headers: headers))),
            promise: nil)
        if hasBody, !omitsBody, response.body.readableBytes > 0 {
            record?.bytes += response.body.readableBytes
            context.write(wrapOutboundOut(.body(.byteBuffer(response.body))), promise: nil)
        }
        // Over TLS, a large write may already have met the end of the connection.
        if phase == .responding { complete() }
    }

    /// Begins a response without an end.
    func begin(_ status: HTTPResponseStatus, _ headers: HTTPHeaders) {
        guard phase == .handling, let context, let head else { return }
        (phase, mayGoOn) = (.responding, false)
        record?.status = status.code
        deadline = nil
        compression.hasBody = true
        var headers = headers
        setConnection(&headers, head)
        context.writeAndFlush(
            wrapOutboundOut(.head(HTTPResponseHead(version: head.version, status: status, headers: headers))),
            promise: nil)
    }

    /// Sends a part of the body of a response that `begin` began.
    func send(_ bytes: ByteBuffer) {
        guard phase == .responding else { return }
        record?.bytes += bytes.readableBytes
        context?.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
    }

    /// Ends a response that `begin` began, and closes.
    func finish() {
        guard phase == .responding else { return }
        complete()
    }

    private func complete() {
        guard let context else { return }
        phase = .sending
        exchange = nil
        schedule(limits.responseMsMax)
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { [weak self] _ in self?.wasSent() }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: promise)
    }

    private func setConnection(_ headers: inout HTTPHeaders, _ head: HTTPRequestHead) {
        loopState.gate.restrictOrigins(&headers, head)
        // A body that the client goes on sending would be read for nothing.
        if !hasRequestEnded, head.hasBody { mayGoOn = false }
        if !mayGoOn {
            headers.replaceOrAdd(name: "Connection", value: "close")
        } else if head.version.minor == 0 {
            headers.replaceOrAdd(name: "Connection", value: "keep-alive")
        }
    }

    /// The socket has taken the whole response.
    private func wasSent() {
        guard phase == .sending, let context else { return }
        requestEnded()
        reportTaken()
        guard mayGoOn else {
            let isUnread = !hasRequestEnded
            end()
            // Closed at once, a client that still sends would lose the response.
            guard isUnread else { return context.close(promise: nil) }
            context.close(mode: .output, promise: nil)
            return schedule(limits.lingeringMsMax)
        }
        (phase, head) = (.idle, nil)
        schedule(limits.idleMsMax)
        takeParts()
    }

    private func reportTaken() {
        let report = whenTaken
        whenTaken = nil
        report?()
    }

    // MARK: The end

    /// The gateway stops: what is under way is completed, streams end.
    func leave() {
        (isLeaving, mayGoOn) = (true, false)
        if phase == .idle { context?.close(promise: nil) } else { exchange?.gatewayStops() }
    }

    private func end() {
        guard phase != .ended else { return }
        phase = .ended
        deadline = nil
        timer?.task.cancel()
        timer = nil
        requestEnded()
        let exchange = exchange
        self.exchange = nil
        if !isTaking { parts = [] }
        exchange?.clientLeft()
        reportTaken()
    }

    /// The connection closes unless this is called again within so many milliseconds.
    private func schedule(_ milliseconds: Int) {
        guard let context else { return }
        let due = context.eventLoop.now + .milliseconds(Int64(milliseconds))
        deadline = due
        if let timer, timer.due <= due { return }
        timer?.task.cancel()
        setTimer(due, context)
    }

    private func setTimer(_ due: NIODeadline, _ context: ChannelHandlerContext) {
        let task = context.eventLoop.assumeIsolated().scheduleTask(deadline: due) { [weak self] in
            if let self { timeCame() }
        }
        timer = (due, task)
    }

    private func timeCame() {
        timer = nil
        guard let context, let due = deadline else { return }
        guard due <= context.eventLoop.now else { return setTimer(due, context) }
        guard phase == .handling, hasRequestEnded, let exchange else { return context.close(promise: nil) }
        deadline = nil
        exchange.timeCame()
    }
}

/// Reports to a connection that bytes have come, before they are a head.
final class HeadPulse: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private weak var connection: HTTPConnection?

    init(_ connection: HTTPConnection) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let count = connection?.requestCount
        context.fireChannelRead(data)
        if let count { connection?.bytesCame(after: count) }
    }
}

extension HTTPRequestHead {
    /// Whether a body may follow.
    fileprivate var hasBody: Bool {
        headers.contains(name: "transfer-encoding") || headers.first(name: "content-length").map { $0 != "0" } == true
    }

    /// The path, still encoded, without the query.
    var path: Substring { Substring(uri.utf8.prefix { $0 != UInt8(ascii: "?") }) }
}
