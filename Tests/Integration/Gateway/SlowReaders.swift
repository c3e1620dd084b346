import HatoModel
import HatoTesting
import Testing

/// Clients that listen and do not read for a while: messages merges what they miss (spec realtime-database §7.5).
@Suite(.timeLimit(.minutes(10)))
struct SlowReaders {
    private static let rules: JSONValue = ["rules": [".read": true, ".write": true]]
    private static let text = String(repeating: "x", count: 200_000)
    /// Of writes: more bytes than all buffers between messages and a client hold.
    private static let count = 150

    private static func write(_ stack: GatewayStack) throws {
        let writer = try PlainSocket(stack.messages.address)
        try writer.call("session.authenticate", ["auth": .string(ServingProgram.administratorKey)])
        for number in 1...count {
            try writer.call("messages.set", ["path": "/big", "value": .string("\(number) \(text)")])
        }
    }

    @Test func anEventStreamGetsMergedEvents() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let stream = try PlainSocket(stack.gateway.address)
            try HTTPResponseText.request("GET /big.json", ["Accept: text/event-stream"], on: stream)
            #expect(try HTTPResponseText(headOf: stream).status == 200)
            try Self.write(stack)
            var (events, last) = (0, "")
            while !last.hasPrefix(#"data: {"path":"/","data":"\#(Self.count) "#) {
                let line = String(decoding: try stream.line(), as: UTF8.self)
                guard line.hasPrefix("data: {") else { continue }
                (events, last) = (events + 1, line)
            }
            #expect(events > 1 && events < Self.count * 2 / 3, "\(events) of \(Self.count): some were merged")
        }
    }

    @Test func aSocketGetsMergedEvents() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let reader = try FirebaseSocket(stack)
            _ = try reader.message()
            try reader.request(1, "q", ["p": "/big", "h": ""])
            #expect(try reader.response(to: 1)?["s"] == "ok")
            try Self.write(stack)
            var (events, last) = (0, "")
            while !last.hasPrefix("\(Self.count) ") {
                let message = try #require(try reader.message())
                (events, last) = (events + 1, message["d"]?["b"]?["d"]?.string ?? "")
            }
            #expect(events > 1 && events < Self.count * 2 / 3, "\(events) of \(Self.count): some were merged")
        }
    }
}
