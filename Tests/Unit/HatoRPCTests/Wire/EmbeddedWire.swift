import HatoModel
import NIOCore
import NIOEmbedded

@testable import HatoRPC

/// A wire in a channel whose socket is the test: it hands over bytes only when the wire reads, and takes as long as it
/// likes for what is written.
final class EmbeddedWire {
    let log = WireLog()
    let wire: RPCWire
    private let channel = EmbeddedChannel()
    private let socket = WireSocket()
    /// What the wire has not read yet.
    private var offered: [UInt8] = []

    /// - Parameter isConnected: whether the connection stands at once.
    init(isConnected: Bool = true, _ change: (inout RPCWireConfiguration) -> Void = { _ in }) throws {
        var configuration = RPCWireConfiguration(host: "127.0.0.1", port: 1)
        change(&configuration)
        wire = RPCWire(try RPCWireConnector(configuration), on: channel.embeddedEventLoop, log)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        if isConnected { try connect() }
    }

    func connect() throws {
        try channel.pipeline.syncOperations.addHandlers(socket, wire.line)
        channel.read()
        run()
    }

    var loop: any EventLoop { channel.embeddedEventLoop }
    var isOpen: Bool { channel.isActive }
    var unreadCount: Int { offered.count }
    /// Whether the wire waits for bytes.
    var isReading: Bool { socket.isAsked }

    /// The rest of this turn of the event loop, and those that follow.
    func run() { channel.embeddedEventLoop.run() }

    /// Hands over as much as the wire reads, `count` bytes at a time.
    func receive(_ bytes: [UInt8] = [], by count: Int = .max) throws {
        offered += bytes
        while !offered.isEmpty, channel.isActive, socket.isAsked {
            let count = min(offered.count, count)
            socket.isAsked = false
            try channel.writeInbound(ByteBuffer(bytes: offered[..<count]))
            offered.removeFirst(count)
            if !socket.isAsked { channel.read() }
        }
        run()
    }

    func receive(_ text: String) throws { try receive(Array(text.utf8)) }

    /// Hands over bytes although the wire does not read, as a socket does whose peer has closed it.
    func push(_ text: String) throws { try channel.writeInbound(ByteBuffer(string: text)) }

    /// The service closes the connection, after an error of it where there is one.
    func closeByPeer(_ error: (any Error)? = nil) {
        if let error { channel.pipeline.fireErrorCaught(error) }
        channel.close(promise: nil)
        run()
    }

    /// Whether the socket takes nothing.
    var isFull: Bool {
        get { socket.isFull }
        set {
            socket.isFull = newValue
            if !newValue { socket.release() }
            run()
        }
    }

    /// The writes since the last look.
    func written() throws -> [String] {
        var writes: [String] = []
        while let bytes = try channel.readOutbound(as: ByteBuffer.self) { writes.append(String(buffer: bytes)) }
        return writes
    }
}

private final class WireSocket: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    var isAsked = false
    var isFull = false
    private var waiting: [(NIOAny, EventLoopPromise<Void>?)] = []
    private var context: ChannelHandlerContext?

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func read(context: ChannelHandlerContext) { isAsked = true }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard isFull else { return context.write(data, promise: promise) }
        waiting.append((data, promise))
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        for (_, promise) in waiting { promise?.fail(ChannelError.ioOnClosedChannel) }
        waiting = []
        context.close(mode: mode, promise: promise)
    }

    func release() {
        let writes = waiting
        waiting = []
        for (data, promise) in writes { context?.writeAndFlush(data, promise: promise) }
    }
}
