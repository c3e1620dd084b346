import HatoFirebase
import NIOCore

/// A WebSocket of a client, whatever it carries.
protocol FramedSocket: AnyObject {
    /// Something has come, maybe a part of a long frame.
    ///
    /// - Parameter frameBytes: of the frame that is not complete, which the decoder holds.
    func heard(frameBytes: Int)
    /// Whether what comes is of any use.
    var takesFrames: Bool { get }
    /// The client was stopped, or may go on (`UntakenShares`).
    func outputChanged()
    /// Whether it leaves in its turn when the gateway stops, and works on before.
    var leavesInTurn: Bool { get }
    /// The gateway stops: the client shall come back, where another process may listen.
    func leave()
}

/// Reports to a socket that bytes have come, before they are frames.
final class SocketPulse: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private weak var socket: (any FramedSocket)?
    private var progress = FrameProgress()

    init(_ socket: any FramedSocket) { self.socket = socket }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // The decoder would keep the beginning of a frame: TLS delivers until its own end.
        guard socket?.takesFrames == true else { return }
        let bytes = unwrapInboundIn(data)
        progress.received(bytes.readableBytesUInt8Span)
        socket?.heard(frameBytes: progress.unfinishedBytes)
        context.fireChannelRead(data)
    }
}
