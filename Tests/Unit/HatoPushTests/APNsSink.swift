import HatoModel
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import NIOSSL
import Synchronization
import TestCertificates

/// A server that speaks as Apple's push service does, HTTP/2 over TLS, and responds what the test says.
final class APNsSink: Sendable {
    struct Received: Sendable, Hashable {
        /// Connections are counted from 1.
        var connection: Int
        var path: String
        var headers: [String: String]
        var body: [UInt8]

        var token: String { headers["authorization"].map { String($0.dropFirst("bearer ".count)) } ?? "" }
    }

    enum Answer: Sendable {
        case response(Int, reason: String? = nil, headers: [String: String] = [:])
        /// None, and the stream stays open.
        case silence
        /// RST_STREAM.
        case reset
        /// A body without end.
        case endless(Int)
        /// GOAWAY, after which this request and all later ones get no response.
        case goAway
        /// A response, after which so many streams are allowed.
        case settings(Int, status: Int)
    }

    struct State {
        var received: [Received] = []
        var connections = 0
        var open = 0
        var inFlight = 0
        var mostInFlight = 0
    }

    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let channel: any NIOCore.Channel
    private let log: Log
    var port: Int { channel.localAddress?.port ?? 0 }
    var received: [Received] { log.state.withLock(\.received) }
    /// Connections so far.
    var connections: Int { log.state.withLock(\.connections) }
    /// Connections that are not closed.
    var open: Int { log.state.withLock(\.open) }
    /// Streams without a response.
    var inFlight: Int { log.state.withLock(\.inFlight) }
    var mostInFlight: Int { log.state.withLock(\.mostInFlight) }

    final class Log: Sendable {
        let state = Mutex(State())
    }

    /// - Parameters:
    ///   - streamsMax: what the first SETTINGS allow.
    ///   - answer: gets the request and its number, from 1.
    init(
        _ files: TestCertificates, streamsMax: Int = 1_000,
        answer: @escaping @Sendable (Received, Int) async -> Answer
    ) async throws {
        let certificates = try NIOSSLCertificate.fromPEMFile(files.path("server.pem"))
        let key = try NIOSSLPrivateKey(file: files.path("server.key"), format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: certificates.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.applicationProtocols = ["h2"]
        let context = try NIOSSLContext(configuration: configuration)
        let log = Log()
        self.log = log
        channel = try await ServerBootstrap(group: group)
            .childChannelInitializer { connection in
                let number = log.state.withLock { state in
                    state.connections += 1
                    state.open += 1
                    return state.connections
                }
                connection.closeFuture.whenComplete { _ in log.state.withLock { $0.open -= 1 } }
                return connection.eventLoop.makeCompletedFuture {
                    let pipeline = connection.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLServerHandler(context: context))
                    var options = NIOHTTP2Handler.ConnectionConfiguration()
                    options.initialSettings = [HTTP2Setting(parameter: .maxConcurrentStreams, value: streamsMax)]
                    _ = try pipeline.configureHTTP2Pipeline(
                        mode: .server, connectionConfiguration: options, streamConfiguration: .init()
                    ) { stream in
                        stream.eventLoop.makeCompletedFuture {
                            try stream.pipeline.syncOperations.addHandler(
                                Stream(connection, number: number, log: log, answer: answer))
                        }
                    }
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    func stop() async {
        try? await channel.close()
        try? await group.shutdownGracefully()
    }

    private final class Stream: ChannelInboundHandler {
        typealias InboundIn = HTTP2Frame.FramePayload

        private let connection: any NIOCore.Channel
        private let log: Log
        private let answer: @Sendable (Received, Int) async -> Answer
        private var request: Received
        private var isCounted = false

        init(
            _ connection: any NIOCore.Channel, number: Int, log: Log,
            answer: @escaping @Sendable (Received, Int) async -> Answer
        ) {
            self.connection = connection
            self.log = log
            self.answer = answer
            request = Received(connection: number, path: "", headers: [:], body: [])
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var isLast = false
            switch unwrapInboundIn(data) {
            case .headers(let frame):
                for (name, value, _) in frame.headers { request.headers[name] = value }
                request.path = request.headers[":path"] ?? ""
                isLast = frame.endStream
            case .data(let frame):
                if case .byteBuffer(let buffer) = frame.data { request.body += buffer.readableBytesView }
                isLast = frame.endStream
            default: break
            }
            guard isLast else { return }
            let number = log.state.withLock { [request] state in
                state.received.append(request)
                state.inFlight += 1
                state.mostInFlight = max(state.mostInFlight, state.inFlight)
                return state.received.count
            }
            isCounted = true
            let (stream, connection, log) = (context.channel, connection, log)
            stream.closeFuture.whenComplete { _ in log.state.withLock { $0.inFlight -= 1 } }
            Task { [request, answer] in
                APNsSink.write(await answer(request, number), to: stream, connection, request)
            }
        }

        /// The client ends streams by itself.
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    private static func write(
        _ answer: Answer, to stream: any NIOCore.Channel, _ connection: any NIOCore.Channel, _ request: Received
    ) {
        switch answer {
        case .silence: break
        case .response(let status, let reason, let headers):
            var fields = headers
            fields["apns-id"] = request.headers["apns-id"]
            let body = reason.map { JSONValue.object(["reason": .string($0)]).encoded }
            stream.write(Self.headers(status, fields, isLast: body == nil), promise: nil)
            if let body { stream.write(data(body, isLast: true), promise: nil) }
            stream.flush()
        case .reset: stream.writeAndFlush(HTTP2Frame.FramePayload.rstStream(.internalError), promise: nil)
        case .endless(let status):
            stream.writeAndFlush(Self.headers(status, [:], isLast: false), promise: nil)
            writeOn(stream)
        case .goAway:
            let body = ByteBuffer(string: #"{"reason":"Shutdown"}"#)
            connection.writeAndFlush(
                HTTP2Frame(
                    streamID: .rootStream,
                    payload: .goAway(lastStreamID: .rootStream, errorCode: .noError, opaqueData: body)), promise: nil)
        case .settings(let count, let status):
            let setting = HTTP2Setting(parameter: .maxConcurrentStreams, value: count)
            connection.writeAndFlush(
                HTTP2Frame(streamID: .rootStream, payload: .settings(.settings([setting]))), promise: nil)
            stream.writeAndFlush(Self.headers(status, [:], isLast: true), promise: nil)
        }
    }

    private static func headers(
        _ status: Int, _ fields: [String: String], isLast: Bool
    ) -> HTTP2Frame.FramePayload {
        var headers = HPACKHeaders([(":status", String(status))])
        for (name, value) in fields { headers.add(name: name, value: value) }
        return .headers(.init(headers: headers, endStream: isLast))
    }

    private static func data(_ bytes: [UInt8], isLast: Bool) -> HTTP2Frame.FramePayload {
        .data(.init(data: .byteBuffer(ByteBuffer(bytes: bytes)), endStream: isLast))
    }

    /// Until the client ends the stream.
    private static func writeOn(_ stream: any NIOCore.Channel) {
        stream.writeAndFlush(data([UInt8](repeating: UInt8(ascii: "x"), count: 4_096), isLast: false))
            .whenSuccess { writeOn(stream) }
    }
}
