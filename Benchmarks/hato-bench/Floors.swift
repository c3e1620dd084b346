import Foundation

/// The limits of the machine itself: no durable write is faster than its sync, no call faster than a wake-up.
struct Floors: Sendable {
    var settings: BenchSettings

    func measure(_ table: inout Table) async throws {
        let settings = settings
        let sync = try await Blocking.run {
            Window(mediansOf: try (0..<settings.windows).map { _ in try Self.sync(seconds: settings.seconds / 2) })
        }
        table.add("floor: append 256 bytes, sync", sync, "/s")
        let wake = try await Blocking.run {
            Window(mediansOf: try (0..<settings.windows).map { _ in try Self.wakeUp(seconds: settings.seconds / 2) })
        }
        table.add("floor: wake-up, a byte over TCP to a thread and back", wake, "/s")
    }

    static func sync(seconds: Double) throws -> Window { try appending { try repeated(seconds, $0) } }

    /// The same at a steady pace, while something else goes on.
    static func sync(_ perSecond: Int, until end: PacedCalls.End) throws -> Window {
        try appending { append in try PacedCalls.window(perSecond, until: end) { _ in try append() } }
    }

    /// Each call of the closure that `body` gets appends 256 bytes to a file, and returns when they are on disk.
    private static func appending(_ body: (() throws -> Void) throws -> Window) throws -> Window {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("hato-bench-\(UUID().uuidString)").path
        let file = open(path, O_CREAT | O_WRONLY | O_APPEND, 0o600)
        guard file >= 0 else { throw BenchError("cannot write \(path)") }
        defer {
            _ = close(file)
            unlink(path)
        }
        let bytes = [UInt8](repeating: 120, count: 256)
        return try body {
            guard write(file, bytes, bytes.count) == bytes.count else { throw BenchError("cannot write \(path)") }
            #if canImport(Darwin)
                _ = fcntl(file, F_FULLFSYNC)
            #else
                _ = fdatasync(file)
            #endif
        }
    }

    /// A byte over loopback to another thread and back: a call that does nothing.
    static func wakeUp(seconds: Double) throws -> Window {
        let (listening, port) = try RawSocket.listening()
        defer { listening.close() }
        let mine = try RawSocket(port: port)
        defer { mine.close() }
        let other = try listening.accepted()
        Thread.detachNewThread {
            var byte: [UInt8] = [0]
            while (try? other.receive(into: &byte)) != nil, (try? other.send(byte)) != nil {}
            other.close()
        }
        var byte: [UInt8] = [1]
        return try repeated(seconds) {
            try mine.send(byte)
            _ = try mine.receive(into: &byte)
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
        return Window(seconds: Double(now - start) / 1e9, latencies: latencies)
    }
}
