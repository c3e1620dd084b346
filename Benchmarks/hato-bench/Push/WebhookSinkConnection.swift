import NIOCore
import NIOHTTP1

/// One connection of a sink of webhooks: HTTP/1.1, kept open, each request with 204.
final class WebhookSinkConnection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let log: SinkLog
    private var body: [UInt8] = []

    init(_ log: SinkLog) { self.log = log }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head: body.removeAll(keepingCapacity: true)
        case .body(let buffer): body += buffer.readableBytesView
        case .end: end(context)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) { context.flush() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func end(_ context: ChannelHandlerContext) {
        log.received(body)
        guard let delay = log.delay else { return }
        guard delay > 0 else { return respond(context) }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: .microseconds(Int64(delay * 1_000))) {
            let (connection, context) = bound.value
            guard context.channel.isActive else { return }
            connection.respond(context)
            context.flush()
        }
    }

    private func respond(_ context: ChannelHandlerContext) {
        context.write(
            wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .noContent))), promise: nil)
        context.write(wrapOutboundOut(.end(nil)), promise: nil)
    }
}
