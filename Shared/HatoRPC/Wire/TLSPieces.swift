package import NIOCore

/// Gives TLS what is written in pieces, each with a flush of its own: the handler above it.
///
/// NIO's TLS encrypts all of one flush into one buffer, and keeps one as large for the life of the connection, which
/// counts nowhere.
package final class TLSPieces: ChannelOutboundHandler {
    package typealias OutboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// Bytes of a piece: encrypted, it takes a little more, and less than 32 KiB.
    static let bytesMax = 31 << 10

    private var unflushed = 0

    package init() {}

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        var bytes = unwrapOutboundIn(data)
        while bytes.readableBytes > Self.bytesMax - unflushed {
            if let piece = bytes.readSlice(length: Self.bytesMax - unflushed), piece.readableBytes > 0 {
                context.write(wrapOutboundOut(piece), promise: nil)
            }
            flush(context: context)
        }
        unflushed += bytes.readableBytes
        context.write(wrapOutboundOut(bytes), promise: promise)
    }

    package func flush(context: ChannelHandlerContext) {
        unflushed = 0
        context.flush()
    }
}
