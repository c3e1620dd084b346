public import HatoModel
public import HatoRPC
import NIOCore
import NIOHTTP1
import NIOPosix

/// Asks a running gateway for its health.
public enum GatewayProbe {
    /// The health of the gateway at this address, as `GET /healthz` returns it:
    /// `{"service":"gateway","version":"0.1.0","status":"ready","services":{"messages":"ready"}}`.
    ///
    /// - Throws: `RPCError` (unavailable) when it does not respond in time, or with something else; `TLSFileError` for
    ///   files of TLS.
    public static func health(of gateway: RPCClientConfiguration) async throws -> JSONValue {
        let tls = try gateway.tls.map { try ClientTLS($0, host: gateway.host) }
        let (loop, limit) = (MultiThreadedEventLoopGroup.singleton.next(), TimeAmount(gateway.timeout))
        let response = loop.makePromise(of: JSONValue.self)
        let connection = ClientBootstrap(group: loop)
            .connectTimeout(limit)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if let tls { try pipeline.addHandler(tls.handler()) }
                    try pipeline.addHTTPClientHandlers()
                    try pipeline.addHandler(ProbeHandler(gateway.host, response))
                }
            }
            .connect(host: gateway.host, port: gateway.port)
        connection.whenFailure { response.fail($0) }
        let timer = loop.scheduleTask(in: limit) { response.fail(ChannelError.connectTimeout(limit)) }
        defer {
            timer.cancel()
            connection.whenSuccess { $0.close(promise: nil) }
        }
        do { return try await response.futureResult.get() } catch let error as RPCError { throw error } catch {
            throw RPCError.unavailable(
                reason: "connection_failed",
                "cannot reach \(gateway.host):\(gateway.port): \(ConnectionProblem.words(error))")
        }
    }
}

/// Sends the request, and collects the response.
private final class ProbeHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private static let bytesMax = 64 << 10
    private let host: String
    private let response: EventLoopPromise<JSONValue>
    private var body: [UInt8] = []

    init(_ host: String, _ response: EventLoopPromise<JSONValue>) { (self.host, self.response) = (host, response) }

    func channelActive(context: ChannelHandlerContext) {
        let head = HTTPRequestHead(
            version: .http1_1, method: .GET, uri: "/healthz", headers: ["Host": host, "Connection": "close"])
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head: break
        case .body(let part):
            guard body.count + part.readableBytes <= Self.bytesMax else { return fail() }
            body.append(contentsOf: part.readableBytesView)
        case .end:
            guard let value = try? JSONParser.parse(body), value["status"]?.string != nil else { return fail() }
            response.succeed(value)
        }
    }

    func channelInactive(context: ChannelHandlerContext) { fail() }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { response.fail(error) }

    private func fail() {
        response.fail(RPCError.unavailable(reason: "no_health", "what listens there is no gateway of Hato"))
    }
}
