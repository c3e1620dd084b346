import HatoModel
import HatoRPC
import HatoTesting

/// The cost of rules: a member posts messages under the rules of a chat; in turn with these posts an administrator
/// posts the same messages into a stack with its initial rules, which are not evaluated for administrators; and Redis.
struct RulesBench: Sendable {
    private static let shapes = [LoadShape(64, 1), LoadShape(4, 64)]
    private static let rooms = ChatRooms(names: (0..<97).map { "bench\($0)" })

    var settings: BenchSettings
    /// With the rules of a chat.
    var ruled: TestStack
    /// With its initial rules.
    var open: TestStack

    func rows() async throws -> Table {
        var table = Table()
        let member = try await ruled.newUser()
        for stack in [ruled, open] { try await Self.rooms.admit(member.uid, on: stack) }
        let redis = try RedisServer.start()
        defer { redis?.stop() }
        for shape in Self.shapes {
            let posts = Posts(
                lines: Self.rooms.posts(as: member.uid), ruledPort: ruled.configuration(.messages).port,
                memberToken: member.idToken, openPort: open.configuration(.messages).port,
                administratorKey: open.administratorKey)
            let settings = settings
            let rows = try await Blocking.run { try Self.inTurn(shape, settings, posts, redis) }
            for row in rows { table.add(row) }
        }
        return table
    }

    private struct Posts: Sendable {
        var lines: [[UInt8]]
        var ruledPort: Int
        var memberToken: String
        var openPort: Int
        var administratorKey: String
    }

    private static func inTurn(
        _ shape: LoadShape, _ settings: BenchSettings, _ posts: Posts, _ server: RedisServer?
    ) throws -> [Table.Row] {
        var open = try RawLoad(at: posts.openPort, as: posts.administratorKey, shape, requests: posts.lines)
        defer { open.close() }
        var ruled = try RawLoad(at: posts.ruledPort, as: posts.memberToken, shape, requests: posts.lines)
        defer { ruled.close() }
        var redis = try server.map { try RedisLoad($0, shape) }
        defer { redis?.close() }
        try open.warmUp()
        try ruled.warmUp()
        try redis?.warmUp()
        var windows: (open: [Window], ruled: [Window]) = ([], [])
        for _ in 0..<settings.windows {
            try redis?.measure(seconds: settings.seconds)
            windows.open.append(try open.window(seconds: settings.seconds))
            windows.ruled.append(try ruled.window(seconds: settings.seconds))
        }
        let openRow = Table.Row("rules: none asked, \(shape)", Window(mediansOf: windows.open), "posts/s")
        var ruledRow = Table.Row("rules: of a chat, \(shape)", Window(mediansOf: windows.ruled), "posts/s")
        let perSecond = windows.ruled.map(\.perSecond)
        if let redis {
            ruledRow.ratio = (perSecond.ratio(to: redis.windows.map(\.perSecond)), "Redis")
            if shape.clients == 64 { ruledRow.goals.append(Goal(.ratio, .atLeast(0.75))) }
        }
        if shape.depth > 1 { ruledRow.goals.append(Goal(.value, .atLeast(60_000))) }
        let cost = 100 * (1 - perSecond.ratio(to: windows.open.map(\.perSecond)))
        let costRow = Table.Row(
            what: "rules: what they cost of posts/s, \(shape)", value: cost, unit: "%",
            goals: [Goal(.value, .atMost(15))])
        return (redis.map { [$0.row] } ?? []) + [openRow, ruledRow, costRow]
    }
}
