import NIOCore
import NIOEmbedded
import Testing

@testable import HatoRPC

/// What TLS gets of large writes.
@Suite struct TLSPiecesTests {
    /// The bytes of each flush.
    private final class Flushes: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        var counts: [Int] = []
        private var count = 0

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            count += unwrapOutboundIn(data).readableBytes
            context.write(data, promise: promise)
        }

        func flush(context: ChannelHandlerContext) {
            counts.append(count)
            count = 0
            context.flush()
        }
    }

    @Test func noFlushHasMoreThanAPiece() throws {
        let (flushes, channel) = (Flushes(), EmbeddedChannel())
        try channel.pipeline.syncOperations.addHandlers(flushes, TLSPieces())
        let max = TLSPieces.bytesMax
        let sizes = [10, max - 10, 1, 3 * max, 0, 5]
        var taken = 0
        for (index, size) in sizes.enumerated() {
            let promise = channel.eventLoop.makePromise(of: Void.self)
            promise.futureResult.whenSuccess { taken += 1 }
            let bytes = ByteBuffer(repeating: UInt8(index), count: size)
            if index == sizes.count - 1 {
                channel.writeAndFlush(bytes, promise: promise)
            } else {
                channel.write(bytes, promise: promise)
            }
        }
        #expect(flushes.counts == [max, max, max, max, 6])
        #expect(taken == sizes.count)
        var written = ByteBuffer()
        while var piece = try channel.readOutbound(as: ByteBuffer.self) { written.writeBuffer(&piece) }
        let expected = sizes.enumerated().flatMap { [UInt8](repeating: UInt8($0.offset), count: $0.element) }
        #expect(Array(written.readableBytesView) == expected)
        _ = try? channel.finish()
    }
}
