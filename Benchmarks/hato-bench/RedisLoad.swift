/// Redis under the same load from the same generator as ours; and, after each of its windows, with redis-benchmark,
/// whose figure shows how good the generator is.
struct RedisLoad {
    private let server: RedisServer
    private let shape: LoadShape
    private var load: RawLoad
    private(set) var windows: [Window] = []
    private var redisBenchmark: [Double] = []

    init(_ server: RedisServer, _ shape: LoadShape) throws {
        self.server = server
        self.shape = shape
        load = try RawLoad(
            (0..<shape.clients).map { _ in try RawSocket(port: server.port) }, depth: shape.depth,
            requests: [RedisServer.post], .redis)
    }

    func close() { load.close() }

    mutating func warmUp() throws { try load.warmUp() }

    mutating func measure(seconds: Double) throws {
        let window = try load.window(seconds: seconds)
        windows.append(window)
        let posts = Int(window.perSecond * seconds)
        if let perSecond = try server.benchmark(shape, posts: posts) { redisBenchmark.append(perSecond) }
    }

    var row: Table.Row {
        let window = Window(mediansOf: windows)
        var row = Table.Row(
            what: "Redis, AOF always, XADD: \(shape)", value: window.perSecond, unit: "posts/s", p50: window.p50,
            p99: window.p99)
        if !redisBenchmark.isEmpty {
            row.ratio = (windows.map(\.perSecond).ratio(to: redisBenchmark), "redis-benchmark")
            row.goals = [Goal(.ratio, .atLeast(0.9))]
        }
        return row
    }
}
