import NIOCore
import NIOHTTP1

/// One connection of a client, as long as it speaks HTTP: one request after the other, each handled by an exchange.
///
/// The handler in front of it (`HTTPServerPipelineHandler`) holds back requests that come before the response of the
/// former one. It bounds the times of heads, bodies and idleness.
final class HTTPConnection: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let loopState: LoopState
    private let address: String
    private let compression: ResponseCompression
    private var context: ChannelHandlerContext?
    private var exchange: (any HTTPExchange)?
    private var head: HTTPRequestHead?
    private var hasRequestEnded = false
    /// Whether a response has begun, or is complete.
    private var isResponding = false
    private var hasResponded = false
    private var mayGoOn = true
    private var timer: Scheduled<Void>?
    /// The gateway stops.
    private var isLeaving = false

    init(_ loopState: LoopState, from address: String, _ compression: ResponseCompression) {
        (self.loopState, self.address, self.compression) = (loopState, address, compression)
    }

    private var limits: GatewayLimits { loopState.configuration.limits }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        loopState.connections[ObjectIdentifier(self)] = self
        // The first head must be there in time.
        schedule(limits.headMsMax)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        loopState.connections[ObjectIdentifier(self)] = nil
        timer?.cancel()
        timer = nil
        self.context = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        exchange?.writabilityChanged(context.channel.isWritable)
        context.fireChannelWritabilityChanged()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // The client closed its side: nothing more is to be expected of it.
        if let event = event as? ChannelEvent, event == .inputClosed { context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): began(head)
        case .body(let part):
            if !hasRequestEnded { schedule(limits.bodyStallMs) }
            exchange?.received(part)
        case .end:
            hasRequestEnded = true
            timer?.cancel()
            exchange?.requestEnded()
            completeIfDone()
        }
    }

    private func began(_ head: HTTPRequestHead) {
        (self.head, hasRequestEnded, isResponding, hasResponded) = (head, false, false, false)
        mayGoOn = head.isKeepAlive && !isLeaving
        schedule(limits.bodyStallMs)
        exchange = loopState.router.exchange(for: head, from: address, self)
        loopState.metrics.requestBegan()
        if head.headers[canonicalForm: "expect"].contains(where: { $0.lowercased() == "100-continue" }), !hasResponded {
            context?.writeAndFlush(
                wrapOutboundOut(.head(.init(version: head.version, status: .continue))), promise: nil)
        }
    }

    // MARK: Responses

    /// Sends a whole response. A second one is not sent.
    func respond(_ response: HTTPResponse) {
        guard !isResponding, let context, let head else { return }
        isResponding = true
        var headers = response.headers
        let hasBody = response.status.mayHaveResponseBody
        if hasBody { headers.replaceOrAdd(name: "Content-Length", value: String(response.body.readableBytes)) }
        compression.hasBody = hasBody && !response.omitsBody
        setConnection(&headers, head)
        let first = HTTPResponseHead(version: head.version, status: response.status, headers: headers)
        context.write(wrapOutboundOut(.head(first)), promise: nil)
        if hasBody, !response.omitsBody, response.body.readableBytes > 0 {
            context.write(wrapOutboundOut(.body(.byteBuffer(response.body))), promise: nil)
        }
        finish(status: response.status)
    }

    /// Begins a response without an end.
    func begin(_ status: HTTPResponseStatus, _ headers: HTTPHeaders) {
        guard !isResponding, let context, let head else { return }
        isResponding = true
        mayGoOn = false
        var headers = headers
        if head.version.minor == 0 { headers.replaceOrAdd(name: "Connection", value: "close") }
        context.writeAndFlush(
            wrapOutboundOut(.head(HTTPResponseHead(version: head.version, status: status, headers: headers))),
            promise: nil)
    }

    /// Sends a part of the body of a response that `begin` began.
    func send(_ bytes: ByteBuffer) {
        guard isResponding, !hasResponded else { return }
        context?.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
    }

    /// Ends a response that `begin` began, and closes.
    func finish() {
        guard isResponding, !hasResponded else { return }
        finish(status: .ok)
    }

    private func finish(status: HTTPResponseStatus) {
        hasResponded = true
        loopState.metrics.responded(status.code)
        context?.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        completeIfDone()
    }

    private func setConnection(_ headers: inout HTTPHeaders, _ head: HTTPRequestHead) {
        // A body that the client goes on sending would be read for nothing.
        if !hasRequestEnded, head.hasBody { mayGoOn = false }
        if !mayGoOn {
            headers.replaceOrAdd(name: "Connection", value: "close")
        } else if head.version.minor == 0 {
            headers.replaceOrAdd(name: "Connection", value: "keep-alive")
        }
    }

    private func completeIfDone() {
        guard hasResponded, let context else { return }
        guard mayGoOn else {
            exchange = nil
            return context.close(promise: nil)
        }
        guard hasRequestEnded else { return }
        (exchange, head) = (nil, nil)
        schedule(limits.idleMsMax)
    }

    /// The gateway stops: closes at once when nothing is under way, else behind the response.
    func leave() {
        isLeaving = true
        mayGoOn = false
        if exchange == nil { context?.close(promise: nil) }
    }

    private func end() {
        timer?.cancel()
        let exchange = exchange
        self.exchange = nil
        exchange?.clientLeft()
    }

    /// The connection closes unless this is called again, or the request is complete, within so many milliseconds.
    private func schedule(_ milliseconds: Int) {
        timer?.cancel()
        guard let context else { return }
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(Int64(milliseconds))) { [weak self] in
            self?.context?.close(promise: nil)
        }
    }
}

extension HTTPRequestHead {
    /// Whether a body may follow.
    fileprivate var hasBody: Bool {
        headers.contains(name: "transfer-encoding") || headers.first(name: "content-length").map { $0 != "0" } == true
    }

    /// The path, still encoded, without the query.
    var path: Substring { uri.prefix { $0 != "?" } }
}
