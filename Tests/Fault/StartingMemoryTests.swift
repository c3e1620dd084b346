import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// A start takes no more memory than its settings allow, however long the log of an earlier run is.
@Suite("The memory of a start", .timeLimit(.minutes(10)), .enabled(if: ProcessMemory.isKnown))
struct StartingMemoryTests {
    private static let logBytes = 48 << 20
    private static let large = 96 << 20
    private static let small = 8 << 20
    /// Memtables and those that are being flushed, and memory for reading.
    private static let growthMax = 2 * small + (8 << 20)
    private static let stackBytes = 8 << 20

    /// In a process that the system limits to that much memory.
    @Test func aFullLogOfLargerMemtablesIsStartedOnWithinSmallOnes() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hato-start-\(UUID().uuidString)")
            .path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let key = UUID().uuidString + UUID().uuidString
        _ = FileManager.default.createFile(
            atPath: "\(folder)/admin-key", contents: Data((key + "\n").utf8), attributes: [.posixPermissions: 0o600])
        let program = try Program("hato-messages", logFile: "\(folder)/messages.log")
        let arguments = [
            "serve", "--port", "0", "--auth", "127.0.0.1:1", "--admin-key-file",
            "\(folder)/admin-key", "--exit-with-stdin",
        ]
        func settings(_ data: String, memtables: Int) -> [String] {
            arguments + ["--data", "\(folder)/\(data)", "--memtable-bytes", "\(memtables)"]
        }

        let empty = try await program.start(settings("empty", memtables: Self.small))
        let idleDataBytes = try ProcessMemory(of: empty).dataBytes
        await program.stop()

        let filled = try await program.start(settings("data", memtables: Self.large))
        let idle = try ProcessMemory(of: filled).peakBytes
        let answered = try await fill("\(folder)/data/store/rocksdb", try client(of: filled, key))
        let running = try ProcessMemory(of: filled).peakBytes
        await program.kill()

        // Beyond it, the system gives no memory. The limit also counts the whole stacks of threads that have just
        // started.
        let limits = Program.Limits(dataBytesMax: idleDataBytes + Self.growthMax + 4 * Self.stackBytes)
        let again = try await program.start(settings("data", memtables: Self.small), limits: limits)
        let starting = try ProcessMemory(of: again).peakBytes
        print("peak in MiB: idle \(idle >> 20), running \(running >> 20), starting \(starting >> 20)")
        #expect(running - idle > Self.logBytes / 2, "the log was in memory")
        #expect(starting - idle < Self.growthMax)
        let client = try client(of: again, key)
        let stats = try await client.call(method: "messages.get", params: ["path": "/full", "shallow": true])
        #expect(stats["value"]?.object?.members.count == answered)
        await client.close()
        await program.stop()
        try FileManager.default.removeItem(atPath: folder)
    }

    /// Returns the number of acknowledged pushes.
    private func fill(_ database: String, _ client: RPCClient) async throws -> Int {
        var random = SeededRandom(seed: 13)
        var count = 0
        while try Self.logBytes(of: database) < Self.logBytes {
            let text = JSONValue.string(
                (0..<16_000).map { _ in String(random.next(), radix: 16) }.joined())
            _ = try await client.call(method: "messages.push", params: ["path": "/full", "value": text])
            count += 1
        }
        await client.close()
        return count
    }

    /// The bytes that RocksDB has written to its log.
    private static func logBytes(of database: String) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: database).filter { $0.hasSuffix(".log") }
            .reduce(0) { sum, name in
                let size = try FileManager.default.attributesOfItem(atPath: "\(database)/\(name)")[.size] as? Int
                return sum + (size ?? 0)
            }
    }

    private func client(of ready: JSONObject, _ key: String) throws -> RPCClient {
        let address = try #require(ready["listening"]?.string)
        return RPCClient(try #require(RPCClientConfiguration(address: address)).with(credential: key))
    }
}

/// A request takes no more memory than `memory-bytes` allows.
@Suite("The memory of one request", .timeLimit(.minutes(10)), .enabled(if: ProcessMemory.isKnown))
struct RequestMemoryTests {
    @Test func aWriteOfTooManyValuesIsRefusedAndTakesLittleMemory() async throws {
        let memory = 100 << 20
        try await LoneMessages.run(["--memory-bytes", "\(memory)"]) { messages in
            let ready = try await messages.start()
            let client = messages.client()
            let values = [JSONValue](repeating: 1, count: 500_000)
            let error = await #expect(throws: RPCError.self) {
                try await client.call(method: "messages.set", params: ["path": "/many", "value": .array(values)])
            }
            #expect(error?.reason == "too_many_values")
            let peak = try ProcessMemory(of: ready).peakBytes
            print("peak in MiB: \(peak >> 20)")
            #expect(peak < memory)
            await client.close()
        }
    }
}

/// The memory of a process, as Linux reports it.
struct ProcessMemory {
    /// The peak.
    let peakBytes: Int
    /// The writable memory now, as `RLIMIT_DATA` counts it.
    let dataBytes: Int

    static var isKnown: Bool { FileManager.default.fileExists(atPath: "/proc/self/status") }

    /// - Parameter ready: the ready line of the process.
    init(of ready: JSONObject) throws {
        let pid = try #require(ready["pid"]?.integer)
        let text = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        peakBytes = try Self.bytes("VmHWM", in: text)
        dataBytes = try Self.bytes("VmData", in: text)
    }

    private static func bytes(_ name: String, in status: String) throws -> Int {
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("\(name):") })
        return try #require(line.split(whereSeparator: \.isWhitespace).dropLast().last.flatMap { Int($0) }) << 10
    }
}
