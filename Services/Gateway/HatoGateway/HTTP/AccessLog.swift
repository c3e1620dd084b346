import Logging
import NIOPosix
import Synchronization

/// Writes a line for each request that has ended, on a thread of its own: a log that is read slowly stops no event
/// loop. Beyond a number of lines that wait, further ones are dropped and counted. Any thread calls.
final class AccessLog: Sendable {
    private struct Line: Sendable {
        var record: RequestRecord
        var milliseconds: Int64
    }

    private struct State: Sendable {
        var lines: [Line] = []
        var droppedCount = 0
        var isWriting = false
    }

    /// Lines that wait.
    private static let linesMax = 4_096
    /// Characters of a path.
    private static let pathMax = 512
    private let logger: Logger
    private let thread = NIOThreadPool(numberOfThreads: 1)
    private let state = Mutex(State())

    init(_ logger: Logger) {
        self.logger = logger
        thread.start()
    }

    /// The request has ended.
    func add(_ record: RequestRecord) {
        let line = Line(record: record, milliseconds: record.nanoseconds / 1_000_000)
        let begins = state.withLock { state in
            guard state.lines.count < Self.linesMax else {
                state.droppedCount += 1
                return false
            }
            state.lines.append(line)
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if begins { thread.submit { [weak self] _ in self?.write() } }
    }

    /// Writes what waits.
    func stop() async {
        try? await thread.runIfActive { [weak self] in self?.write() }
        try? await thread.shutdownGracefully()
    }

    private func write() {
        while true {
            let (lines, dropped) = state.withLock { state in
                defer { (state.lines, state.droppedCount, state.isWriting) = ([], 0, !state.lines.isEmpty) }
                return (state.lines, state.droppedCount)
            }
            for line in lines { write(line) }
            if dropped > 0 {
                logger.warning("lines of the access log were dropped", metadata: ["count": "\(dropped)"])
            }
            guard !lines.isEmpty else { return }
        }
    }

    private func write(_ line: Line) {
        let record = line.record
        var metadata: Logger.Metadata = [
            "method": "\(record.method.prefix(Self.methodMax))", "path": "\(record.path.prefix(Self.pathMax))",
            "status": "\(record.status.map { "\($0)" } ?? "none")", "bytes": "\(record.bytes)",
            "ms": "\(line.milliseconds)", "address": "\(record.address)",
        ]
        if let messages = record.messages {
            metadata["messages"] = "\(messages.sent)"
            metadata["messages-received"] = "\(messages.received)"
            metadata["bytes-received"] = "\(messages.receivedBytes)"
            metadata["end"] = "\(messages.end)"
        }
        logger.info("request", metadata: metadata)
    }

    /// Characters of a method: clients may invent one.
    private static let methodMax = 32
}
