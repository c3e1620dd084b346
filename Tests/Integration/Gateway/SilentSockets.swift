import HatoModel
import HatoTesting
import Testing

/// Clients of WebSockets that respond to no ping, as behind a cable that is cut (spec realtime-database §8.2).
@Suite(.timeLimit(.minutes(10)))
struct SilentSockets {
    private static let rules: JSONValue = ["rules": [".read": true, ".write": true]]
    private static let limits = ["--ping-ms", "50", "--silence-ms-max", "2000"]

    /// Its write on disconnect is made; nothing ends its connection but the gateway.
    @Test func aClientThatRespondsToNoPingHasLeft() async throws {
        try await GatewayStack.run(rules: Self.rules, Self.limits) { stack in
            let observer = try PlainSocket.listening(
                to: "/gone", at: stack.messages.address, ServingProgram.administratorKey)
            func change() throws -> JSONValue? {
                try JSONParser.parse(observer.line())["params"]?["events"]?.array?.last?["data"]
            }
            #expect(try change() == .null)
            let began = ContinuousClock.now
            let client = try FirebaseSocket(stack)
            _ = try client.message()
            try client.request(1, "o", ["p": "/gone", "d": true])
            #expect(try client.response(to: 1)?["s"] == "ok")
            #expect(try change() == true)
            #expect(ContinuousClock.now - began >= .seconds(2))
            // There were pings before.
            try client.read(pings: 5)
            #expect(client.isClosedLater())
        }
    }

    /// It says nothing but that.
    @Test func aClientThatRespondsToPingsStays() async throws {
        try await GatewayStack.run(rules: Self.rules, Self.limits) { stack in
            for target in ["/.ws?v=5&ns=hato", "/rpc/messages"] {
                let began = ContinuousClock.now
                let client = try FirebaseSocket(FirebaseSocket.opening(stack, target: target), sendsPongs: true)
                let isNative = target.hasPrefix("/rpc/")
                if !isNative { _ = try client.message() }
                while ContinuousClock.now - began < .seconds(4) { try client.read(pings: 1) }
                if isNative {
                    try client.send(#"{"jsonrpc":"2.0","id":1,"method":"service.health"}"#)
                    #expect(try client.value()?["result"]?["status"] == "ready")
                } else {
                    try client.request(1, "p", ["p": "/a", "d": 1])
                    #expect(try client.response(to: 1)?["s"] == "ok")
                }
            }
        }
    }

    @Test func aNativeClientThatRespondsToNoPingHasLeft() async throws {
        try await GatewayStack.run(rules: Self.rules, Self.limits) { stack in
            let client = try FirebaseSocket(stack, target: "/rpc/messages")
            try client.read(pings: 5)
            #expect(client.isClosedLater())
        }
    }
}
