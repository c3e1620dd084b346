import HatoModel
import HatoRPC
import HatoTesting

/// Newest messages by date, through the index, in a room of 100,000.
struct ReadBench: Sendable {
    static let roomSize = 100_000

    var settings: BenchSettings
    var stack: TestStack

    func measure(_ table: inout Table) async throws {
        try await fill()
        let user = try await stack.newUser()
        for limit in [1, 50] {
            for clients in [1, 64] {
                let load = ClientLoad(
                    clients: (0..<clients).map { _ in stack.client(.messages, as: .user(idToken: user.idToken)) },
                    depth: 1, method: "messages.get",
                    params: [
                        EncodedJSON(
                            "{\"path\":\"/chats/large/messages\",\"query\":{\"orderBy\":\"date\",\"limitToLast\":\(limit)}}"
                        )
                    ])
                let window = try await load.windows(settings)
                let what = "reads: newest \(limit) of \(Rate.text(Double(Self.roomSize))), \(clients) clients"
                table.add(what, window.rate, latency: window.latencies)
                for client in load.clients { await client.close() }
            }
        }
    }

    private func fill() async throws {
        let client = stack.client(.messages, as: .administrator)
        let page = 1_000
        for first in stride(from: 0, to: Self.roomSize, by: page) {
            var values = JSONObject()
            for number in first..<first + page { values.append("m\(1_000_000 + number)", PostBench.message(number)) }
            _ = try await client.call(
                method: "messages.update", params: ["path": "/chats/large/messages", "values": .object(values)])
        }
        await client.close()
        Progress.say("the room of \(Rate.text(Double(Self.roomSize))) is filled")
    }
}
