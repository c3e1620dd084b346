import HatoModel
import HatoTesting
import Testing

/// Places of polling sessions, and the headers of responses to polls, of the built gateway.
@Suite(.timeLimit(.minutes(10)))
struct PollingPlaces {
    private static let rules: JSONValue = ["rules": [".read": true, ".write": true]]

    /// Behind a proxy, all browsers are one address: those that have switched to sockets must not lock others out.
    @Test func aSocketGivesThePlaceOfItsPollingSessionBack() async throws {
        let options = ["--event-loops", "1", "--poll-sessions-per-address-max", "1", "--poll-ms-max", "1000"]
        try await GatewayStack.run(rules: Self.rules, options) { stack in
            let socket = try PlainSocket(stack.gateway.address)
            var switched: [FirebasePoller] = []
            for number in 1...3 {
                let poller = try FirebasePoller(stack)
                let session = try #require(try poller.message()?["d"]?["d"]?["s"]?.string)
                #expect(try HTTPResponseText.of("GET /.lp?start=t&cb=1", on: socket).status == 503)
                try poller.switchToSocket(stack, session: session)
                try poller.request(1, "p", ["p": "/a", "d": .number(Double(number))])
                #expect(try poller.response(to: 1)?["s"] == "ok")
                switched.append(poller)
            }
            // Each has its session, and the end of one gives nothing back twice.
            switched.removeFirst().cut()
            for poller in switched {
                try poller.request(2, "p", ["p": "/a", "d": 9])
                #expect(try poller.response(to: 2)?["s"] == "ok")
            }
            let last = try FirebasePoller(stack)
            _ = try last.message()
            #expect(try HTTPResponseText.of("GET /.lp?start=t&cb=1", on: socket).status == 503)
        }
    }

    @Test func noResponseIsKept() async throws {
        let options = ["--event-loops", "1", "--poll-sessions-per-address-max", "1", "--poll-ms-max", "1000"]
        try await GatewayStack.run(rules: Self.rules, options) { stack in
            let poller = try FirebasePoller(stack)
            _ = try poller.message()
            let socket = try PlainSocket(stack.gateway.address)
            let requests = [
                ("GET /.lp?start=t&cb=1", 503), ("GET /.lp?start=t", 400), ("GET /.lp?dframe=t&id=%22&pw=x", 400),
                ("GET /.lp?\(poller.names)&seg1=1&ts1=1&d1=", 400), ("HEAD /.lp?start=t&cb=1", 405),
                ("GET /.lp?dframe=t&\(poller.names)", 200),
            ]
            for (request, status) in requests {
                let response = try HTTPResponseText.of(request, on: socket)
                #expect(response.status == status && response.headers["cache-control"] == "no-store", "\(request)")
                // Pages that require it of themselves show no frame without it.
                let policy = response.headers["cross-origin-embedder-policy"]
                #expect(policy == (status == 200 ? "require-corp" : nil), "\(request)")
            }
        }
    }
}
