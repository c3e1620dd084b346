import HatoModel
import HatoTesting
import Testing

/// The built gateway in front of clients that do not take what they get (`UntakenShares`).
@Suite(.timeLimit(.minutes(10)))
struct UntakenResponses {
    private static let rules: JSONValue = ["rules": [".read": true, ".write": true]]

    /// - Parameter stalledMsMax: of an address with much untaken.
    private static func limits(stalledMsMax: Int) -> [String] {
        [
            "--metrics-port", "0", "--untaken-bytes-per-address-max", "1048576", "--stalled-peer-ms-max",
            "\(stalledMsMax)", "--untaken-ms-max", "3600000",
        ]
    }

    /// Writes a value that no system's buffers take.
    private static func writeLargeValue(_ stack: GatewayStack) throws {
        let socket = try PlainSocket(stack.gateway.address)
        for key in ["a", "b"] {
            let text = "\"" + String(repeating: key, count: 7 << 20) + "\""
            let response = try HTTPResponseText.of("PUT /large/\(key).json?print=silent", body: text, on: socket)
            #expect(response.status == 204)
        }
    }

    private static func request(_ target: String, _ headers: String...) -> [UInt8] {
        Array((["GET \(target) HTTP/1.1", "Host: localhost"] + headers + ["", ""]).joined(separator: "\r\n").utf8)
    }

    /// Requests `target` until the response has this status.
    private static func wait(for status: Int, of target: String, _ stack: GatewayStack) throws -> HTTPResponseText {
        let socket = try PlainSocket(stack.gateway.address)
        let end = ContinuousClock.now + .seconds(120)
        while true {
            let response = try HTTPResponseText.of("GET \(target)", on: socket)
            if response.status == status { return response }
            guard ContinuousClock.now < end else { throw DeadlineExceeded("\(status) of \(target): \(response)") }
        }
    }

    /// Writes by new sockets, until one is served: those that come while the address is stopped may be closed.
    private static func waitForWrite(_ stack: GatewayStack) throws {
        let end = ContinuousClock.now + .seconds(120)
        while true {
            do {
                let socket = try FirebaseSocket(stack)
                _ = try socket.message()
                try socket.send(#"{"t":"d","d":{"r":1,"a":"p","b":{"p":"/small","d":1}}}"#)
                #expect(try socket.message()?["d"]?["b"]?["s"] == "ok")
                return
            } catch { guard ContinuousClock.now < end else { throw error } }
        }
    }

    @Test func anAddressThatTakesWhatItHasGoesOn() async throws {
        try await GatewayStack.run(rules: Self.rules, Self.limits(stalledMsMax: 3_600_000)) { stack in
            try Self.writeLargeValue(stack)
            let other = try FirebaseSocket(stack)
            _ = try other.message()
            let reader = try PlainSocket(stack.gateway.address)
            try reader.send(Self.request("/large.json"))
            let stopped = try Self.wait(for: 503, of: "/small.json", stack)
            #expect(stopped.headers["retry-after"] == "1" && stopped.json?["error"] == "Service unavailable")
            // The value is one buffer, which is held whole also when the system has taken some of it.
            let held = try stack.metrics().split(separator: "\n").first { $0.hasPrefix("hato_gateway_untaken_bytes ") }
            #expect(held?.split(separator: " ").last.flatMap { Double($0) } ?? 0 > Double(14 << 20))
            // SDKs keep their user.
            let lookUp = try HTTPResponseText.of(
                "POST /identitytoolkit.googleapis.com/v1/accounts:lookup?key=k", body: "{}",
                on: PlainSocket(stack.gateway.address))
            #expect(lookUp.status == 503 && lookUp.json == nil)
            // Nothing of services, but what the gateway says by itself.
            let health = try HTTPResponseText.of("GET /healthz", on: PlainSocket(stack.gateway.address))
            #expect(health.status == 200)
            try other.send(#"{"t":"d","d":{"r":1,"a":"q","b":{"p":"/small","h":""}}}"#)
            let response = try HTTPResponseText(next: reader)
            #expect(response.status == 200 && response.body.utf8.count > 14 << 20)
            #expect(try Self.wait(for: 200, of: "/small.json", stack).body == "null")
            #expect(try other.message()?["d"]?["b"]?["p"] == "small")
            let page = try stack.metrics()
            #expect(page.contains("\nhato_gateway_unread_connections_closed_total 0\n"))
            try stack.waitForMetrics("all is taken") { $0.contains("\nhato_gateway_untaken_bytes 0\n") }
        }
    }

    @Test func aPeerThatNeverReadsStopsNoOtherForEver() async throws {
        try await GatewayStack.run(rules: Self.rules, Self.limits(stalledMsMax: 2_000)) { stack in
            try Self.writeLargeValue(stack)
            // One of each kind; none of them reads on.
            let socket = try FirebaseSocket(stack)
            _ = try socket.message()
            let stream = try PlainSocket(stack.gateway.address)
            let poller = try FirebasePoller(stack)
            _ = try poller.message()
            let native = try FirebaseSocket(stack.gateway, target: "/rpc/messages")
            try socket.send(#"{"t":"d","d":{"r":1,"a":"q","b":{"p":"/large","h":""}}}"#)
            try stream.send(Self.request("/large.json", "Accept: text/event-stream"))
            try poller.send(#"{"t":"d","d":{"r":1,"a":"q","b":{"p":"/large","h":""}}}"#)
            try native.send(#"{"jsonrpc":"2.0","id":1,"method":"messages.get","params":{"path":"/large"}}"#)
            _ = try Self.wait(for: 503, of: "/small.json", stack)
            _ = try Self.wait(for: 200, of: "/small.json", stack)
            try stack.waitForMetrics("connections are closed, until enough is gone") { page in
                !page.contains("\nhato_gateway_unread_connections_closed_total 0\n")
                    && page.contains("\nhato_gateway_untaken_bytes ")
            }
            try Self.waitForWrite(stack)
            withExtendedLifetime((socket, stream, poller, native)) {}
        }
    }
}
