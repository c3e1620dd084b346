import HatoModel
import HatoTesting
import Testing

/// How long a client may keep a connection of the built gateway waiting.
@Suite(.timeLimit(.minutes(10)))
struct GatewayTimes {
    private static let rules: JSONValue = ["rules": [".read": true, ".write": true]]
    /// A limit that the test waits for, and others that it never reaches.
    private static func only(_ name: String) -> [String] {
        ["head-ms-max", "body-stall-ms", "idle-ms-max"].flatMap { ["--\($0)", $0 == name ? "200" : "3600000"] }
    }

    @Test func headsMustBeCompleteInTime() async throws {
        try await GatewayStack.run(rules: Self.rules, Self.only("head-ms-max")) { stack in
            for first in ["", "GET /a.json HTTP/1.1\r\nHost: lo"] {
                let socket = try PlainSocket(stack.gateway.address)
                try socket.send(Array(first.utf8))
                #expect(socket.isClosed())
            }
            // A later head of a connection, too; and one that comes in parts.
            let socket = try PlainSocket(stack.gateway.address)
            #expect(try HTTPResponseText.of("GET /a.json", on: socket).status == 200)
            try socket.send(Array("GET /a.json HTTP/1.1\r\nHo".utf8))
            #expect(socket.isClosed())
        }
    }

    @Test func aBodyMustNotStall() async throws {
        try await GatewayStack.run(rules: Self.rules, Self.only("body-stall-ms")) { stack in
            let socket = try PlainSocket(stack.gateway.address)
            try socket.send(Array("PUT /a.json HTTP/1.1\r\nHost: l\r\nContent-Length: 9\r\n\r\n1".utf8))
            #expect(socket.isClosed())
            let chunked = try PlainSocket(stack.gateway.address)
            try chunked.send(
                Array("PUT /a.json HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n1\r\n".utf8))
            #expect(chunked.isClosed())
            let reader = try PlainSocket(stack.gateway.address)
            #expect(try HTTPResponseText.of("GET /a.json", on: reader).body == "null")
        }
    }

    @Test func connectionsThatWaitForNoRequestAreClosed() async throws {
        try await GatewayStack.run(rules: Self.rules, Self.only("idle-ms-max")) { stack in
            let socket = try PlainSocket(stack.gateway.address)
            #expect(try HTTPResponseText.of("GET /a.json", on: socket).status == 200)
            #expect(socket.isClosed())
        }
    }

    @Test func openFilesBoundTheConnections() async throws {
        let folder = try TemporaryFolder()
        let surroundings = Executable.Surroundings(openFiles: 400, softOpenFiles: 100)
        let gateway = try await ServingProgram(
            "hato-gateway", ["--messages", "127.0.0.1:1"], in: folder, with: surroundings)
        // Half of the files, and two for each socket.
        #expect(gateway.log.contains("limit=400") && gateway.log.contains("connections=100"))
        let address = gateway.address
        let (status, isNextClosed) = try await Blocking.run {
            let sockets = try (0..<100).map { _ in try PlainSocket(address) }
            let response = try HTTPResponseText.of("OPTIONS /a.json", on: sockets[99])
            return (response.status, try PlainSocket(address).isClosed())
        }
        #expect(status == 204 && isNextClosed)
        await gateway.stop()
    }
}
