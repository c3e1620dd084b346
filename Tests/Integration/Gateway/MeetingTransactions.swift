import Crypto
import HatoModel
import HatoTesting
import Testing

/// Transactions of two clients that meet at one counter, again and again (spec realtime-database §8.6).
@Suite(.timeLimit(.minutes(10)))
struct MeetingTransactions {
    private static let rules: JSONValue = ["rules": [".read": true, ".write": true]]
    /// More than the 25 tries of a transaction in an SDK.
    private static let rounds = 60

    /// A client with its view of the counter, which pushes change.
    private struct Client {
        let socket: FirebaseSocket
        private(set) var count: Double = 0
        private var number = 1

        init(_ stack: GatewayStack) throws {
            socket = try FirebaseSocket(stack)
            _ = try socket.message()
            try socket.request(1, "q", ["p": "/count", "h": ""])
            #expect(try status() == "ok")
        }

        /// Sends what a transaction makes of its view.
        mutating func add() throws {
            number += 1
            let hash = count == 0 ? "" : Self.hash(of: count)
            try socket.request(number, "p", ["p": "/count", "d": .number(count + 1), "h": .string(hash)])
        }

        /// The status of the newest request; what is pushed before its response is the new view.
        mutating func status() throws -> JSONValue? {
            while let data = try socket.message()?["d"] {
                if data["r"] == .number(Double(number)) { return data["b"]?["s"] }
                count = data["b"]?["d"]?.number ?? 0
            }
            return nil
        }

        private static func hash(of number: Double) -> String {
            let digits = String(number.bitPattern, radix: 16)
            let text = "number:" + String(repeating: "0", count: 16 - digits.count) + digits
            return Base64.standard.encode(Array(Insecure.SHA1.hash(data: Array(text.utf8)))) + "="
        }
    }

    /// Both try at once with what both have: one of them succeeds, and the other one gets the new value before its
    /// refusal. So each round takes one round trip.
    @Test func ofTwoThatTryAtOnceOneSucceeds() async throws {
        try await GatewayStack.run(rules: Self.rules, ["--event-loops", "2"]) { stack in
            var clients = [try Client(stack), try Client(stack)]
            for round in 1...Self.rounds {
                let order = round % 2 == 0 ? [0, 1] : [1, 0]
                for index in order { try clients[index].add() }
                let statuses = try order.map { try clients[$0].status() }
                #expect(Set(statuses) == ["ok", "datastale"], "round \(round)")
                #expect(clients.map(\.count) == [Double(round), Double(round)])
            }
        }
    }

    /// Of many transactions that are sent in one piece, the first one succeeds; the others compare what was before.
    @Test func ofManyWithOneHashOneSucceeds() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let socket = try FirebaseSocket(stack)
            _ = try socket.message()
            for number in 1...Self.rounds {
                try socket.request(number, "p", ["p": "/once", "d": .number(Double(number)), "h": ""])
            }
            for number in 1...Self.rounds {
                let message = try socket.message()
                #expect(message?["d"]?["r"] == .number(Double(number)))
                #expect(message?["d"]?["b"]?["s"] == (number == 1 ? "ok" : "datastale"))
            }
            try socket.request(100, "g", ["p": "/once", "q": [:]])
            #expect(try socket.response(to: 100)?["d"] == 1)
        }
    }
}
