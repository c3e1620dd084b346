import HatoModel
import HatoTesting
import Synchronization
import Testing

/// The built gateway at SIGTERM under traffic.
@Suite(.timeLimit(.minutes(10)))
struct GatewayStops {
    private static let rules: JSONValue = ["rules": [".read": true, ".write": true]]

    private static func head(_ lines: String...) -> [UInt8] {
        Array((lines + ["Host: l", "", ""]).joined(separator: "\r\n").utf8)
    }

    @Test func whatIsUnderWayIsFinishedAndNothingNewBegins() async throws {
        // Its log is deleted with it.
        let used = Mutex<GatewayStack?>(nil)
        try await GatewayStack.run(rules: Self.rules, ["--metrics-port", "0"]) { stack in
            used.withLock { $0 = stack }
            let address = stack.gateway.address
            let firebase = try FirebaseSocket(stack, host: "chat.example.com:8443")
            #expect(try firebase.message()?["d"]?["d"]?["h"] == "chat.example.com:8443")
            let (idle, writer, stream) = (
                try PlainSocket(address), try PlainSocket(address), try PlainSocket(address)
            )
            #expect(try HTTPResponseText.of("GET /a.json", on: idle).status == 200)
            try writer.send(Self.head("PUT /a.json HTTP/1.1", "Content-Length: 9") + Array("\"the".utf8))
            try stream.send(Self.head("GET /b.json HTTP/1.1", "Accept: text/event-stream"))
            #expect(try HTTPResponseText(headOf: stream).headers["transfer-encoding"] == "chunked")
            try stack.waitForMetrics("both are under way") { page in
                ["rest", "stream"].allSatisfy {
                    page.contains("\nhato_gateway_requests_under_way{kind=\"\($0)\"} 1\n")
                }
            }
            stack.gateway.terminate()
            // The SDK comes back to its own host, where another gateway may listen.
            #expect(try firebase.message() == ["t": "c", "d": ["t": "r", "d": "chat.example.com:8443"]])
            #expect(try firebase.message() == nil)
            var text = ""
            while !text.hasSuffix("0\r\n\r\n") { text += String(decoding: try stream.bytes(1), as: UTF8.self) }
            #expect(idle.isClosed())
            #expect { try PlainSocket(address) } throws: { "\($0)".contains("refused") }
            #expect(stack.gateway.isRunning)
            try writer.send(Array(" end\"".utf8))
            let response = try HTTPResponseText(headOf: writer)
            #expect(response.status == 200 && response.headers["connection"] == "close")
            #expect(try writer.bytes(9) == Array("\"the end\"".utf8))
            #expect(writer.isClosed())
        }
        let gateway = try #require(used.withLock { $0?.gateway })
        #expect(await gateway.exitCode() == 0)
        #expect(used.withLock { $0?.gateway.log }?.contains("path=/a.json status=200") == true)
    }

    /// All at once, thousands of clients would come back at the same instant.
    @Test func socketsAreSentAwayOneAfterTheOther() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--event-loops", "1"]) { stack in
            let sockets = try (0..<40).map { _ in try FirebaseSocket(stack) }
            for socket in sockets { _ = try socket.message() }
            let began = ContinuousClock.now
            stack.gateway.terminate()
            for socket in sockets {
                #expect(try socket.message() == ["t": "c", "d": ["t": "r", "d": "localhost"]])
                #expect(try socket.message() == nil)
            }
            // Five milliseconds between two of them.
            #expect(ContinuousClock.now - began >= .milliseconds(190))
            #expect(stack.gateway.waitForExitCode() == 0)
        }
    }

    @Test func whatIsNotFinishedInTimeIsCutOff() async throws {
        // Its log is deleted with it.
        let used = Mutex<GatewayStack?>(nil)
        try await GatewayStack.run(rules: Self.rules, ["--metrics-port", "0", "--grace-seconds", "1"]) { stack in
            used.withLock { $0 = stack }
            let writer = try PlainSocket(stack.gateway.address)
            try writer.send(Self.head("PUT /a.json HTTP/1.1", "Content-Length: 9") + Array("\"the".utf8))
            try stack.waitForMetrics("it is under way") {
                $0.contains("\nhato_gateway_requests_under_way{kind=\"rest\"} 1\n")
            }
            stack.gateway.terminate()
            #expect(writer.isClosed())
        }
        let gateway = try #require(used.withLock { $0?.gateway })
        #expect(await gateway.exitCode() == 0)
        let log = used.withLock { $0?.gateway.log } ?? ""
        #expect(log.contains("stopping") && !log.contains("stopping takes too long"))
    }
}
