import HatoModel
import HatoRPC
import HatoTesting

/// Durable pushes of a chat message into indexed rooms; in turn with them, from the same generator, Redis' XADD of 200
/// bytes, each synced before it is answered.
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
            let outcome = try await Blocking.run {
                try Self.inTurn(shape, settings, try Self.load(shape, port: port, token: token), redis)
            }
            Self.add(outcome, of: shape, to: &table)
        }
        for shape in Self.shapes {
            let load = ClientLoad(
                clients: (0..<shape.clients).map { _ in stack.client(.messages, as: .user(idToken: token)) },
                depth: shape.depth, method: Messages.Push.method, params: ChatRequests.pushes)
            table.add("posts: \(shape), public client", try await load.windows(settings), "posts/s")
            await load.close()
        }
        return table
    }

    /// Clients that have signed in.
    private static func load(_ shape: LoadShape, port: Int, token: String) throws -> RawLoad {
        let sockets = try (0..<shape.clients).map { _ in try RawSocket(port: port, signedInWith: token) }
        let requests = ChatRequests.pushes.map { ChatRequests.line(Messages.Push.method, $0.bytes) }
        return try RawLoad(sockets, depth: shape.depth, requests: requests, .jsonRPC)
    }

    // MARK: Beside Redis

    private struct Outcome: Sendable {
        var ours: [Window] = []
        var redis: [Window] = []
        /// Posts/s as redis-benchmark drives Redis.
        var redisBenchmark: [Double] = []
    }

    private static func inTurn(
        _ shape: LoadShape, _ settings: BenchSettings, _ ours: RawLoad, _ server: RedisServer?
    ) throws -> Outcome {
        var ours = ours
        defer { ours.close() }
        var redis = try server.map { server in
            try RawLoad(
                (0..<shape.clients).map { _ in try RawSocket(port: server.port) }, depth: shape.depth,
                requests: [RedisServer.post], .redis)
        }
        defer { redis?.close() }
        var outcome = Outcome()
        _ = try ours.window(seconds: 0.5)
        _ = try redis?.window(seconds: 0.5)
        for _ in 0..<settings.windows {
            if let server, let window = try redis?.window(seconds: settings.seconds) {
                outcome.redis.append(window)
                let posts = Int(window.perSecond * settings.seconds)
                try server.benchmark(shape, posts: posts).map { outcome.redisBenchmark.append($0) }
            }
            outcome.ours.append(try ours.window(seconds: settings.seconds))
        }
        return outcome
    }

    private static func add(_ outcome: Outcome, of shape: LoadShape, to table: inout Table) {
        if !outcome.redis.isEmpty {
            let window = Window(mediansOf: outcome.redis)
            var row = Table.Row(
                what: "Redis, AOF always, XADD: \(shape)", value: window.perSecond, unit: "posts/s", p50: window.p50,
                p99: window.p99)
            if !outcome.redisBenchmark.isEmpty {
                row.ratio = (ratio(outcome.redis.map(\.perSecond), outcome.redisBenchmark), "redis-benchmark")
                row.goals = [Goal(.ratio, .atLeast(0.9))]
            }
            table.add(row)
        }
        let window = Window(mediansOf: outcome.ours)
        var row = Table.Row(
            what: "posts: \(shape)", value: window.perSecond, unit: "posts/s", p50: window.p50, p99: window.p99)
        if !outcome.redis.isEmpty {
            row.ratio = (ratio(outcome.ours.map(\.perSecond), outcome.redis.map(\.perSecond)), "Redis")
            if shape.clients == 64 { row.goals.append(Goal(.ratio, .atLeast(0.5))) }
        }
        if shape.depth > 1 { row.goals.append(Goal(.value, .atLeast(40_000))) }
        table.add(row)
    }

    /// The median over pairs that were measured one after the other: what slows the machine for a while slows both.
    private static func ratio(_ one: [Double], _ other: [Double]) -> Double {
        zip(one, other).map { $0 / max($1, 1) }.median
    }
}
