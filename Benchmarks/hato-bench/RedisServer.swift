import Foundation

/// A redis-server of our own, in a temporary folder, on a free port, that syncs every write before its response.
///
/// It never rewrites its log: a rewrite takes a processor for seconds, and the window it falls into would decide a
/// comparison.
final class RedisServer: Sendable {
    let port: Int
    private let process: Process
    private let folder: URL

    /// The request that is compared with a push: 200 bytes appended to a stream.
    static let post = [UInt8]("*\(words.count)\r\n\(words.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined())".utf8)
    private static let words = ["XADD", "room", "*", "message", String(repeating: "x", count: 200)]

    // MARK: Life

    /// Nil if Redis is not installed.
    static func start() throws -> RedisServer? {
        guard let path = Programs.find("redis-server") else {
            Progress.say("redis-server is not installed: nothing to compare posts with")
            return nil
        }
        for _ in 0..<5 {
            if let server = try RedisServer(path) { return server }
        }
        throw BenchError("redis-server did not start")
    }

    /// Nil if it does not start, e.g. because another process took its port in between.
    private init?(_ path: String) throws {
        let (socket, port) = try RawSocket.listening()
        socket.close()
        self.port = port
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("hato-bench-redis-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = [
            "--port", "\(port)", "--bind", "127.0.0.1", "--dir", folder.path, "--appendonly", "yes", "--appendfsync",
            "always", "--save", "", "--auto-aof-rewrite-percentage", "0",
        ]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        do { try process.run() } catch {
            try? FileManager.default.removeItem(at: folder)
            throw error
        }
        guard isReady() else {
            stop()
            return nil
        }
    }

    private func isReady() -> Bool {
        for _ in 0..<200 where process.isRunning {
            if let socket = try? RawSocket(port: port) {
                socket.close()
                return true
            }
            Thread.sleep(forTimeInterval: 0.05)
        }
        return false
    }

    /// It has no data to keep, so it is killed: a Redis that is asked to end may be loading or writing, and takes its
    /// time.
    func stop() {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: folder)
    }

    // MARK: Its own generator

    /// Posts/s as redis-benchmark drives this server; nil when it is not installed.
    func benchmark(_ shape: LoadShape, posts: Int) throws -> Double? {
        guard let path = Programs.find("redis-benchmark") else { return nil }
        let text = try Self.output(
            path,
            ["-p", "\(port)", "-c", "\(shape.clients)", "-P", "\(shape.depth)", "-n", "\(posts)", "--csv"] + Self.words)
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
}
