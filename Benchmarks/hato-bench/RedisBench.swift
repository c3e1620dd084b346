import Foundation

/// Redis with every write synced before it is answered, driven by our own generator; its own generator says whether
/// ours is fast enough.
struct RedisBench: Sendable {
    var settings: BenchSettings

    func measure(_ table: inout Table) async throws -> [String: Double] {
        guard let server = Self.find("redis-server") else {
            table.add("redis", "", note: "redis-server is not installed: nothing to compare with")
            return [:]
        }
        let redis = try RedisProcess(server)
        defer { redis.stop() }
        try await redis.ready()
        var rates: [String: Double] = [:]
        for (clients, depth) in PostBench.loads {
            let load = RawLoad(
                port: redis.port, clients: clients, depth: depth, request: Self.request, linesPerAnswer: 2)
            let window = try await load.windows(settings)
            let name = PostBench.name(clients, depth)
            rates[name] = window.perSecond
            let theirs = try await redisBenchmark(redis.port, clients: clients, depth: depth)
            let note = theirs.map { "our generator: \(PostBench.ratio(window.perSecond, $0)) of redis-benchmark" }
            table.add("redis, AOF always, XADD: \(name)", window.rate, latency: window.latencies, note: note ?? "")
        }
        return rates
    }

    private static let text = String(repeating: "x", count: 200)

    private static var request: [UInt8] {
        let words = ["XADD", "room", "*", "message", text]
        return Array(("*\(words.count)\r\n" + words.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()).utf8)
    }

    private func redisBenchmark(_ port: Int, clients: Int, depth: Int) async throws -> Double? {
        guard let path = Self.find("redis-benchmark") else { return nil }
        let count = clients == 1 && depth == 1 ? 15_000 : 150_000
        let arguments = [
            "-p", "\(port)", "-c", "\(clients)", "-P", "\(depth)", "-n", "\(count)", "--csv", "XADD", "room", "*",
            "message", Self.text,
        ]
        let text = try await RawSocket.onThread { try Self.output(path, arguments) }
        guard let line = text.split(separator: "\n").last else { return nil }
        let cells = line.split(separator: ",").map { $0.trimmingCharacters(in: CharacterSet(charactersIn: "\" ")) }
        return cells.dropFirst().lazy.compactMap { Double($0) }.first
    }

    private static func output(_ path: String, _ arguments: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self)
    }

    static func find(_ name: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin"
        return path.split(separator: ":").map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}

/// A redis-server of our own in a temporary folder.
private final class RedisProcess {
    let port: Int
    private let process = Process()
    private let folder: URL

    init(_ path: String) throws {
        port = Int.random(in: 20_000..<30_000)
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("hato-bench-redis-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = [
            "--port", "\(port)", "--bind", "127.0.0.1", "--dir", folder.path, "--appendonly", "yes", "--appendfsync",
            "always", "--save", "",
        ]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    func ready() async throws {
        for _ in 0..<200 {
            if let socket = try? RawSocket(port: port) {
                socket.close()
                return
            }
            try await Task.sleep(for: .milliseconds(50))
        }
        throw BenchError("redis-server did not start")
    }

    func stop() {
        process.terminate()
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: folder)
    }
}
