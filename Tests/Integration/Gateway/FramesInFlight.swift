import HatoModel
import HatoTesting
import Testing

/// Clients that send many requests before they read: each has its response in the order of the requests, and an own
/// write is pushed before its response (spec realtime-database §8.5).
@Suite(.timeLimit(.minutes(10)))
struct FramesInFlight {
    private static let rules: JSONValue = [
        "rules": [".read": true, ".write": true, "room": ["n": [".validate": "newData.isNumber()"]]]
    ]

    private struct Request {
        var action: String
        var body: JSONValue
        /// The word of its response, and the data if these matter.
        var word = "ok"
        var data: JSONValue?
        /// What is pushed before its response, and not before that of an earlier write.
        var push: JSONValue?

        init(
            _ action: String, _ body: JSONValue, _ word: String = "ok", data: JSONValue? = nil, push: JSONValue? = nil
        ) {
            (self.action, self.body, self.word, self.data, self.push) = (action, body, word, data, push)
        }
    }

    private static func put(_ value: JSONValue) -> JSONValue { ["p": "/room/n", "d": value] }

    private static func pushed(_ path: String, _ value: JSONValue) -> JSONValue {
        ["a": "d", "b": ["p": .string(path), "d": value]]
    }

    private static let requests: [Request] = [
        Request("q", ["p": "/room", "h": ""], push: pushed("room", nil)),
        Request("p", put(1), push: pushed("room/n", 1)), Request("g", ["p": "/room", "q": [:]], data: ["n": 1]),
        Request("p", put("no number"), "permission_denied"),
        Request(
            "m", ["p": "/room", "d": ["n": 2, "m": 3]], push: ["a": "m", "b": ["p": "room", "d": ["n": 2, "m": 3]]]),
        Request("p", ["p": "/room/n", "d": 5, "h": "no hash"], "datastale"), Request("nonsense", [:], "failure"),
        Request("p", put(4), push: pushed("room/n", 4)),
        Request("g", ["p": "/room", "q": [:]], data: ["n": 4, "m": 3]), Request("o", ["p": "/gone", "d": 1]),
        Request("p", put(nil), push: pushed("room/n", nil)), Request("s", ["c": [:]]),
    ]

    @Test(arguments: [FirebaseTransport.socket, .polls])
    func responsesKeepTheOrderOfTheRequests(transport: FirebaseTransport) async throws {
        try await GatewayStack.run(rules: Self.rules, ["--poll-ms-max", "1000"]) { stack in
            for _ in 0..<10 {
                let client: any FirebaseClient =
                    if transport == .polls { try FirebasePoller(stack) } else { try FirebaseSocket(stack) }
                _ = try client.message()
                for (index, request) in Self.requests.enumerated() {
                    try client.request(index + 1, request.action, request.body)
                }
                var (next, pushes) = (0, [JSONValue]())
                while next < Self.requests.count {
                    let data = try #require(try client.message()?["d"])
                    guard let number = data["r"] else {
                        pushes.append(data)
                        continue
                    }
                    let request = Self.requests[next]
                    next += 1
                    #expect(number == .number(Double(next)) && data["b"]?["s"] == .string(request.word))
                    if let expected = request.data { #expect(data["b"]?["d"]?.fits(expected) == true) }
                    // Those of writes behind it may have come, too.
                    let expected = Self.requests.compactMap(\.push)
                    let due = Self.requests[..<next].compactMap(\.push).count
                    #expect((due...expected.count).contains(pushes.count))
                    #expect(zip(pushes, expected).allSatisfy { $0.fits($1) })
                }
                let last = Self.requests.count + 1
                try client.request(last, "p", ["p": "/room", "d": nil])
                #expect(try client.response(to: last)?["s"] == "ok")
            }
        }
    }

    /// Each of them sees its own writes before their responses, and in the end all of both.
    @Test func twoClientsSendAtOnce() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--event-loops", "2"]) { stack in
            let count = 200
            let names = ["a", "b"]
            let clients = try names.map { _ in try FirebaseSocket(stack) }
            for client in clients {
                _ = try client.message()
                try client.request(1, "q", ["p": "/room", "h": ""])
                #expect(try client.response(to: 1)?["s"] == "ok")
            }
            for number in 2...count {
                for (name, client) in zip(names, clients) {
                    try client.request(
                        number, "p", ["p": .string("/room/\(name)/\(number)"), "d": .number(Double(number))])
                }
            }
            for (name, client) in zip(names, clients) {
                var (seen, responses) = (Set<String>(), [Int]())
                func note(_ path: String, _ value: JSONValue) {
                    guard let members = value.object?.members else { return _ = seen.insert(path) }
                    for member in members { note("\(path)/\(member.name)", member.value) }
                }
                while seen.count < 2 * (count - 1) || responses.count < count - 1 {
                    let data = try #require(try client.message()?["d"])
                    if let number = data["r"]?.integer {
                        #expect(data["b"]?["s"] == "ok" && seen.contains("room/\(name)/\(number)"))
                        responses.append(Int(number))
                    } else {
                        note(data["b"]?["p"]?.string ?? "", data["b"]?["d"] ?? nil)
                    }
                }
                #expect(responses == Array(2...count))
            }
        }
    }
}
