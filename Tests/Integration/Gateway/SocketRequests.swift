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

    /// Browsers offer compression with each request.
    @Test(arguments: ["/.ws?v=5&ns=hato", "/rpc/messages"])
    func compressionIsDeclined(target: String) async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            for offer in ["permessage-deflate", "permessage-deflate; client_max_window_bits, x-webkit-deflate-frame"] {
                let headers = ["Sec-WebSocket-Extensions: \(offer)"]
                let opening = try FirebaseSocket.opening(stack, headers, target: target)
                #expect(opening.response.headers["sec-websocket-extensions"] == nil)
                // A long text comes as it is.
                let socket = try FirebaseSocket(opening)
                let text = String(repeating: "x", count: 5_000)
                if target.hasPrefix("/rpc/") {
                    try socket.send(#"{"jsonrpc":"2.0","id":"\#(text)","method":"service.health"}"#)
                    #expect(try socket.value()?["id"] == .string(text))
                } else {
                    _ = try socket.message()
                    try socket.request(1, "p", ["p": "/long", "d": .string(text)])
                    #expect(try socket.response(to: 1)?["s"] == "ok")
                    try socket.request(2, "g", ["p": "/long", "q": [:]])
                    #expect(try socket.response(to: 2)?["d"] == .string(text))
                }
            }
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
