import HatoModel
import NIOCore

/// The connection of a client on its event loop: cuts lines, hands them to the link, writes what the link gathered.
final class ClientHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let link: ClientLink
    private let lineBytesMax: Int
    private let nestingMax: Int
    private var lines = LineBuffer()
    /// The rest of the line that arrives is dropped: its call has failed, or no caller waits for it.
    private var isDroppingLine = false
    private var isReadHeld = false
    private var reason: String?
    /// The handshake has failed: nothing that was written has reached the server.
    private(set) var isWithoutTLS = false
    private(set) var context: ChannelHandlerContext?

    init(link: ClientLink, lineBytesMax: Int, nestingMax: Int) {
        self.link = link
        self.lineBytesMax = lineBytesMax
        self.nestingMax = nestingMax
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelInactive(context: ChannelHandlerContext) {
        link.connectionEnded(self, reason: reason)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        reason = ConnectionProblem.words(error)
        isWithoutTLS = ConnectionProblem.isFailedHandshake(error)
        context.close(promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var chunk = unwrapInboundIn(data)
        if isDroppingLine {
            guard let end = chunk.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) else { return }
            chunk.moveReaderIndex(to: end)
            isDroppingLine = false
        }
        lines.append(chunk)
        while let line = lines.nextLine() {
            do {
                link.received(try ServerLine.read(line.readableBytesUInt8Span, nestingMax: nestingMax))
            } catch {
                return fail("the server sent what is no JSON: \(error)")
            }
        }
        if lines.count > lineBytesMax {
            fail("the server sent a line over \(lineBytesMax) bytes")
        } else if link.refusesResponse(beginning: lines.unfinished) {
            lines.removeAll()
            isDroppingLine = true
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        link.flush()
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        if link.mayRead { context.read() } else { isReadHeld = true }
    }

    func readAgain() {
        guard isReadHeld, link.mayRead else { return }
        isReadHeld = false
        context?.read()
    }

    func write(_ bytes: ByteBuffer) { context?.writeAndFlush(wrapOutboundOut(bytes), promise: nil) }

    func close() { context?.close(promise: nil) }

    private func fail(_ reason: String) {
        self.reason = reason
        lines.removeAll()
        close()
    }
}
