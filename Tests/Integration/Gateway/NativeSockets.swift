import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// The services' own protocol over WebSockets (`/rpc/NAME`) of the built gateway: what a client sees over TCP.
@Suite(.timeLimit(.minutes(10)))
struct NativeSockets {
    private static let rules: JSONValue = ["rules": [".read": "auth != null", ".write": "auth != null"]]

    private static func call(_ method: String, _ params: JSONObject = [:], id: JSONValue = 1) -> String {
        EncodedJSON(["jsonrpc": "2.0", "id": id, "method": .string(method), "params": .object(params)]).text
    }

    private static let key = JSONValue.string(ServingProgram.administratorKey)

    @Test func everyServiceIsReachedByItsName() async throws {
        try await GatewayStack.run(rules: Self.rules, .init(notifier: [])) { stack in
            for name in ["auth", "messages", "notifier"] {
                let socket = try FirebaseSocket(stack, target: "/rpc/\(name)?any")
                try socket.send(Self.call("service.health"))
                #expect(try socket.value()?["result"]?["service"]?.string == name)
                try socket.send([], opcode: 0x88)
                #expect(try socket.end().code == 1000)
            }
            let plain = try PlainSocket(stack.gateway.address)
            #expect(try HTTPResponseText.of("GET /rpc/messages", on: plain).status == 400)
            #expect(try HTTPResponseText.of("GET /rpc/files", on: plain).status == 404)
        }
    }

    /// Ids of any kind, batches, notifications, wrong texts: each has the response of the service, in order.
    @Test func textsAndResponsesPassAsTheyAre() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let (socket, tcp) = (
                try FirebaseSocket(stack, target: "/rpc/messages"), try PlainSocket(stack.messages.address)
            )
            let health = #""method":"service.health""#
            let texts = [
                #"{"jsonrpc":"2.0","id":"a",\#(health)}"#, #"{"jsonrpc":"2.0","id":null,\#(health)}"#,
                #"{"jsonrpc":"2.0","id":12345678901234567890.50,\#(health)}"#, "nonsense", "[]", "5",
                #"{"jsonrpc":"2.0",\#(health)}"#, #"[{"jsonrpc":"2.0",\#(health)}]"#,
                #"[{"jsonrpc":"2.0","id":1,\#(health)},{"jsonrpc":"2.0","id":2,"method":"no.such"},{}]"#,
                #"{"jsonrpc":"2.0","id":1,"method":"messages.get","params":{"path":"/a"}}"#,
                #"{"jsonrpc":"2.0","id":1,"id":2,\#(health)}"#, "\"\u{1}\"", #"{"jsonrpc":"2.0","id":9,\#(health)}"#,
            ]
            for text in texts {
                try socket.send(text)
                try tcp.send(Array("\(text)\n".utf8))
            }
            // Two are notifications.
            for _ in 0..<texts.count - 2 {
                let expected = try JSONParser.parse(tcp.line())
                #expect(try socket.value() == expected)
            }
        }
    }

    /// A line end in a text would bring a line of its own; frames of one message make one line.
    @Test func aMessageIsOneLine() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let socket = try FirebaseSocket(stack, target: "/rpc/messages")
            let health = Self.call("service.health")
            try socket.send("\(health)\n\(health)")
            #expect(try socket.value()?["error"]?["code"] == -32700)
            try socket.send(health.replacing(",", with: ",\r\n"))
            #expect(try socket.value()?["result"] != nil)
            // JSON has no line end inside of a string.
            for end in ["\n", "\r"] {
                try socket.send(health.replacing("service.health", with: "service\(end).health"))
                #expect(try socket.value()?["error"]?["code"] == -32700)
            }
            let bytes = Array(health.utf8)
            try socket.send(Array(bytes[..<5]), opcode: 0x01)
            try socket.send([], opcode: 0x89)
            try socket.send(Array(bytes[5..<9]), opcode: 0x00)
            try socket.send(Array(bytes[9...]), opcode: 0x80)
            #expect(try socket.value()?["result"] != nil)
        }
    }

    @Test func aClientSpeaksForNoOther() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let socket = try FirebaseSocket(stack, target: "/rpc/messages")
            let forward = Self.call("session.forward", ["auth": Self.key, "from": "203.0.113.7"])
            let get = Self.call("messages.get", ["auth": Self.key, "path": "/a", "from": "203.0.113.7"])
            for text in [
                get, forward, forward.replacing("forward", with: "for\\u0077ard"),
                get.replacing("\"from\"", with: "\"fr\\u006fm\""),
            ] {
                try socket.send(text)
                #expect(try socket.value()?["error"]?["code"] == -32002, "\(text)")
            }
            try socket.send("[\(forward),\(get)]")
            let batch = try socket.value()?.array
            #expect(batch?.compactMap { $0["error"]?["code"] } == [-32002, -32002])
            try socket.send(get.replacing("\"from\"", with: "\"from\":null,\"from\""))
            #expect(try socket.value()?["error"]?["code"] == -32700)
        }
    }

    @Test func linesAreLongForThoseWithACredential() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let set = Self.call(
                "messages.set", ["path": "/a", "value": .string(String(repeating: "x", count: 2_000_000))])
            let socket = try FirebaseSocket(stack, target: "/rpc/messages")
            try socket.send(Self.call("session.authenticate", ["auth": Self.key]))
            #expect(try socket.value()?["result"] != nil)
            try socket.send(set)
            #expect(try socket.value()?["result"]?["version"] != nil)
            try socket.send(Self.call("messages.get", ["path": "/a"]))
            #expect(try socket.value()?["result"]?["value"]?.string?.utf8.count == 2_000_000)
            let refused = try FirebaseSocket(stack, target: "/rpc/messages")
            try refused.send(set)
            #expect(try refused.value()?["error"]?["data"]?["reason"] == "line_too_long")
            // No reason to send it again.
            let end = try refused.end()
            #expect(end.code == 1009 && end.reason.hasPrefix("line_too_long:"))
            // The head of a frame of 17 MiB is enough, and what follows takes nothing from the reason.
            for part in [0, 1 << 20] {
                let long = try FirebaseSocket(stack, target: "/rpc/messages")
                try long.send(frameOf: 17 << 20, Array(repeating: 0x20, count: part))
                #expect(try long.end().code == 1009)
            }
            let firebase = try FirebaseSocket(stack)
            try firebase.send(frameOf: 17 << 20)
            #expect(try firebase.end().code == 1009)
            let binary = try FirebaseSocket(stack, target: "/rpc/messages")
            try binary.send(Array("{}".utf8), opcode: 0x82)
            #expect(try binary.end().code == 1003)
        }
    }

    /// RFC 6455 §5.2, §5.5.1.
    @Test func closeCodesSayWhatIsWrong() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            // A compressed text, an opcode that is reserved, a control frame of no kind, and HTTP.
            let rows: [(opcode: UInt8, text: String, code: Int)] = [
                (0xC1, "{}", 1002), (0x83, "{}", 1002), (0x8B, "", 1002), (0x81, "GET / HTTP/1.1", 1008),
            ]
            for row in rows {
                let socket = try FirebaseSocket(stack, target: "/rpc/messages")
                try socket.send(Array(row.text.utf8), opcode: row.opcode)
                #expect(try socket.end().code == row.code, "\(row)")
            }
            let socket = try FirebaseSocket(stack, target: "/rpc/messages")
            try socket.send([0x22, 0xFF, 0x22], opcode: 0x81)
            #expect(try socket.end().code == 1007, "no UTF-8")
            let codes: [(sent: [UInt8], code: Int)] = [
                ([0x0F, 0xA1], 4_001), ([0x03, 0xE9], 1_001), ([0x03, 0xED], 1_002),
            ]
            for (sent, code) in codes {
                let socket = try FirebaseSocket(stack, target: "/rpc/messages")
                try socket.send(sent, opcode: 0x88)
                #expect(try socket.end().code == code)
            }
        }
    }

    @Test func eventsComeBeforeTheResponseOfTheirWrite() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let (user, socket) = (try stack.newToken(), try FirebaseSocket(stack, target: "/rpc/messages"))
            try socket.send(Self.call("session.authenticate", ["auth": .string(user.token)]))
            #expect(try socket.value()?["result"]?["uid"]?.string == user.uid)
            try socket.send(Self.call("messages.listen", ["path": "/room"]))
            #expect(try socket.value()?["result"]?["subscription"] != nil)
            #expect(try socket.value()?["method"] == "messages.event")
            for number in 0..<500 {
                try socket.send(
                    Self.call(
                        "messages.set", ["path": "/room", "value": .number(Double(number))], id: .number(Double(number))
                    ))
            }
            var (responses, last): ([Int64], JSONValue?) = ([], nil)
            while responses.count < 500 {
                let message = try socket.value()
                if let id = message?["id"]?.integer {
                    responses.append(id)
                    // The newest event has this write or a later one.
                    #expect(last?.integer.map { $0 >= id } == true)
                } else {
                    last = message?["params"]?["events"]?.array?.last?["data"]
                }
            }
            #expect(responses == Array(0..<500))
        }
    }

    /// What the client does not take waits in the service, which merges it.
    @Test func aClientThatDoesNotReadHoldsUpNoOther() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let (slow, fast) = (
                try FirebaseSocket(stack, target: "/rpc/messages"), try FirebaseSocket(stack, target: "/rpc/messages")
            )
            for socket in [slow, fast] {
                try socket.send(Self.call("session.authenticate", ["auth": Self.key]))
                _ = try socket.value()
            }
            try slow.send(Self.call("messages.listen", ["path": "/room"]))
            let text = String(repeating: "x", count: 200_000)
            for number in 0..<80 {
                let value = JSONValue.object(["n": .number(Double(number)), "text": .string(text)])
                try fast.send(
                    Self.call("messages.set", ["path": "/room", "value": value], id: .number(Double(number))))
                #expect(try fast.value()?["id"] == .number(Double(number)))
            }
            var (count, last): (Int, JSONValue?) = (0, nil)
            _ = try slow.value()
            while last != 79 {
                let message = try slow.value()
                count += 1
                last = message?["params"]?["events"]?.array?.last?["data"]?["n"] ?? last
            }
            #expect(count < 70, "some were merged")
        }
    }

    @Test func anOutageEndsTheSocketWithAReason() async throws {
        let folder = try TemporaryFolder()
        let auth = try await ServingProgram(
            "hato-auth", ["--data", "\(folder.path)/auth", "--scrypt-log-n", "4"], in: folder)
        let gateway = try await ServingProgram(
            "hato-gateway", ["--auth", auth.address, "--messages", "127.0.0.1:1"], in: folder)
        let away = try await Blocking.run { try FirebaseSocket(gateway, target: "/rpc/messages").end() }
        #expect(away.code == 1013 && away.reason.hasPrefix("unavailable:"))
        let socket = try await Blocking.run {
            let socket = try FirebaseSocket(gateway, target: "/rpc/auth")
            try socket.send(Self.call("service.health"))
            _ = try socket.value()
            return socket
        }
        await auth.stop()
        let lost = try await Blocking.run { try socket.end() }
        #expect(lost.code == 1013 && lost.reason.hasPrefix("connection_lost:"))
        let again = try await ServingProgram(
            "hato-auth", ["--data", "\(folder.path)/auth", "--scrypt-log-n", "4", "--port", "\(auth.port)"], in: folder)
        let second = try await Blocking.run {
            let socket = try FirebaseSocket(gateway, target: "/rpc/auth")
            try socket.send(Self.call("service.health"))
            #expect(try socket.value()?["result"]?["status"] == "ready")
            return socket
        }
        await gateway.stop()
        let end = try await Blocking.run { try second.end() }
        #expect(end.code == 1001 && end.reason.hasPrefix("stopping:"))
        await again.stop()
    }

    /// Clients write it themselves: the gateway does not wait for more than it may hold.
    @Test func incompleteMessagesCountInOneBudget() async throws {
        let folder = try TemporaryFolder()
        let messages = try await ServingProgram(
            "hato-messages", ["--data", "\(folder.path)/messages", "--auth", "127.0.0.1:1"], in: folder)
        let gateway = try await ServingProgram(
            "hato-gateway",
            [
                "--messages", messages.address, "--event-loops", "1", "--held-bytes-max", "2000000", "--wire-ms-max",
                "600000",
            ], in: folder)
        try await Blocking.run {
            let part = [UInt8](repeating: 0x20, count: 700_000)
            var sockets: [FirebaseSocket] = []
            for _ in 0..<2 {
                let socket = try FirebaseSocket(gateway, target: "/.ws?v=5&ns=hato")
                // A frame of a longer message; it is held when what comes behind it has its response.
                try socket.send(part, opcode: 0x01)
                try socket.send([7], opcode: 0x89)
                try socket.awaitPong([7])
                sockets.append(socket)
            }
            // The third one does not fit.
            let socket = try FirebaseSocket(gateway, target: "/.ws?v=5&ns=hato")
            // It may be closed amid what is sent.
            try? socket.send(frameOf: 1_000_000, part)
            #expect(socket.isClosedLater())
            for socket in sockets { socket.cut() }
        }
        for program in [gateway, messages] { await program.stop() }
    }

    /// They get one pong at a time: what a client that does not read asks for takes no memory.
    @Test func pingsOfAClientThatDoesNotReadTakeNoMemory() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let ping: [UInt8] = [0x89, 0x80 | 120, 0, 0, 0, 0] + Array(repeating: 7, count: 120)
            let pings = Array(repeatElement(ping, count: 2_000).joined())
            for target in ["/rpc/messages", "/.ws?v=5&ns=hato"] {
                let plain = try PlainSocket(stack.gateway.address)
                let socket = try FirebaseSocket(on: plain, target: target)
                let before = try Self.residentBytes(stack.gateway.processIdentifier)
                for _ in 0..<30 { try plain.send(pings) }
                // The gateway has read them all when it responds to what is behind them.
                try socket.send(
                    target.hasPrefix("/rpc/")
                        ? Self.call("service.health") : #"{"t":"d","d":{"r":1,"a":"s","b":{"c":{}}}}"#)
                var message = try socket.value()
                while message?["result"] == nil, message?["d"]?["r"] == nil { message = try socket.value() }
                let growth = try Self.residentBytes(stack.gateway.processIdentifier) - before
                #expect(growth < 12 << 20, "\(target)")
                // The newest ping has its pong.
                try socket.send([7, 7], opcode: 0x89)
                try socket.awaitPong([7, 7])
            }
        }
    }

    private static func residentBytes(_ process: Int32) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
        return try #require(Int(line.split(separator: " ")[1])) * 1_024
    }

    /// A byte now and then is no progress: what a frame or a message holds ends in time.
    @Test func messagesThatAreNotCompleteEndInTime() async throws {
        try await GatewayStack.run(rules: ["rules": [:]], ["--ping-ms", "50", "--message-ms-max", "500"]) { stack in
            for target in ["/rpc/messages", "/.ws?v=5&ns=hato"] {
                let frame = try FirebaseSocket(stack, target: target)
                try frame.send(frameOf: 1_000_000, [0x20])
                #expect(try frame.end().code == 1008, "\(target)")
                let message = try FirebaseSocket(stack, target: target)
                try message.send(Array("part".utf8), opcode: 0x01)
                #expect(try message.end().code == 1008, "\(target)")
            }
        }
    }

    /// A message before the close frame of its client reaches the service, also when the connection ends at once.
    @Test func closingTakesBackNothingThatWasSent() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let user = try stack.newToken()
            for number in 1...20 {
                let plain = try PlainSocket(stack.gateway.address)
                let socket = try FirebaseSocket(on: plain, target: "/rpc/messages")
                let text = JSONValue.string(String(repeating: "x", count: 2_000_000))
                let value: JSONValue = ["n": .number(Double(number)), "text": text]
                try socket.send(Self.call("session.authenticate", ["auth": .string(user.token)]))
                try socket.send(Self.call("messages.set", ["path": "/closed", "value": value], id: 2))
                try socket.send([0x03, 0xE8], opcode: 0x88)
                // Its responses come before the end, unless the client has gone.
                if number.isMultiple(of: 2) {
                    #expect(try socket.value()?["result"]?["uid"]?.string == user.uid)
                    #expect(try socket.value()?["result"]?["version"] != nil)
                    #expect(try socket.end().code == 1000)
                } else {
                    socket.cut()
                }
                let reader = try FirebaseSocket(stack, target: "/rpc/messages")
                let get = Self.call("messages.get", ["auth": .string(user.token), "path": "/closed/n"])
                let deadline = ContinuousClock.now + .seconds(60)
                var found: JSONValue?
                while found != .number(Double(number)), ContinuousClock.now < deadline {
                    try reader.send(get)
                    found = try reader.value()?["result"]?["value"]
                }
                #expect(found == .number(Double(number)))
            }
        }
    }
}
