import HatoModel
import HatoRPC
import HatoTesting

/// Newest messages by date, through the index, in a large room.
struct ReadBench: Sendable {
    private static let room = "large"

    var settings: BenchSettings
    var stack: TestStack

    func rows() async throws -> Table {
        var table = Table()
        try await fill(Self.room)
        let token = try await stack.newUser().idToken
        let (settings, port) = (settings, stack.configuration(.messages).port)
        let floor = try await Blocking.run { try Floors.wakeUp(seconds: settings.seconds) }
        table.add("floor: wake-up, just before the reads", floor, "/s")
        for limit in [1, 50] {
            for clients in [1, 64] {
                let window = try await Blocking.run {
                    let request = ChatRequests.line(
                        Messages.Get.method, ChatRequests.newest(limit, room: Self.room).bytes)
                    var load = try RawLoad(at: port, as: token, LoadShape(clients, 1), requests: [request])
                    defer { load.close() }
                    return try load.windows(settings)
                }
                table.add(
                    name(limit, clients), window, "reads/s", goals: Self.goals(limit, clients, floor: floor.p50))
            }
        }
        for limit in [1, 50] {
            for clients in [1, 64] {
                let load = ClientLoad(
                    clients: (0..<clients).map { _ in stack.client(.messages, as: .user(idToken: token)) }, depth: 1,
                    method: Messages.Get.method, params: [ChatRequests.newest(limit, room: Self.room)])
                table.add("\(name(limit, clients)), public client", try await load.windows(settings), "reads/s")
                await load.close()
            }
        }
        return table
    }

    private func name(_ limit: Int, _ clients: Int) -> String {
        "reads: newest \(limit) of \(Figure.text(Double(settings.roomSize))), \(LoadShape(clients, 1))"
    }

    /// One client measures the duration of a read, many measure the reads a second.
    private static func goals(_ limit: Int, _ clients: Int, floor: Double) -> [Goal] {
        switch (limit, clients) {
        case (1, 1): [Goal(.p50, .atMost(floor + 150))]
        case (1, _): [Goal(.value, .atLeast(15_000))]
        case (_, 1): [Goal(.p50, .atMost(500))]
        default: []
        }
    }

    /// Makes the large room.
    func fill(_ room: String) async throws {
        let client = stack.client(.messages, as: .administrator)
        let page = 1_000
        let start = Clock.now()
        for first in stride(from: 0, to: settings.roomSize, by: page) {
            var values = JSONObject()
            for number in first..<min(first + page, settings.roomSize) {
                values.append("m\(10_000_000 + number)", ChatRequests.message(number))
            }
            let params: JSONObject = ["path": .string("/chats/\(room)/messages"), "values": .object(values)]
            _ = try await client.call(method: Messages.Update.method, params: params)
        }
        await client.close()
        let seconds = Double(Clock.now() - start) / 1e9
        Progress.say("a room of \(Figure.text(Double(settings.roomSize))) messages, made in \(Figure.text(seconds)) s")
    }
}
