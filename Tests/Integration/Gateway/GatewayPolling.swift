import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// Long polling of the built gateway, and the switch to a socket (spec realtime-database §8.9).
@Suite(.timeLimit(.minutes(10)))
struct GatewayPolling {
    private static let rules: JSONValue = ["rules": [".read": true, ".write": true]]
    private static let close = "pLPCommand('close');\n"

    /// A poller that has its hello, and the id of its session.
    private static func poller(
        _ stack: GatewayStack, _ parameters: String = "v=5&ns=hato"
    ) throws -> (poller: FirebasePoller, session: String) {
        let poller = try FirebasePoller(stack, parameters: parameters)
        guard let session = try poller.message()?["d"]?["d"]?["s"]?.string else { throw DeadlineExceeded("a hello") }
        return (poller, session)
    }

    private static func set(_ path: String, _ value: JSONValue) -> JSONValue { ["p": .string(path), "d": value] }

    /// Waits for a value in the database.
    private static func await(_ value: JSONValue, at path: String, _ stack: GatewayStack) throws {
        let socket = try PlainSocket(stack.messages.address)
        try socket.call("session.authenticate", ["auth": .string(ServingProgram.administratorKey)])
        let deadline = ContinuousClock.now + .seconds(120)
        var last = JSONValue.null
        while ContinuousClock.now < deadline {
            try socket.send("messages.get", ["path": .string(path)])
            last = try JSONParser.parse(socket.line())["result"]?["value"] ?? .null
            if last == value { return }
        }
        throw DeadlineExceeded("\(EncodedJSON(value).text) at \(path): \(EncodedJSON(last).text)")
    }

    // MARK: The switch

    /// Writes of the client and of another one before, during and after the switch.
    @Test func nothingIsLostAndNothingComesTwiceWhenASocketTakesOver() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--event-loops", "4", "--poll-ms-max", "1000"]) {
            stack in
            let (poller, session) = try Self.poller(stack)
            let writer = try FirebaseSocket(stack)
            _ = try writer.message()
            var sent = 0
            func write(_ count: Int) throws {
                for _ in 0..<count {
                    sent += 1
                    try poller.request(sent, "p", Self.set("/own/n", .number(Double(sent))))
                }
            }
            var written = 0
            func writeBeside(_ count: Int) throws {
                for _ in 0..<count {
                    written += 1
                    try writer.request(written, "p", Self.set("/other", .number(Double(written))))
                }
            }
            sent += 1
            try poller.request(sent, "q", ["p": "/", "h": ""])
            try poller.request(sent + 1, "o", Self.set("/gone", true))
            sent += 1
            for round in 0..<3 {
                try write(20)
                try writeBeside(20)
                guard round == 1 else { continue }
                try poller.switchToSocket(stack, session: session) {
                    try write(5)
                    try writeBeside(5)
                }
            }
            let value = JSONValue.string(String(repeating: "長い", count: 20_000))
            sent += 1
            try poller.request(sent, "p", Self.set("/long", value))
            var (responses, own, other, isLong) = ([Int](), [Double](), [Double](), false)
            func note(_ path: String, _ data: JSONValue) {
                switch path {
                case "own/n": own.append(data.number ?? 0)
                case "other": other.append(data.number ?? 0)
                case "long": isLong = data == value
                // A node above these: what it has is noted as if it came by itself.
                default:
                    for (key, child) in data.object?.members.map({ ($0.name, $0.value) }) ?? [] {
                        note(path.isEmpty ? key : "\(path)/\(key)", child)
                    }
                }
            }
            while responses.last != sent || other.last != Double(written) {
                let message = try #require(try poller.message())
                let data = try #require(message["d"])
                if let number = data["r"]?.integer {
                    responses.append(Int(number))
                    #expect(data["b"]?["s"] == "ok")
                    if number == 3 { #expect((own.last ?? 0) >= 3, "the event comes before the response") }
                } else {
                    note(data["b"]?["p"]?.string ?? "", data["b"]?["d"] ?? .null)
                }
            }
            #expect(responses == Array(1...sent) && isLong)
            #expect(zip(own, own.dropFirst()).allSatisfy { $0 < $1 } && own.last == Double(sent - 1))
            #expect(zip(other, other.dropFirst()).allSatisfy { $0 < $1 })
            // It is still the session in which the write at its end was made.
            poller.cut()
            try Self.await(true, at: "/gone", stack)
        }
    }

    /// A socket that dies, and a second one.
    @Test func socketThatIsNotUsedChangesNothing() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let (poller, session) = try Self.poller(stack)
            let target = "/.ws?v=5&ns=hato&s=\(session)"
            for _ in 0..<2 {
                let socket = try FirebaseSocket(stack, target: target)
                #expect(try socket.message() == ["t": "c", "d": ["t": "a", "d": [:]]])
                socket.cut()
            }
            // A request of the session has no place on the socket before the switch.
            let early = try FirebaseSocket(stack, target: target)
            #expect(try early.message() != nil)
            try early.request(1, "p", Self.set("/early", true))
            #expect(try early.message() == nil)
            try poller.request(1, "p", Self.set("/a", 1))
            #expect(try poller.response(to: 1)?["s"] == "ok")
            try poller.switchToSocket(stack, session: session)
            try poller.request(2, "g", ["p": "/", "q": [:]])
            #expect(try poller.response(to: 2)?["d"] == ["a": 1])
        }
    }

    @Test func socketOfNoSessionIsSentAway() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let (poller, session) = try Self.poller(stack)
            let other = try FirebaseSocket(stack)
            let otherSession = try #require(try other.message()?["d"]?["d"]?["s"]?.string)
            let last: Character = session.hasSuffix("A") ? "B" : "A"
            for wrong in ["none", String(session.dropLast() + [last]), otherSession, poller.id, "%ff"] {
                let socket = try FirebaseSocket(stack, target: "/.ws?v=5&ns=hato&s=\(wrong)")
                let first = try socket.message()
                guard wrong != "%ff" else {
                    #expect(first?["d"]?["t"] == "h", "no session is named")
                    continue
                }
                #expect(first == ["t": "c", "d": ["t": "r", "d": "localhost"]], "\(wrong)")
                #expect(try socket.message() == nil)
            }
            try poller.request(1, "p", Self.set("/a", 1))
            #expect(try poller.response(to: 1)?["s"] == "ok")
        }
    }

    /// A large message and another one come with one poll, and in the switch behind one.
    @Test func largeMessagesAreFollowedByOthersInOnePoll() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--event-loops", "3"]) { stack in
            let (poller, session) = try Self.poller(stack)
            func put(_ number: Int, _ path: String, _ value: String) -> String {
                #"{"t":"d","d":{"r":\#(number),"a":"p","b":{"p":"\#(path)","d":"\#(value)"}}}"#
            }
            let large = String(repeating: "x", count: 3_150_000)
            try poller.send(together: [put(1, "/large", large), put(2, "/small", "a")])
            for number in 1...2 { #expect(try poller.response(to: number)?["s"] == "ok") }
            try poller.switchToSocket(stack, session: session, behind: put(3, "/large", large + "y"))
            try poller.request(4, "p", Self.set("/small", "b"))
            for number in 3...4 { #expect(try poller.response(to: number)?["s"] == "ok") }
        }
    }

    // MARK: Repeated polls

    /// Browsers and proxies send a poll again when its connection ends: its response must not be missed for ever.
    @Test func pollThatComesAgainIsServedOrEndsTheSession() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--event-loops", "1"]) { stack in
            let poller = try Self.poller(stack).poller
            try poller.request(1, "o", Self.set("/gone", true))
            #expect(try poller.response(to: 1)?["s"] == "ok")
            func poll(_ serial: Int, _ query: String = "") throws -> PlainSocket {
                let socket = try PlainSocket(stack.gateway.address)
                let target = "/.lp?\(poller.names)&ser=\(serial)\(query)"
                try socket.send(Array("GET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
                // It has come when a later request has its response.
                _ = try HTTPResponseText.of("GET /none.json", on: try PlainSocket(stack.gateway.address))
                return socket
            }
            // Each one but the last has its response when the next one has come.
            let first = try poll(101)
            let waiting = try poll(102)
            #expect(try HTTPResponseText(next: first).body.hasPrefix("pRTLPCB("))
            let again = try poll(102)
            let empty = try HTTPResponseText(next: waiting)
            #expect(empty.status == 200 && empty.body.isEmpty, "\(empty)")
            let text = #"{"t":"d","d":{"r":2,"a":"p","b":{"p":"/a","d":1}}}"#
            let data = "&seg0=1&ts0=1&d0=\(FirebasePoller.segments(of: text).joined())"
            let put = try poll(103, data)
            #expect(try HTTPResponseText(next: again).body.hasPrefix("pRTLPCB("))
            #expect(try HTTPResponseText(next: put).body.contains(#"{"r":2,"b":{"s":"ok""#))
            // As if the client had not received that.
            #expect(try HTTPResponseText(next: try poll(103, data)).body == Self.close)
            #expect(try HTTPResponseText(next: try poll(104)).body == Self.close)
            try Self.await(true, at: "/gone", stack)
        }
    }

    // MARK: Bad input

    @Test func wrongRequestsGetTheirResponseAndDisturbNoSession() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--event-loops", "3", "--poll-ms-max", "1000"]) {
            stack in
            let (poller, _) = try Self.poller(stack)
            let (other, session) = try Self.poller(stack)
            let socket = try PlainSocket(stack.gateway.address)
            func get(_ query: String) throws -> HTTPResponseText {
                try HTTPResponseText.of("GET /.lp?\(query)", on: socket)
            }
            let wrong = [
                "id=\(poller.id)&pw=\(other.password)", "id=\(poller.id)&pw=", "id=\(session)&pw=\(poller.password)",
                "id=x&pw=\(poller.password)", "id=&pw=", "id=\(String(repeating: "_", count: 35))&pw=x",
                "id=\(String(repeating: "A", count: 20_000))&pw=x", "id=\(poller.id)A&pw=\(poller.password)",
            ]
            for query in wrong { #expect(try get(query).body == Self.close, "\(query.prefix(100))") }
            for query in ["disconn=t&id=\(poller.id)&pw=x", "disconn=t&id=x&pw=x"] {
                let response = try get(query)
                #expect(response.status == 200 && response.body.isEmpty)
            }
            let bad = [
                "", "pw=x", "id=x", "start=t", "start=t&cb=1]", "start=t&cb=alert(1)", "start=t&cb=-1",
                "\(poller.names)&seg0=x&ts0=1&d0=", "\(poller.names)&seg0=0&ts0=-1&d0=", "\(poller.names)&seg0=0&ts0=1",
                "dframe=t&id=%22&pw=x", "id=%zz&pw=x",
            ]
            for query in bad {
                let response = try get(query)
                #expect(response.status == 400 && response.headers["content-type"]?.hasPrefix("text/plain") == true)
                #expect(!response.body.contains("alert"))
            }
            let posting = try PlainSocket(stack.gateway.address)
            #expect(try HTTPResponseText.of("POST /.lp?\(poller.names)", body: "x", on: posting).status == 405)
            #expect(try HTTPResponseText.of("HEAD /.lp?\(poller.names)", on: socket).status == 405)
            let page = try get("dframe=t&\(poller.names)")
            #expect(page.headers["content-type"] == "text/html; charset=utf-8")
            #expect(page.body.contains("/.lp?disconn=t&id=\(poller.id)&pw=\(poller.password)"))
            try poller.request(1, "p", Self.set("/a", 1))
            #expect(try poller.response(to: 1)?["s"] == "ok")
        }
    }

    /// Each poller is new, and has sent nothing.
    @Test func segmentsArePutInOrderOrEndTheSession() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--event-loops", "3", "--poll-ms-max", "10000"]) {
            stack in
            let text = #"{"t":"d","d":{"r":1,"a":"p","b":{"p":"/a","d":"\#(String(repeating: "あ", count: 2_000))"}}}"#
            let data = FirebasePoller.segments(of: text)
            /// The scripts that come for these queries, each on a connection of its own.
            func responses(_ queries: [String]) throws -> (FirebasePoller, [String]) {
                let poller = try Self.poller(stack).poller
                let sockets = try queries.map { query in
                    let socket = try PlainSocket(stack.gateway.address)
                    try socket.send(
                        Array("GET /.lp?\(poller.names)\(query) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
                    return socket
                }
                return (poller, try sockets.map { try HTTPResponseText(next: $0).body })
            }
            let count = data.count
            let pieces = data.indices.map { "&seg0=\($0)&ts0=\(count)&d0=\(data[$0])" }
            // Overtaken, and some of them twice.
            let shuffled = Array(pieces.reversed()) + pieces.prefix(2) + [""]
            let (_, scripts) = try responses(shuffled)
            #expect(scripts.allSatisfy { $0.hasPrefix("pRTLPCB(") })
            #expect(scripts.joined().contains(#"{"t":"d","d":{"r":1,"b":{"s":"ok","d":""}}}"#))
            let wrong = [
                "&seg0=0&ts0=0&d0=e30.", "&seg0=0&ts0=1000001&d0=e30.", "&seg0=1000000&ts0=1&d0=e30.",
                "&seg0=0&ts0=1&d0=e3!.", "&seg0=0&ts0=1&d0=e", "&seg0=0&ts0=2&d0=e30.&seg1=1&ts1=3&d1=e30.",
                "&seg0=0&ts0=1&d0=e30.", "&seg0=0&ts0=1&d0=",
            ]
            for query in wrong {
                let (poller, scripts) = try responses([query])
                #expect(scripts[0].contains("pLPCommand('close'"), "\(query): \(scripts)")
                let next = try PlainSocket(stack.gateway.address)
                let ended = try HTTPResponseText.of("GET /.lp?\(poller.names)", on: next)
                #expect(ended.body.contains("pLPCommand('close'"), "\(query): \(ended)")
            }
        }
    }

    @Test func oneAddressHasABoundedNumberOfSessions() async throws {
        let options = ["--event-loops", "1", "--poll-sessions-per-address-max", "3"]
        try await GatewayStack.run(rules: Self.rules, options) { stack in
            var pollers = try (0..<3).map { _ in try Self.poller(stack).poller }
            let socket = try PlainSocket(stack.gateway.address)
            let refused = try HTTPResponseText.of("GET /.lp?start=t&cb=1", on: socket)
            #expect(refused.status == 503 && refused.headers["retry-after"] != nil)
            let left = pollers.removeLast()
            _ = try HTTPResponseText.of("GET /.lp?disconn=t&\(left.names)", on: socket)
            #expect(try left.message() == nil)
            _ = try Self.poller(stack)
        }
    }

    @Test func bytesOfOneAddressAreBounded() async throws {
        let options = ["--event-loops", "1", "--poll-bytes-per-address-max", "65536", "--segments-waiting-max", "4096"]
        try await GatewayStack.run(rules: Self.rules, options) { stack in
            let poller = try Self.poller(stack).poller
            let data = String(repeating: "A", count: 1_840)
            let socket = try PlainSocket(stack.gateway.address)
            var last = ""
            // The first segment never comes.
            for round in 0..<20 where !last.contains("close") {
                let query = (0..<8).map { "&seg\($0)=\(1 + round * 8 + $0)&ts\($0)=1000&d\($0)=\(data)" }.joined()
                try socket.send(
                    Array("GET /.lp?\(poller.names)\(query) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
                let next = try PlainSocket(stack.gateway.address)
                try next.send(Array("GET /.lp?\(poller.names) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
                last = try HTTPResponseText(next: socket).body
                if !last.contains("close") { #expect(round < 6, "64 KiB are held") }
            }
            #expect(last == Self.close)
        }
    }

    // MARK: The end

    @Test func sessionEndsWhenItsPageSaysSoOrAnotherTakesItsPlace() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--event-loops", "3", "--poll-ms-max", "1000"]) {
            stack in
            func poller(_ path: String) throws -> (poller: FirebasePoller, session: String) {
                let new = try Self.poller(stack)
                try new.poller.request(1, "o", Self.set(path, true))
                #expect(try new.poller.response(to: 1)?["s"] == "ok")
                return new
            }
            let left = try poller("/left").poller
            let socket = try PlainSocket(stack.gateway.address)
            #expect(try HTTPResponseText.of("GET /.lp?disconn=t&\(left.names)", on: socket).body.isEmpty)
            #expect(try left.message() == nil)
            try Self.await(true, at: "/left", stack)

            let former = try poller("/former")
            let next = try Self.poller(stack, "v=5&ns=hato&ls=\(former.session)")
            #expect(try former.poller.message() == nil)
            try Self.await(true, at: "/former", stack)

            let overSocket = try poller("/over-socket")
            _ = try FirebaseSocket(stack, target: "/.ws?v=5&ns=hato&ls=\(overSocket.session)")
            #expect(try overSocket.poller.message() == nil)
            try Self.await(true, at: "/over-socket", stack)

            let first = try FirebaseSocket(stack)
            let session = try #require(try first.message()?["d"]?["d"]?["s"]?.string)
            // Another secret at the same place ends nothing.
            let last: Character = session.hasSuffix("A") ? "B" : "A"
            _ = try FirebaseSocket(stack, target: "/.ws?v=5&ns=hato&ls=\(String(session.dropLast() + [last]))")
            try first.request(1, "o", Self.set("/socket", true))
            #expect(try first.response(to: 1)?["s"] == "ok")
            _ = try FirebaseSocket(stack, target: "/.ws?v=5&ns=hato&ls=\(session)")
            #expect(try first.message() == nil)
            try Self.await(true, at: "/socket", stack)

            try next.poller.request(1, "p", Self.set("/a", 1))
            #expect(try next.poller.response(to: 1)?["s"] == "ok")
        }
    }

    @Test func silentSessionEnds() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--poll-idle-ms-max", "5000", "--poll-ms-max", "200"]) {
            stack in
            let poller = try Self.poller(stack).poller
            try poller.request(1, "o", Self.set("/gone", true))
            #expect(try poller.response(to: 1)?["s"] == "ok")
            poller.isResting = true
            let socket = try PlainSocket(stack.gateway.address)
            try Self.await(true, at: "/gone", stack)
            #expect(try HTTPResponseText.of("GET /.lp?\(poller.names)", on: socket).body == Self.close)
        }
    }

    /// What a client has not fetched is merged by messages, and not kept by the gateway.
    @Test func clientThatDoesNotPollGetsTheNewestValueLater() async throws {
        try await GatewayStack.run(
            rules: Self.rules, ["--poll-idle-ms-max", "600000", "--idle-ms-max", "600000"]
        ) { stack in
            let poller = try Self.poller(stack).poller
            try poller.request(1, "q", ["p": "/big", "h": ""])
            #expect(try poller.response(to: 1)?["s"] == "ok")
            poller.isResting = true
            let writer = try FirebaseSocket(stack)
            _ = try writer.message()
            let (text, count) = (String(repeating: "x", count: 200_000), 150)
            for number in 1...count {
                try writer.request(number, "p", Self.set("/big", .string("\(number) \(text)")))
                #expect(try writer.response(to: number)?["s"] == "ok")
            }
            poller.isResting = false
            while let message = try poller.message() {
                if message["d"]?["b"]?["d"]?.string?.hasPrefix("\(count) ") == true { break }
            }
            #expect(poller.receivedBytes < 8_000_000, "30 MB were written")
        }
    }

    @Test func messagesThatDieCloseThePolls() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let (poller, _) = try Self.poller(stack)
            let (switched, session) = try Self.poller(stack)
            try switched.switchToSocket(stack, session: session)
            for client in [poller, switched] {
                try client.request(1, "p", Self.set("/a", 1))
                #expect(try client.response(to: 1)?["s"] == "ok")
            }
            stack.messages.send(9)
            for client in [poller, switched] { #expect(try client.message() == nil) }
            // A session that begins now is closed in its first response, behind the start.
            let socket = try PlainSocket(stack.gateway.address)
            let start = try HTTPResponseText.of("GET /.lp?start=t&cb=1&ns=hato", on: socket)
            #expect(start.status == 200 && start.body.contains("pLPCommand('start',"))
            #expect(start.body.contains("pRTLPCB(0,[]);\npLPCommand('close',0);"))
        }
    }

    @Test func unknownNamespaceIsShutDown() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let socket = try PlainSocket(stack.gateway.address)
            for namespace in ["a.b", "%ff"] {
                let start = try HTTPResponseText.of("GET /.lp?start=t&cb=1&ns=\(namespace)", on: socket)
                #expect(start.body.contains(#"pRTLPCB(0,[{"t":"c","d":{"t":"s","d":"Firebase error."#))
            }
        }
    }

    @Test func pollersAreClosedWhenTheGatewayStops() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--event-loops", "3", "--poll-ms-max", "600000"]) {
            stack in
            let pollers = try (0..<20).map { _ in try Self.poller(stack).poller }
            let (switched, session) = try Self.poller(stack)
            try switched.switchToSocket(stack, session: session)
            try switched.request(1, "p", Self.set("/a", 1))
            #expect(try switched.response(to: 1)?["s"] == "ok")
            stack.gateway.send(15)
            for poller in pollers { #expect(try poller.message() == nil) }
            #expect(try switched.message() == ["t": "c", "d": ["t": "r", "d": "localhost"]])
            #expect(try switched.message() == nil)
            #expect(stack.gateway.waitForExitCode() == 0)
        }
    }
}
