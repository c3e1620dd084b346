import HatoModel
import HatoTesting
import Testing

/// Requests for WebSockets, right and wrong ones, on connections of the built gateway.
@Suite(.timeLimit(.minutes(10)))
struct SocketRequests {
    private static let rules: JSONValue = ["rules": [".read": true, ".write": true]]

    /// Proxies that use connections again send it behind other requests.
    @Test func anyRequestOfAConnectionOpensASocket() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let socket = try PlainSocket(stack.gateway.address)
            for _ in 0..<2 { #expect(try HTTPResponseText.of("GET /a.json", on: socket).body == "null") }
            let opened = try FirebaseSocket(on: socket)
            #expect(try opened.message()?["d"]?["t"] == "h")
            try opened.send(#"{"t":"d","d":{"r":1,"a":"p","b":{"p":"/a","d":"鳩"}}}"#)
            #expect(try opened.message()?["d"]?["b"]?["s"] == "ok")
        }
    }

    /// Frames that come in one piece with the request are frames of the socket.
    @Test func framesBehindTheRequestAreRead() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let opened = try FirebaseSocket(on: try PlainSocket(stack.gateway.address), pinging: [7, 8])
            try opened.awaitPong([7, 8])
            #expect(try opened.message()?["d"]?["t"] == "h")
        }
    }

    @Test func manyProtocolsAreNoMoreThanOne() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--head-bytes-max", "1048576"]) { stack in
            let names = Array(repeating: "a", count: 60_000).joined(separator: ",")
            let socket = try PlainSocket(stack.gateway.address)
            let response = try HTTPResponseText.of(
                "GET /a.json", ["Connection: upgrade", "Upgrade: \(names)"], on: socket)
            #expect(response.status == 200)
            #expect(try HTTPResponseText.of("GET /a.json", on: try PlainSocket(stack.gateway.address)).status == 200)
        }
    }

    @Test func responsesToHeadHaveNoBody() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let socket = try PlainSocket(stack.gateway.address)
            #expect(try HTTPResponseText.of("HEAD /healthz", on: socket).status == 200)
            #expect(try HTTPResponseText.of("GET /a.json", on: socket).body == "null")
        }
    }
}
