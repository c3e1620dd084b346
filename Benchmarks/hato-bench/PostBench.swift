import HatoModel
import HatoRPC
import HatoTesting

/// Durable pushes of a chat message of about 200 bytes and four fields into rooms indexed by date.
struct PostBench: Sendable {
    static let loads = [(clients: 1, depth: 1), (16, 1), (64, 1), (4, 64)]

    var settings: BenchSettings
    var stack: TestStack
    /// Redis' posts/s by the name of the load.
    var redis: [String: Double]

    func measure(_ table: inout Table) async throws {
        let params = (0..<4_096).map { Self.params(room: "bench\($0 % 97)", number: $0) }
        for (clients, depth) in Self.loads {
            let user = try await stack.newUser()
            let load = ClientLoad(
                clients: (0..<clients).map { _ in stack.client(.messages, as: .user(idToken: user.idToken)) },
                depth: depth, method: "messages.push", params: params)
            let window = try await load.windows(settings)
            let name = Self.name(clients, depth)
            let compared = redis[name].map { "\(Self.ratio(window.perSecond, $0)) of Redis, AOF always" }
            table.add("posts: \(name)", window.rate, latency: window.latencies, note: compared ?? "")
            for client in load.clients { await client.close() }
        }
    }

    static func name(_ clients: Int, _ depth: Int) -> String {
        depth == 1 ? "\(clients) clients" : "\(clients) clients, \(depth) in flight each"
    }

    static func ratio(_ one: Double, _ other: Double) -> String {
        "\(Double(Int(one / max(other, 1) * 100)) / 100) ×"
    }

    static func params(room: String, number: Int) -> EncodedJSON {
        EncodedJSON(.object(["path": .string("/chats/\(room)/messages"), "value": message(number)]))
    }

    static func message(_ number: Int, text: String? = nil) -> JSONValue {
        let filled = text ?? "Message \(number) " + String(repeating: "いま帰る ", count: 7)
        return [
            "date": .number(Double(1_795_000_000_000 + number)), "senderId": .string("user\(number % 1_000)"),
            "senderName": "マスオさん", "text": .string(filled),
        ]
    }
}
