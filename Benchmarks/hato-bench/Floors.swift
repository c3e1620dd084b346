import Foundation

/// What the machine itself takes: no durable write is faster than its fsync, no call faster than a wake-up.
struct Floors: Sendable {
    var settings: BenchSettings

    func measure(_ table: inout Table) async throws {
        let seconds = settings.seconds
        let sync = try await RawSocket.onThread { try Self.fsync(seconds: seconds) }
        table.add("floor: append 256 bytes, fdatasync", sync.rate, latency: sync.latencies)
        let wake = try await RawSocket.onThread { try Self.wakeUp(seconds: seconds) }
        table.add("floor: there and back over a loopback socket", wake.rate, latency: wake.latencies)
    }

    private static func fsync(seconds: Double) throws -> Window {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("hato-bench-\(UUID().uuidString)").path
        let file = open(path, O_CREAT | O_WRONLY | O_APPEND, 0o600)
        guard file >= 0 else { throw BenchError("cannot write \(path)") }
        defer {
            _ = close(file)
            unlink(path)
        }
        let bytes = [UInt8](repeating: 120, count: 256)
        return try repeated(seconds) {
            guard write(file, bytes, bytes.count) == bytes.count else { throw BenchError("cannot write \(path)") }
            #if canImport(Darwin)
                _ = fcntl(file, F_FULLFSYNC)
            #else
                _ = fdatasync(file)
            #endif
        }
    }

    /// A byte to another thread and back.
    private static func wakeUp(seconds: Double) throws -> Window {
        var pair: [Int32] = [0, 0]
        #if canImport(Darwin)
            let kind = SOCK_STREAM
        #else
            let kind = Int32(SOCK_STREAM.rawValue)
        #endif
        guard socketpair(AF_UNIX, kind, 0, &pair) == 0 else { throw BenchError("no socket pair") }
        let (mine, other) = (pair[0], pair[1])
        Thread.detachNewThread {
            var byte: UInt8 = 0
            while read(other, &byte, 1) == 1, write(other, &byte, 1) == 1 {}
            _ = close(other)
        }
        defer { _ = close(mine) }
        var byte: UInt8 = 1
        return try repeated(seconds) {
            guard write(mine, &byte, 1) == 1, read(mine, &byte, 1) == 1 else { throw BenchError("the echo ended") }
        }
    }

    private static func repeated(_ seconds: Double, _ body: () throws -> Void) throws -> Window {
        var latencies: [UInt32] = []
        let start = Clock.now()
        let end = start + UInt64(seconds * 1e9)
        var now = start
        while now < end {
            try body()
            let after = Clock.now()
            latencies.append(UInt32(clamping: (after - now) / 1_000))
            now = after
        }
        return Window(
            perSecond: Double(latencies.count) / (Double(now - start) / 1e9), latencies: Latencies(latencies))
    }
}
