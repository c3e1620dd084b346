import HatoModel
import HatoTesting
import Testing

/// Requests that ask for a WebSocket in a wrong way, or where there is none (RFC 6455 §4.2): each has a response.
@Suite(.timeLimit(.minutes(10)))
struct WrongUpgrades {
    private static let upgrade = ["Upgrade: websocket", "Connection: Upgrade"]
    private static let version = "Sec-WebSocket-Version: 13"
    private static let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="

    private static let rows: [(request: String, headers: [String], status: Int)] = [
        ("GET /.ws?v=5 HTTP/1.1", upgrade + [key, "Sec-WebSocket-Version: 8"], 426),
        ("GET /.ws?v=5 HTTP/1.1", upgrade + [key], 426),
        ("GET /.ws?v=5 HTTP/1.1", upgrade + [version], 400),
        ("GET /.ws?v=5 HTTP/1.1", upgrade + [key, key, version], 400),
        ("GET /.ws?v=5 HTTP/1.1", upgrade + ["Sec-WebSocket-Key: short", version], 400),
        ("GET /rpc/auth HTTP/1.1", upgrade + ["Sec-WebSocket-Key: \(key.suffix(24).dropLast(2))--", version], 400),
        ("GET /.ws?v=5 HTTP/1.0", upgrade + [key, version], 400),
        ("POST /.ws?v=5 HTTP/1.1", upgrade + [key, version, "Content-Length: 0"], 400),
        ("GET /.ws?v=5 HTTP/1.1", ["Upgrade: websocket", key, version], 400),
        ("GET /.ws?v=5 HTTP/1.1", ["Upgrade: h2c", "Connection: Upgrade"], 400), ("GET /.ws?v=5 HTTP/1.1", [], 400),
        ("GET /rpc/messages HTTP/1.1", upgrade + [key, "Sec-WebSocket-Version: 8"], 426),
        ("GET /rpc/nothing HTTP/1.1", upgrade + [key, version], 404),
        ("GET /a.json HTTP/1.1", upgrade + [key, version], 200),
        ("GET /healthz HTTP/1.1", upgrade + [key, version], 200),
        ("GET /nothing HTTP/1.1", upgrade + [key, version], 404),
    ]

    @Test func eachHasAResponse() async throws {
        try await GatewayStack.run(rules: ["rules": [".read": true, ".write": true]]) { stack in
            for row in Self.rows {
                let socket = try PlainSocket(stack.gateway.address)
                let lines = [row.request, "Host: localhost"] + row.headers
                try socket.send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8))
                let response = try HTTPResponseText(headOf: socket)
                #expect(response.status == row.status, "\(row)")
                if row.status == 426 { #expect(response.headers["sec-websocket-version"] == "13") }
            }
            // With a body.
            let socket = try PlainSocket(stack.gateway.address)
            let put = try HTTPResponseText.of("PUT /a.json", Self.upgrade + [Self.key], body: "5", on: socket)
            #expect(put.status == 200 && put.body == "5")
        }
    }
}
