import NIOCore
import NIOWebSocket

/// Responds to the pings of a WebSocket: with one pong at a time, and then to the newest ping (RFC 6455 §5.5.3).
///
/// A client that sends pings and does not read gets no more of them than that into the memory of the gateway.
final class SocketPongs: ChannelDuplexHandler {
    typealias InboundIn = WebSocketFrame
    typealias InboundOut = WebSocketFrame
    typealias OutboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    /// The socket has not taken the last pong.
    private var isWaiting = false
    /// The data of the newest ping since.
    private var next: ByteBuffer?
    private var needsFlush = false
    /// A close frame was sent; none may follow it.
    private var isClosed = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        if frame.opcode == .ping, frame.maskKey != nil { send(frame.unmaskedData, context) }
        context.fireChannelRead(data)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if needsFlush { flush(context) }
        context.fireChannelReadComplete()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if unwrapOutboundIn(data).opcode == .connectionClose { isClosed = true }
        context.write(data, promise: promise)
    }

    private func send(_ data: ByteBuffer, _ context: ChannelHandlerContext) {
        guard !isClosed else { return }
        guard !isWaiting else {
            next = data
            return
        }
        isWaiting = true
        needsFlush = true
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenSuccess { [weak self] in self?.wasTaken(context) }
        context.write(wrapOutboundOut(WebSocketFrame(fin: true, opcode: .pong, data: data)), promise: promise)
    }

    private func wasTaken(_ context: ChannelHandlerContext) {
        isWaiting = false
        guard let data = next else { return }
        next = nil
        send(data, context)
        flush(context)
    }

    private func flush(_ context: ChannelHandlerContext) {
        needsFlush = false
        context.flush()
    }
}
