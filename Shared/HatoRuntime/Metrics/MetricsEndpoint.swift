/// Answers `GET /metrics` over plain HTTP for scrapers.
final class MetricsEndpoint: Sendable {
    private let listener: HTTPListener

    var port: Int { listener.port }

    /// Starts listening. Throws `RPCServerError` when the address is taken or not ours.
    init(host: String, port: Int, text: @escaping @Sendable () -> String) async throws {
        var limits = HTTPLimits()
        limits.bodyBytesMax = 64 << 10
        listener = try await HTTPListener(host: host, port: port, limits: limits) { request in
            let isFound = request.method == "GET" && request.target.prefix { $0 != "?" } == "/metrics"
            return HTTPResponse(
                status: isFound ? 200 : 404,
                headers: [("content-type", "text/plain; version=0.0.4; charset=utf-8")],
                body: Array((isFound ? text() : "GET /metrics\n").utf8))
        }
    }

    func stop() async { await listener.stop() }
}
