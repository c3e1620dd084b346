import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// What operators see of the built gateway: its log, its metrics, its health.
@Suite(.timeLimit(.minutes(10)))
struct GatewayOperations {
    private static let rules: JSONValue = ["rules": [".read": true, ".write": true]]
    private static let withMetrics = ["--metrics-port", "0", "--trusted-proxies", "127.0.0.1"]

    @Test func theAccessLogHasALineForEachRequestAndNoQueries() async throws {
        try await GatewayStack.run(rules: Self.rules, Self.withMetrics) { stack in
            let socket = try PlainSocket(stack.gateway.address)
            let client = ["X-Forwarded-For: 198.51.100.1, 203.0.113.7"]
            _ = try HTTPResponseText.of(
                "PUT /rooms/r1.json?auth=top-secret&print=silent", client, body: "1", on: socket)
            _ = try HTTPResponseText.of("GET /rooms/r1.json?access_token=top-secret", client, on: socket)
            _ = try HTTPResponseText.of("GET /rooms/r1.json", client, on: socket)
            let opening = try FirebaseSocket.opening(stack, client, target: "/.ws?v=5&ns=hato&auth=top-secret")
            opening.socket.end()
            // The client leaves before its body is there.
            let leaving = try PlainSocket(stack.gateway.address)
            let head = ["PUT /left.json?auth=top-secret HTTP/1.1", "Host: l", "Content-Length: 9"] + client
            try leaving.send(Array((head.joined(separator: "\r\n") + "\r\n\r\n").utf8))
            try stack.waitForMetrics("the request is under way") {
                $0.contains("\nhato_gateway_requests_under_way{kind=\"rest\"} 1\n")
            }
            leaving.end()
            let lines = [
                "path=/rooms/r1.json status=401", "address=203.0.113.7 bytes=4 method=GET ms=",
                "path=/rooms/r1.json status=200", "path=/.ws status=101",
                "path=/left.json status=none",
            ]
            try stack.waitForMetrics("\(lines) in \(stack.gateway.log)") { _ in
                let log = stack.gateway.log
                return lines.allSatisfy(log.contains)
            }
            #expect(!stack.gateway.log.contains("top-secret") && !stack.gateway.log.contains("198.51.100.1"))
        }
    }

    @Test func nativeSocketsHaveALineAndMetrics() async throws {
        try await GatewayStack.run(rules: Self.rules, Self.withMetrics) { stack in
            let target = "/rpc/messages?token=top-secret"
            let socket = try FirebaseSocket(stack, target: target)
            let health = #"{"jsonrpc":"2.0","id":1,"method":"service.health"}"#
            for _ in 0..<2 {
                try socket.send(health)
                _ = try socket.value()
            }
            let names = [
                "native_sockets{service=\"messages\"} 1",
                "native_messages_total{service=\"messages\",direction=\"received\"} 2",
                "native_messages_total{service=\"messages\",direction=\"sent\"} 2",
            ]
            try stack.waitForMetrics("the socket is counted") { page in
                names.allSatisfy { page.contains("\nhato_gateway_\($0)\n") }
            }
            try socket.send([0x03, 0xE8], opcode: 0x88)
            #expect(try socket.end().code == 1000)
            let cut = try FirebaseSocket(stack, target: target)
            cut.cut()
            let lines = [
                "bytes-received=\(2 * health.utf8.count) end=ofClient messages=2 messages-received=2",
                "end=clientLeft messages=0 messages-received=0",
            ]
            try stack.waitForMetrics("\(lines)") { page in
                let log = stack.gateway.log
                return lines.allSatisfy(log.contains)
                    && page.contains("\nhato_gateway_native_sockets{service=\"messages\"} 0\n")
                    && page.contains("\nhato_gateway_requests_total{kind=\"native\",status=\"1xx\"} 2\n")
            }
            let log = stack.gateway.log
            #expect(log.contains("path=/rpc/messages status=101") && !log.contains("top-secret"))
        }
    }

    @Test func theAccessLogCanBeSwitchedOff() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--access-log", "false"] + Self.withMetrics) { stack in
            let socket = try PlainSocket(stack.gateway.address)
            _ = try HTTPResponseText.of("GET /a.json", on: socket)
            try stack.waitForMetrics("the request is counted") {
                $0.contains("\nhato_gateway_requests_total{kind=\"rest\",status=\"2xx\"} 1\n")
            }
            #expect(!stack.gateway.log.contains(" request "))
        }
    }

    @Test func metricsCountWhatIsOpenAndWhatWasServed() async throws {
        try await GatewayStack.run(rules: Self.rules, Self.withMetrics) { stack in
            let socket = try PlainSocket(stack.gateway.address)
            _ = try HTTPResponseText.of("GET /a.json", on: socket)
            _ = try HTTPResponseText.of("GET /nothing", on: socket)
            let stream = try PlainSocket(stack.gateway.address)
            let head = ["GET /a.json HTTP/1.1", "Host: l", "Accept: text/event-stream"]
            try stream.send(Array((head.joined(separator: "\r\n") + "\r\n\r\n").utf8))
            _ = try HTTPResponseText(headOf: stream)
            let firebase = try FirebaseSocket(stack)
            _ = try firebase.message()
            try stack.waitForMetrics("all are counted") { page in
                [
                    "requests_total{kind=\"rest\",status=\"2xx\"} 1", "requests_total{kind=\"other\",status=\"4xx\"} 1",
                    "requests_under_way{kind=\"stream\"} 1", "sockets 1", "wires 3", "connections 2",
                    "request_seconds_count{kind=\"rest\"} 1",
                ].allSatisfy { page.contains("\nhato_gateway_\($0)\n") }
            }
            firebase.cut()
            stream.end()
            try stack.waitForMetrics("all have ended") { page in
                [
                    "requests_under_way{kind=\"stream\"} 0", "sockets 0", "wires 1", "connections 1",
                    "requests_total{kind=\"stream\",status=\"2xx\"} 1",
                    "requests_total{kind=\"socket\",status=\"1xx\"} 1",
                ].allSatisfy { page.contains("\nhato_gateway_\($0)\n") }
            }
        }
    }

    @Test func theReadmeListsEveryMetric() async throws {
        try await GatewayStack.run(rules: Self.rules, Self.withMetrics) { stack in
            let page = try stack.metrics()
            let shown = page.matches(of: #/(?m)^# TYPE (hato_gateway_[a-z_]+) ([a-z]+)$/#)
            let readme = try String(
                contentsOf: URL(filePath: #filePath).deletingLastPathComponent()
                    .appending(path: "../../../Services/Gateway/README.md").standardizedFileURL, encoding: .utf8)
            let listed = readme.matches(of: #/(?m)^\| `(hato_[a-z_]+)` \| (counter|gauge|histogram) \|/#)
            func table(_ pairs: [(Substring, Substring)]) -> [String: String] {
                Dictionary(pairs.map { (String($0.0), String($0.1)) }) { $1 }
            }
            #expect(table(listed.map { ($0.1, $0.2) }) == table(shown.map { ($0.1, $0.2) }))
        }
    }

    /// Messages, and no others.
    private static func services(_ messages: ServingProgram) -> [String] {
        ["--messages", messages.address, "--auth", "127.0.0.1:1", "--notifier", "127.0.0.1:1"]
    }

    @Test func theHealthNamesTheServicesThatDoNotRespond() async throws {
        let folder = try TemporaryFolder()
        let messages = try await ServingProgram(
            "hato-messages", ["--data", "\(folder.path)/messages", "--auth", "127.0.0.1:1"], in: folder)
        let port = messages.port
        let gateway = try await ServingProgram("hato-gateway", Self.services(messages), in: folder)
        func health(_ arguments: String...) async throws -> Executable.Ended {
            try await Executable.run("hato-gateway", ["health", "--server", gateway.address] + arguments)
        }
        // Without auth, messages has no keys to verify tokens with.
        let degraded = try await health()
        #expect(degraded.code == 0 && degraded.output["services"]?["messages"] == "degraded")
        #expect(degraded.output["services"]?["auth"] == "unreachable")
        #expect(degraded.output["services"]?["notifier"] == "unreachable")
        await messages.stop()
        try await eventually("messages is away") {
            let away = try await health()
            return away.code == 0 && away.output["status"] == "degraded"
                && away.output["services"]?["messages"] == "unreachable"
        }
        let again = try await ServingProgram(
            "hato-messages", ["--data", "\(folder.path)/messages", "--auth", "127.0.0.1:1", "--port", "\(port)"],
            in: folder)
        try await eventually("messages is back") {
            try await health().output["services"]?["messages"] == "degraded"
        }
        #expect(try await health("--only", "status").text == "degraded\n")
        await gateway.stop()
        let gone = try await health()
        #expect(gone.code == 69 && gone.error.contains("connection refused"))
        let foreign = try await Executable.run("hato-gateway", ["health", "--server", again.address, "--timeout", "5"])
        #expect(foreign.code == 69 && foreign.text.isEmpty)
        await again.stop()
    }

    @Test func aKeyThatServicesRefuseIsVisible() async throws {
        let (folder, other) = (try TemporaryFolder(), try TemporaryFolder())
        let messages = try await ServingProgram(
            "hato-messages", ["--data", "\(folder.path)/messages", "--auth", "127.0.0.1:1"], in: folder)
        let key = try other.write("key", String(repeating: "k", count: 40))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
        // The last one counts.
        let gateway = try await ServingProgram(
            "hato-gateway", Self.services(messages) + ["--outgoing-key-file", key], in: other)
        let health = try await Executable.run("hato-gateway", ["health", "--server", gateway.address])
        #expect(health.code == 0 && health.output["services"]?["messages"] == "refused", "\(health.text)")
        let log = gateway.log
        #expect(log.contains("service-keys-file must list the key") && log.contains("service=messages"), "\(log)")
        #expect(!log.contains("kkkkkkkk"))
        await gateway.stop()
        await messages.stop()
    }

    @Test func aStackOfAnEmulatorSaysSo() async throws {
        try await TestStack.run(["--emulator", "true"]) { stack in
            #expect(stack.announcement["emulator"] == true)
            #expect(stack.announcement["settingsOfAuth"]?.array != nil, "\(stack.announcement)")
        }
    }

    /// As a test suite of an app for Firebase uses the stack.
    @Test func theThrowAwayStackHasAGateway() async throws {
        try await TestStack.run { stack in
            let scheme = "http://"
            #expect(stack.gateway.hasPrefix(scheme) && stack.announcement["emulator"] == nil)
            let address = String(stack.gateway.dropFirst(scheme.count))
            let token = try await stack.newUser().idToken
            let put = try await Blocking.run {
                let socket = try PlainSocket(address)
                let response = try HTTPResponseText.of("PUT /a.json?auth=\(token)", body: "\"鳩\"", on: socket)
                #expect(try HTTPResponseText.of("GET /a.json", on: socket).status == 401)
                return response
            }
            #expect(put.status == 200 && put.body == "\"鳩\"")
            let messages = stack.client(.messages, as: .administrator)
            #expect(try await messages.call(Messages.Get(path: try TreePath("/a"))).value == "鳩")
            await messages.close()
            let health = try await Executable.run("hato-gateway", ["health", "--server", address])
            #expect(health.code == 0 && health.output["status"] == "ready", "\(health.text)")
        }
    }
}
