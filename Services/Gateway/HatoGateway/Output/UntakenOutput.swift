import HatoRPC
import NIOCore

/// Counts what the peer of one connection has not taken, whatever the connection carries: the handler next to the
/// socket, below TLS.
///
/// It looks after each flush and when the channel is writable again; `OutputWatch` makes it look between. A buffer is
/// held until the socket has taken its last byte: one that is partly taken counts whole.
final class UntakenOutput: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let watch: OutputWatch
    /// Names the connection on its event loop.
    let number: Int
    /// The IP address of the client.
    private(set) var address: String
    /// The client for which it counts.
    private(set) var client: ClientAddress
    private var context: ChannelHandlerContext?
    /// Held.
    private var bytes = 0
    /// Of these, what the socket has not taken.
    private(set) var waitingBytes = 0
    private var written = WrittenBuffers()

    /// - Parameter address: the IP address of the client.
    init(_ watch: OutputWatch, from address: String) {
        (self.watch, self.address) = (watch, address)
        number = watch.newNumber()
        client = ClientAddress(address)
    }

    /// Its next bytes are for the client at this address: a proxy speaks for many.
    func belongs(to address: String) {
        guard address != self.address else { return }
        set(0)
        self.address = address
        client = ClientAddress(address)
        look()
    }

    /// Whether nothing more is to be read for the client from services.
    var isStopped: Bool { watch.isStopped(client) }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        set(0)
        self.context = nil
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let bytes = unwrapOutboundIn(data)
        written.append(bytes.readableBytes)
        context.write(wrapOutboundOut(waitingBytes > 0 ? compact(bytes, context) : bytes), promise: promise)
    }

    /// What is to wait, without a storage of which it is a small part: that of TLS, or of what was read.
    private func compact(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) -> ByteBuffer {
        let count = bytes.readableBytes
        guard count < Self.copiedBytesMax, bytes.storageCapacity > 4 * count else { return bytes }
        var copy = context.channel.allocator.buffer(capacity: count)
        copy.writeImmutableBuffer(bytes)
        return copy
    }

    /// Bytes of a buffer that may be copied.
    private static let copiedBytesMax = 16 << 10

    func flush(context: ChannelHandlerContext) {
        context.flush()
        look()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        look()
        context.fireChannelWritabilityChanged()
    }

    func channelInactive(context: ChannelHandlerContext) {
        set(0)
        context.fireChannelInactive()
    }

    /// Reads how many bytes wait for the socket.
    func look() {
        guard let channel = context?.channel else { return }
        waitingBytes = (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
        set(waitingBytes + written.partlyTaken(waiting: waitingBytes))
    }

    /// What the peer has taken, counted from any number; only differences between two looks matter, of a connection
    /// that gets nothing between them.
    var takenBytes: Int { context.flatMap { AcknowledgedBytes.of($0.channel) } ?? -waitingBytes }

    /// Closes the connection at once, also one that speaks TLS.
    func close() { context?.close(promise: nil) }

    private func set(_ bytes: Int) {
        guard bytes != self.bytes else { return }
        self.bytes = bytes
        watch.changed(self, to: bytes)
    }
}
