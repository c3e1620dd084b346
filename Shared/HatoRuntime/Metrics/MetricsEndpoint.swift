/// Serves `GET /metrics` over plain HTTP for scrapers.
final class MetricsEndpoint: Sendable {
    private let listener: HTTPListener

    var port: Int { listener.port }

    /// Starts listening. Throws `RPCServerError` when the address is in use or does not belong to this machine.
    init(host: String, port: Int, text: @escaping @Sendable () async -> String) async throws {
        var limits = HTTPLimits()
        limits.bodyBytesMax = 64 << 10
        listener = try await HTTPListener(host: host, port: port, limits: limits) { request in
            let isFound = request.method == "GET" && request.target.prefix { $0 != "?" } == "/metrics"
            let body = isFound ? await text() : "GET /metrics\n"
            return HTTPResponse(
                status: isFound ? 200 : 404,
                headers: [("content-type", "text/plain; version=0.0.4; charset=utf-8")], body: Array(body.utf8))
        }
    }

    func stop() async { await listener.stop() }
}
