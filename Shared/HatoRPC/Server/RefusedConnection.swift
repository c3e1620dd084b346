import HatoModel
import NIOCore
import Synchronization

/// Sends a peer that is not admitted the reason, and closes its connection.
///
/// It waits a moment for what the peer has sent already: a socket that closes over unread bytes resets the connection,
/// and the peer loses the line. So many refused connections wait at a time as `lingeringMax`; the others close at once.
final class RefusedConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    static let lingeringMax = 64
    static let linger = TimeAmount.milliseconds(100)

    private static let lingering = Atomic(0)

    private let error: RPCError
    private var isLingering = false

    init(_ error: RPCError) { self.error = error }

    func channelActive(context: ChannelHandlerContext) {
        let line = Response.bytes(id: "null", error: error) + [UInt8(ascii: "\n")]
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: line)), promise: nil)
        guard Self.lingering.wrappingAdd(1, ordering: .relaxed).oldValue < Self.lingeringMax else {
            Self.lingering.wrappingSubtract(1, ordering: .relaxed)
            return context.close(promise: nil)
        }
        isLingering = true
        context.close(mode: .output, promise: nil)
        let channel = context.channel
        context.eventLoop.scheduleTask(in: Self.linger) { channel.close(promise: nil) }
    }

    /// What the peer sends is thrown away.
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { context.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func channelInactive(context: ChannelHandlerContext) {
        if isLingering { Self.lingering.wrappingSubtract(1, ordering: .relaxed) }
        isLingering = false
        context.fireChannelInactive()
    }
}
