import HatoModel
import HatoTesting
import Testing

/// REST and event streams of the built gateway (spec realtime-database §7).
@Suite(.timeLimit(.minutes(10)))
struct GatewayRequests {
    private static let rules: JSONValue = [
        "rules": [".read": "auth != null", ".write": "auth != null", "messages": [".indexOn": "date"]]
    ]

    @Test func everyMethodReadsAndWrites() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let (socket, token) = (try PlainSocket(stack.gateway.address), try stack.newToken().token)
            func response(_ request: String, _ headers: [String] = [], body: String? = nil) throws -> HTTPResponseText {
                try HTTPResponseText.of(request, headers, body: body, on: socket)
            }
            let denied = try response("GET /rooms.json")
            #expect(denied.status == 401 && denied.json?["error"] == "Permission denied")
            #expect(denied.headers["access-control-allow-origin"] == "*")
            let bearer = ["Authorization: Bearer \(token)"]
            let put = try response("PUT /rooms/r1.json?auth=\(token)", body: #"{"name":"家族","n":1}"#)
            #expect(put.status == 200 && put.json == ["name": "家族", "n": 1])
            #expect(try response("GET /rooms/r1/n.json", bearer).body == "1")
            #expect(try response("PATCH /rooms/r1.json", bearer, body: #"{"n":2,"a/b":true}"#).status == 200)
            let pushed = try response("POST /rooms/r1/list.json", bearer, body: "3")
            #expect(pushed.json?["name"]?.string?.utf8.count == 20)
            let keys = try response("GET /rooms/r1.json?shallow=true", bearer)
            #expect(keys.json == ["a": true, "list": true, "n": true, "name": true])
            let head = try response("HEAD /rooms/r1.json", bearer)
            #expect(head.status == 200 && head.body.isEmpty && head.headers["content-length"] != "0")
            let silent = try response("PUT /rooms/r1/n.json?print=silent", bearer, body: "3")
            #expect(silent.status == 204 && silent.headers["content-length"] == nil)
            #expect(
                try response("POST /rooms/r1/n.json", bearer + ["X-HTTP-Method-Override: DELETE"], body: "").status
                    == 200)
            #expect(try response("GET /rooms/r1/n.json", bearer).body == "null")
            let wrong = try response("PUT /rooms/r1.json", bearer, body: #"{"a.b":1}"#)
            #expect(wrong.status == 400 && wrong.json?["error"]?.string?.contains("1:2") == true)
            #expect(try response("GET /rooms/r1", bearer).status == 404)
            #expect(try response("OPTIONS /rooms/r1.json", ["Access-Control-Request-Method: PUT"]).status == 204)
        }
    }

    /// As firebase-admin runs transactions, one request after the other.
    @Test func conditionsHold() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let socket = try PlainSocket(stack.gateway.address)
            let bearer = ["Authorization: Bearer \(ServingProgram.administratorKey)"]
            let first = try HTTPResponseText.of("GET /n.json", bearer + ["X-Firebase-ETag: true"], on: socket)
            #expect(first.headers["etag"] == "null_etag")
            let set = try HTTPResponseText.of("PUT /n.json", bearer + ["if-match: null_etag"], body: "1", on: socket)
            #expect(set.status == 200 && set.headers["etag"]?.isEmpty == false)
            let stale = try HTTPResponseText.of("PUT /n.json", bearer + ["if-match: null_etag"], body: "2", on: socket)
            #expect(stale.status == 412 && stale.body == "1" && stale.headers["etag"] == set.headers["etag"])
            let etag = set.headers["etag"] ?? ""
            #expect(
                try HTTPResponseText.of("GET /n.json", bearer + ["if-none-match: \(etag)"], on: socket).status == 304)
        }
    }

    /// Of two writes under one condition that are under way at once, one is made.
    @Test func oneOfTwoWritesUnderOneConditionIsMade() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--event-loops", "2"]) { stack in
            let bearer = ["Authorization: Bearer \(ServingProgram.administratorKey)"]
            let sockets = try (0..<2).map { _ in try PlainSocket(stack.gateway.address) }
            var etag = "null_etag"
            for round in 0..<100 {
                for (index, socket) in sockets.enumerated() {
                    try HTTPResponseText.request(
                        "PUT /n.json", bearer + ["if-match: \(etag)"], body: "\(2 * round + index)", on: socket)
                }
                let responses = try sockets.map { try HTTPResponseText(next: $0) }
                let made = try #require(responses.firstIndex { $0.status == 200 })
                // The other one gets what was written.
                #expect(responses[1 - made].status == 412 && responses[1 - made].body == "\(2 * round + made)")
                etag = try #require(responses[made].headers["etag"])
                #expect(responses[1 - made].headers["etag"] == etag)
            }
        }
    }

    @Test func anEventStreamFollowsTheNode() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let (stream, writer) = (try PlainSocket(stack.gateway.address), try PlainSocket(stack.gateway.address))
            let bearer = ["Authorization: Bearer \(ServingProgram.administratorKey)"]
            let lines = ["GET /rooms.json HTTP/1.1", "Host: localhost", "Accept: text/event-stream"] + bearer
            try stream.send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8))
            let head = try HTTPResponseText(headOf: stream)
            #expect(head.status == 200 && head.headers["content-type"] == "text/event-stream; charset=utf-8")
            func events(until end: String) throws -> String {
                var text = ""
                while !text.contains(end) { text += String(decoding: try stream.bytes(1), as: UTF8.self) }
                return text
            }
            #expect(try events(until: "\n\n").contains("event: put\ndata: {\"path\":\"/\",\"data\":null}"))
            _ = try HTTPResponseText.of("PUT /rooms/r1.json", bearer, body: #"{"n":1}"#, on: writer)
            #expect(try events(until: "\n\n").contains("event: put\ndata: {\"path\":\"/r1\",\"data\":{\"n\":1}}"))
        }
    }

    @Test func wrongHeadsAreRefused() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let long = String(repeating: "x", count: 40_000)
            for head in [
                "GET /\(long).json HTTP/1.1\r\n\r\n", "NONSENSE\r\n\r\n", "GET / HTTP/1.1\r\nA: \(long)\r\n\r\n",
            ] {
                let socket = try PlainSocket(stack.gateway.address)
                try socket.send(Array(head.utf8))
                #expect((400..<500).contains(try HTTPResponseText(headOf: socket).status))
            }
            let socket = try PlainSocket(stack.gateway.address)
            let health = try HTTPResponseText.of("GET /healthz", on: socket)
            #expect(health.status == 200)
        }
    }

    /// Requests that come together, and heads that need more than one response or none with a body.
    @Test func oneConnectionTakesRequestsInTurn() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let socket = try PlainSocket(stack.gateway.address)
            let bearer = ["Authorization: Bearer \(ServingProgram.administratorKey)"]
            let text = String(repeating: "あ", count: 20_000)
            let put = ["PUT /long.json?print=silent HTTP/1.1", "Host: localhost", "Expect: 100-continue"] + bearer
            let body = "\"\(text)\""
            let head = (put + ["Content-Length: \(body.utf8.count)"]).joined(separator: "\r\n") + "\r\n\r\n"
            try socket.send(Array(head.utf8))
            #expect(try HTTPResponseText(headOf: socket).status == 100)
            try socket.send(Array(body.utf8))
            #expect(try HTTPResponseText(headOf: socket).status == 204)
            // A HEAD has a length and no body, compressed or not.
            let gzip = ["Accept-Encoding: gzip"] + bearer
            #expect(try HTTPResponseText.of("HEAD /long.json", gzip, on: socket).status == 200)
            let short = try HTTPResponseText.of("GET /long/none.json", gzip, on: socket)
            #expect(short.body == "null" && short.headers["content-encoding"] == nil)
            #expect(try HTTPResponseText.of("GET /long.json", bearer, on: socket).body == body)
            let request =
                (["GET /none.json HTTP/1.1", "Host: localhost"] + bearer).joined(separator: "\r\n") + "\r\n\r\n"
            try socket.send(Array(String(repeating: request, count: 20).utf8))
            for _ in 0..<20 {
                let response = try HTTPResponseText(headOf: socket)
                #expect(response.status == 200)
                _ = try socket.bytes(4)
            }
            // Each has its response without a call, and in one read there are hundreds.
            try socket.send(Array(String(repeating: "GET / HTTP/1.1\r\nHost: l\r\n\r\n", count: 4_000).utf8))
            for _ in 0..<4_000 {
                let response = try HTTPResponseText(headOf: socket)
                #expect(response.status == 404)
                _ = try socket.bytes(response.headers["content-length"].flatMap { Int($0) } ?? 0)
            }
        }
    }

    @Test func theLastResponseArrivesWhole() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let bearer = ["Authorization: Bearer \(ServingProgram.administratorKey)"]
            let body = "\"\(String(repeating: "x", count: 4_000_000))\""
            let writer = try PlainSocket(stack.gateway.address)
            #expect(
                try HTTPResponseText.of("PUT /long.json?print=silent", bearer, body: body, on: writer).status == 204)
            for closing in ["Connection: close", "Upgrade: h2c"] {
                let reader = try PlainSocket(stack.gateway.address)
                let response = try HTTPResponseText.of("GET /long.json", bearer + [closing], on: reader)
                #expect(response.body == body && response.headers["connection"] == "close")
                #expect(reader.isClosed())
            }
            // A request behind one that ends the connection is not carried out.
            let socket = try PlainSocket(stack.gateway.address)
            let first = "POST /long HTTP/1.1\r\nHost: l\r\nContent-Length: 5\r\n\r\nhello"
            let second = "PUT /late.json HTTP/1.1\r\nHost: l\r\n\(bearer[0])\r\nContent-Length: 1\r\n\r\n1"
            try socket.send(Array((first + second).utf8))
            #expect(try HTTPResponseText(headOf: socket).status == 404)
            #expect(try HTTPResponseText.of("GET /late.json", bearer, on: writer).body == "null")
        }
    }
}
