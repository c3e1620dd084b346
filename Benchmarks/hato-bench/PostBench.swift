import HatoModel
import HatoRPC
import HatoTesting

/// Durable pushes of a chat message into an indexed room; in turn with them, from the same generator, Redis' XADD of
/// 200 bytes to one stream, each synced before its response. Then pushes into many rooms, where neighbours in a group
/// are not neighbours in the store.
struct PostBench: Sendable {
    private static let shapes = [LoadShape(1, 1), LoadShape(16, 1), LoadShape(64, 1), LoadShape(4, 64)]

    var settings: BenchSettings
    var stack: TestStack

    func rows() async throws -> Table {
        var table = Table()
        let token = try await stack.newUser().idToken
        let redis = try RedisServer.start()
        defer { redis?.stop() }
        for shape in Self.shapes {
            let (settings, port) = (settings, stack.configuration(.messages).port)
            let rows = try await Blocking.run {
                let ours = try RawLoad(at: port, as: token, shape, requests: Self.lines(ChatRequests.pushesIntoOneRoom))
                return try Self.inTurn(shape, settings, ours, redis)
            }
            for row in rows { table.add(row) }
        }
        for shape in Self.shapes.suffix(2) {
            let (settings, port) = (settings, stack.configuration(.messages).port)
            let window = try await Blocking.run {
                var load = try RawLoad(at: port, as: token, shape, requests: Self.lines(ChatRequests.pushes))
                defer { load.close() }
                return try load.windows(settings)
            }
            table.add("posts into 97 rooms: \(shape)", window, "posts/s")
        }
        for shape in Self.shapes {
            let load = ClientLoad(
                clients: (0..<shape.clients).map { _ in stack.client(.messages, as: .user(idToken: token)) },
                depth: shape.depth, method: Messages.Push.method, params: ChatRequests.pushesIntoOneRoom)
            table.add("posts: \(shape), public client", try await load.windows(settings), "posts/s")
            await load.close()
        }
        return table
    }

    private static func lines(_ pushes: [EncodedJSON]) -> [[UInt8]] {
        pushes.map { ChatRequests.line(Messages.Push.method, $0.bytes) }
    }

    private static func inTurn(
        _ shape: LoadShape, _ settings: BenchSettings, _ ours: RawLoad, _ server: RedisServer?
    ) throws -> [Table.Row] {
        var ours = ours
        defer { ours.close() }
        var redis = try server.map { try RedisLoad($0, shape) }
        defer { redis?.close() }
        var windows: [Window] = []
        try ours.warmUp()
        try redis?.warmUp()
        for _ in 0..<settings.windows {
            try redis?.measure(seconds: settings.seconds)
            windows.append(try ours.window(seconds: settings.seconds))
        }
        var row = Table.Row("posts: \(shape)", Window(mediansOf: windows), "posts/s")
        if let redis {
            row.ratio = (windows.map(\.perSecond).ratio(to: redis.windows.map(\.perSecond)), "Redis")
            if shape.clients == 64 { row.goals.append(Goal(.ratio, .atLeast(0.5))) }
        }
        if shape.depth > 1 { row.goals.append(Goal(.value, .atLeast(40_000))) }
        return (redis.map { [$0.row] } ?? []) + [row]
    }
}
