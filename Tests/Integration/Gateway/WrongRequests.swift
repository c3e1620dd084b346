import HatoModel
import HatoTesting
import Testing

/// Requests whose heads the built gateway refuses: each has a text that says why.
@Suite(.timeLimit(.minutes(10)))
struct WrongRequests {
    private static let rules: JSONValue = ["rules": [".read": true, ".write": true]]

    private static func response(_ stack: GatewayStack, _ lines: [String]) throws -> HTTPResponseText {
        let socket = try PlainSocket(stack.gateway.address)
        try socket.send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8))
        return try HTTPResponseText(next: socket)
    }

    private static let heads: [(lines: [String], status: Int)] = [
        (["GET /a.json HTTP/1.1"], 400), (["GET /a.json HTTP/1.1", "Host: a", "Host: a"], 400),
        (["GET /a.json HTTP/1.1", "Host: a b"], 400), (["GET /a.json HTTP/1.1", "Host: a\"<>"], 400),
        (["GET /a.json HTTP/1.1", "Host: a@b"], 400),
        (["GET /.ws?v=5 HTTP/1.1", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"], 400),
        (["GET /a.json HTTP/1.0"], 200), (["GET /a.json HTTP/1.1", "Host:"], 200), (["GET /healthz HTTP/1.1"], 200),
        (["GET /a.json HTTP/1.1", "Host: [::1]:7700"], 200), (["GET /a.json HTTP/1.1", "hOST: LOCALHOST. "], 200),
        (["PUT /a.json HTTP/1.1", "Host: a", "Transfer-Encoding: gzip, chunked"], 501),
        (["PUT /a.json HTTP/1.1", "Host: a", "Expect: foo", "Content-Length: 1"], 417),
        (["FOO /a.json HTTP/1.1", "Host: a"], 405), (["TRACE /a.json HTTP/1.1", "Host: a"], 405),
        (["GET /\u{3042}.json HTTP/1.1", "Host: a"], 400), (["GET /a.json HTTP/1.1", "Host: a", "No name"], 400),
        (["GET /a.json HTTP/1.1", "Host: a", "X: " + String(repeating: "x", count: 40_000)], 431),
    ]

    @Test func headsThatAreWrongHaveAStatusAndAText() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            for row in Self.heads {
                let response = try Self.response(stack, row.lines)
                #expect(response.status == row.status, "\(row.lines): \(response)")
                #expect(!response.body.isEmpty, "\(row.lines): \(response)")
                #expect(response.headers["access-control-allow-origin"] == "*", "\(row.lines): \(response)")
            }
        }
    }

    /// What is no HTTP has no Origin: where only some pages may call, none reads the response.
    @Test func textsOfWhatIsNoHTTPAreForNoPageWhereOnlySomeMayCall() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--origins", "https://chat.example.com"]) { stack in
            let response = try Self.response(stack, ["FOO / HTTP/1.1", "Host: a", "Origin: https://evil.example.com"])
            #expect(response.status == 405 && response.headers["access-control-allow-origin"] == nil)
        }
    }

    /// The length alone is enough: the body need not come.
    @Test func bodiesThatAreTooLongAreRefusedByTheirLength() async throws {
        let options = GatewayStack.Options(notifier: [])
        try await GatewayStack.run(rules: Self.rules, options) { stack in
            let rows: [(line: String, bytes: Int)] = [
                ("PUT /a.json", 1 << 30), ("POST /v1/accounts:signUp?key=k", 300_000),
                ("POST /v1/token?key=k", 300_000), ("POST /respond", 1 << 30), ("PUT /.settings/rules.json", 1 << 30),
            ]
            for row in rows {
                for expectation in [[], ["Expect: 100-continue"]] {
                    let lines = ["\(row.line) HTTP/1.1", "Host: a", "Content-Length: \(row.bytes)"] + expectation
                    let response = try Self.response(stack, lines)
                    #expect((400..<500).contains(response.status), "\(lines): \(response)")
                    #expect(response.headers["connection"] == "close")
                }
            }
            let socket = try PlainSocket(stack.gateway.address)
            let put = ["PUT /a.json HTTP/1.1", "Host: a", "Content-Length: 1", "Expect: 100-Continue", "", ""]
            try socket.send(Array(put.joined(separator: "\r\n").utf8))
            #expect(try HTTPResponseText(headOf: socket).status == 100)
            try socket.send(Array("5".utf8))
            #expect(try HTTPResponseText(next: socket).body == "5")
        }
    }
}
