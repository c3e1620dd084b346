import HatoModel
import HatoTesting
import Testing

/// What clients of one address, and pages of one origin, get of the built gateway.
@Suite(.timeLimit(.minutes(10)))
struct GatewayClients {
    private static let rules: JSONValue = ["rules": [".read": true, ".write": true]]
    private static let behindProxy = ["--trusted-proxies", "127.0.0.1"]

    private static func forwarded(_ addresses: String) -> [String] { ["X-Forwarded-For: \(addresses)"] }

    @Test func requestsOfOneAddressAreBounded() async throws {
        let arguments = Self.behindProxy + ["--requests-per-address-second-max", "1"]
        try await GatewayStack.run(rules: Self.rules, arguments) { stack in
            let socket = try PlainSocket(stack.gateway.address)
            func response(_ addresses: String) throws -> HTTPResponseText {
                try HTTPResponseText.of("GET /a.json", Self.forwarded(addresses), on: socket)
            }
            for _ in 0..<10 { #expect(try response("203.0.113.7").status == 200) }
            var refused: HTTPResponseText?
            // Each second brings one more.
            for number in 0..<10_000 where refused == nil {
                // The address that a client writes itself does not count.
                let response = try response("198.51.100.\(number % 256), 203.0.113.7")
                if response.status != 200 { refused = response }
            }
            #expect(refused?.status == 429 && refused?.headers["retry-after"] == "1")
            #expect(refused?.headers["content-type"]?.hasPrefix("text/plain") == true)
            #expect(refused?.headers["access-control-allow-origin"] == "*")
            #expect(try response("203.0.113.8").status == 200)
            // Upgrades are requests, too.
            var status = 101
            for _ in 0..<10_000 where status == 101 {
                let opening = try FirebaseSocket.opening(stack, Self.forwarded("203.0.113.9"))
                status = opening.response.status
            }
            #expect(status == 429)
        }
    }

    /// SDKs keep their user, and those for servers try again.
    @Test func requestsOfAccountsBeyondTheLimitAreAnOutage() async throws {
        let arguments = Self.behindProxy + ["--requests-per-address-second-max", "1"]
        try await AccountsStack.run(arguments) { stack in
            let headers = Self.forwarded("203.0.113.7") + ["Origin: https://chat.example.com"]
            func firstRefused(_ request: String) throws -> HTTPResponseText? {
                // A refusal closes the connection: a body may follow.
                let client = try stack.client()
                for _ in 0..<10_000 {
                    let response = try client.send(request, [:], headers)
                    if response.body.hasPrefix("There are too many requests") { return response }
                }
                return nil
            }
            for path in ["/v1/accounts:lookup?key=k", "/www.googleapis.com/v1/token?key=k"] {
                let refused = try firstRefused("POST \(path)")
                #expect(refused?.status == 503 && refused?.headers["retry-after"] == "1", "\(path)")
                #expect(refused?.headers["content-type"] == "text/plain; charset=utf-8", "\(path)")
                #expect(refused?.headers["access-control-allow-origin"] == "https://chat.example.com", "\(path)")
            }
            let other = try firstRefused("GET /a.json")
            #expect(other?.status == 429)
        }
    }

    @Test func withoutTrustedProxiesTheSocketDecides() async throws {
        let arguments = ["--requests-per-address-second-max", "1", "--connections-per-address-max", "1"]
        try await GatewayStack.run(rules: Self.rules, arguments) { stack in
            // Clients on the same machine are not counted, and the header is that of the client.
            let socket = try PlainSocket(stack.gateway.address)
            for _ in 0..<60 {
                #expect(try HTTPResponseText.of("GET /a.json", Self.forwarded("203.0.113.7"), on: socket).status == 200)
            }
            // The log says so, once.
            let notices = stack.gateway.log.split(separator: "\n").filter { $0.contains("not in trusted-proxies") }
            #expect(notices.count == 1 && notices.first?.contains("peer=127.0.0.1") == true)
            #expect(!stack.gateway.log.contains("203.0.113.7"))
        }
    }

    @Test func connectionsOfThisMachineAreNotCounted() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--connections-per-address-max", "1"]) { stack in
            let sockets = try (0..<40).map { _ in try PlainSocket(stack.gateway.address) }
            for socket in sockets { #expect(try HTTPResponseText.of("GET /a.json", on: socket).status == 200) }
            #expect(!stack.gateway.log.contains("connections of an address are refused"))
        }
    }

    @Test func behindAProxyTheRequestsUnderWayOfAnAddressAreBounded() async throws {
        let arguments = Self.behindProxy + ["--connections-per-address-max", "2"]
        try await GatewayStack.run(rules: Self.rules, arguments) { stack in
            let (client, other) = (Self.forwarded("2001:db8::1"), Self.forwarded("2001:db8:0:1::1"))
            let stream = try PlainSocket(stack.gateway.address)
            let head = ["GET /a.json HTTP/1.1", "Host: localhost", "Accept: text/event-stream"] + client
            try stream.send(Array((head.joined(separator: "\r\n") + "\r\n\r\n").utf8))
            #expect(try HTTPResponseText(headOf: stream).status == 200)
            let opening = try FirebaseSocket.opening(stack, client)
            #expect(opening.response.status == 101)
            // Another address of the same /64.
            let same = Self.forwarded("2001:db8::ffff")
            let socket = try PlainSocket(stack.gateway.address)
            #expect(try HTTPResponseText.of("GET /a.json", same, on: socket).status == 429)
            #expect(try FirebaseSocket.opening(stack, same).response.status == 429)
            for _ in 0..<20 { #expect(try HTTPResponseText.of("GET /a.json", other, on: socket).status == 200) }
            opening.socket.end()
            var status = 429
            for _ in 0..<10_000 where status == 429 {
                status = try HTTPResponseText.of("GET /a.json", same, on: socket).status
            }
            #expect(status == 200)
        }
    }

    @Test func oneAddressCannotHoldTheWholeBudgetOfBodies() async throws {
        let arguments =
            Self.behindProxy + ["--held-bytes-per-address-max", "1048576", "--event-loops", "1", "--metrics-port", "0"]
        try await GatewayStack.run(rules: Self.rules, arguments) { stack in
            let body = "\"\(String(repeating: "x", count: 700_000))\""
            func head(_ address: String) -> [UInt8] {
                let lines = [
                    "PUT /a.json?print=silent HTTP/1.1", "Host: localhost", "Content-Length: \(body.utf8.count)",
                ]
                return Array(((lines + Self.forwarded(address)).joined(separator: "\r\n") + "\r\n\r\n").utf8)
            }
            let (slow, second, other) = (
                try PlainSocket(stack.gateway.address), try PlainSocket(stack.gateway.address),
                try PlainSocket(stack.gateway.address)
            )
            try slow.send(head("203.0.113.7") + body.utf8.dropLast())
            try stack.waitForMetrics("the body is held") { page in
                page.contains("\nhato_gateway_held_bytes \(body.utf8.count - 1)\n")
            }
            let refused = try PlainSocket(stack.gateway.address)
            try refused.send(head("203.0.113.7") + body.utf8.prefix(400_000))
            #expect(try HTTPResponseText(headOf: refused).status == 503)
            try other.send(head("203.0.113.8") + body.utf8)
            #expect(try HTTPResponseText(headOf: other).status == 204)
            try slow.send(Array(body.utf8.suffix(1)))
            #expect(try HTTPResponseText(headOf: slow).status == 204)
            try second.send(head("203.0.113.7") + body.utf8)
            #expect(try HTTPResponseText(headOf: second).status == 204)
        }
    }

    /// A write that is refused for want of memory would come again for ever.
    @Test func theLargestWritesFitWithLittleMemory() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--memory-bytes", "\(64 << 20)"]) { stack in
            let text = String(repeating: "x", count: 7 << 20)
            let put = try HTTPResponseText.of(
                "PUT /a.json?print=silent", body: #"{"a":"\#(text)","b":"\#(text)"}"#,
                on: PlainSocket(stack.gateway.address))
            #expect(put.status == 204)
            let client = try FirebaseSocket(stack)
            _ = try client.message()
            try client.request(1, "p", ["p": "/b", "d": ["a": .string(text), "b": .string(text)]])
            #expect(try client.response(to: 1)?["s"] == "ok")
        }
    }

    @Test func onlyPagesOfAllowedOriginsMayCall() async throws {
        let arguments = ["--origins", "https://chat.example.com,http://localhost:3000", "--metrics-port", "0"]
        try await GatewayStack.run(rules: Self.rules, arguments) { stack in
            let socket = try PlainSocket(stack.gateway.address)
            func response(_ request: String, _ origin: String?) throws -> HTTPResponseText {
                try HTTPResponseText.of(request, origin.map { ["Origin: \($0)"] } ?? [], on: socket)
            }
            for request in ["GET /a.json", "OPTIONS /a.json"] {
                let allowed = try response(request, "https://chat.example.com")
                #expect((200..<300).contains(allowed.status))
                #expect(allowed.headers["access-control-allow-origin"] == "https://chat.example.com")
                #expect(allowed.headers["vary"] == "Origin")
                let foreign = try response(request, "https://evil.example")
                #expect(foreign.status == 403 && foreign.headers["access-control-allow-origin"] == nil)
                // No cache gives it to pages that may call.
                #expect(foreign.headers["vary"] == "Origin")
            }
            let plain = try response("GET /a.json", nil)
            #expect(plain.status == 200 && plain.headers["access-control-allow-origin"] == nil)
            #expect(try response("GET /a.json", "http://localhost").status == 200)
            try stack.waitForMetrics("both refusals are counted") {
                $0.contains("\nhato_gateway_refused_total{reason=\"origin\"} 2\n")
            }
            let origin = "Origin: https://evil.example"
            #expect(try FirebaseSocket.opening(stack, [origin]).response.status == 403)
            #expect(try FirebaseSocket.opening(stack, ["Origin: http://localhost:3000"]).response.status == 101)
            #expect(try FirebaseSocket.opening(stack).response.status == 101)
        }
    }
}
