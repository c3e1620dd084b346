import NIOCore
import NIOHPACK
import NIOHTTP2

/// One connection of a sink of APNs: takes frames as they come, without a channel for each stream, so that the sink
/// takes little time from what is measured.
///
/// As Apple's service it allows one stream until the first response, and then many.
final class APNsSinkConnection: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    private struct Request {
        var id: String?
        var body: [UInt8] = []
    }

    static let streamsMax = 1_000
    /// A connection without end: no peer of a benchmark is refused for what it resets.
    private static let framesMax = 1_000_000
    /// Bytes of bodies after which the peer may send as many more.
    private static let windowStep = 16 << 10

    private let log: SinkLog
    private var requests: [HTTP2StreamID: Request] = [:]
    private var received = 0
    private var allowsMany = false

    init(_ log: SinkLog) { self.log = log }

    static var configuration: NIOHTTP2Handler.ConnectionConfiguration {
        var configuration = NIOHTTP2Handler.ConnectionConfiguration()
        configuration.initialSettings = [HTTP2Setting(parameter: .maxConcurrentStreams, value: 1)]
        configuration.controlFrameRateLimit.maximumCount = framesMax
        return configuration
    }

    static var streams: NIOHTTP2Handler.StreamConfiguration {
        var streams = NIOHTTP2Handler.StreamConfiguration()
        streams.streamResetFrameRateLimit.maximumCount = framesMax
        streams.streamErrorRateLimit.maximumCount = framesMax
        return streams
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        switch frame.payload {
        case .headers(let headers):
            requests[frame.streamID] = Request(id: headers.headers.first(name: "apns-id"))
            if headers.endStream { end(frame.streamID, context) }
        case .data(let data):
            if case .byteBuffer(let buffer) = data.data {
                requests[frame.streamID]?.body += buffer.readableBytesView
                widen(by: buffer.readableBytes, context)
            }
            if data.endStream { end(frame.streamID, context) }
        case .rstStream: requests[frame.streamID] = nil
        default: break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) { context.flush() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A stream that its client has reset meanwhile ends no other.
        if error is NIOHTTP2Errors.StreamError { return }
        context.close(promise: nil)
    }

    private func widen(by bytes: Int, _ context: ChannelHandlerContext) {
        received += bytes
        guard received >= Self.windowStep else { return }
        write(.windowUpdate(windowSizeIncrement: received), to: .rootStream, context)
        received = 0
    }

    private func end(_ stream: HTTP2StreamID, _ context: ChannelHandlerContext) {
        guard let request = requests[stream] else { return }
        log.received(request.body)
        guard let delay = log.delay else { return }
        guard delay > 0 else { return respond(stream, context) }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: .microseconds(Int64(delay * 1_000))) {
            let (connection, context) = bound.value
            guard context.channel.isActive else { return }
            connection.respond(stream, context)
            context.flush()
        }
    }

    private func respond(_ stream: HTTP2StreamID, _ context: ChannelHandlerContext) {
        guard let request = requests.removeValue(forKey: stream) else { return }
        let headers = HPACKHeaders([
            (":status", "200"), ("apns-id", request.id ?? "00000000-0000-0000-0000-000000000000"),
        ])
        write(.headers(.init(headers: headers, endStream: true)), to: stream, context)
        guard !allowsMany else { return }
        allowsMany = true
        let setting = HTTP2Setting(parameter: .maxConcurrentStreams, value: Self.streamsMax)
        write(.settings(.settings([setting])), to: .rootStream, context)
    }

    private func write(_ payload: HTTP2Frame.FramePayload, to stream: HTTP2StreamID, _ context: ChannelHandlerContext) {
        context.write(wrapOutboundOut(HTTP2Frame(streamID: stream, payload: payload)), promise: nil)
    }
}
