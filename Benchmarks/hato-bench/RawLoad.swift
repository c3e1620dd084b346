import Foundation

/// The same load as `ClientLoad` with bytes instead of a client, on one thread: what drives Redis.
struct RawLoad: Sendable {
    var port: Int
    var clients: Int
    var depth: Int
    var request: [UInt8]
    /// Line ends that make one answer.
    var linesPerAnswer: Int

    func windows(_ settings: BenchSettings) async throws -> Window {
        let load = self
        return try await RawSocket.onThread {
            let sockets = try (0..<load.clients).map { _ in try RawSocket(port: load.port) }
            defer { for socket in sockets { socket.close() } }
            _ = try load.window(sockets, seconds: 0.5)
            let windows = try (0..<settings.windows).map { _ in try load.window(sockets, seconds: settings.seconds) }
            return Window.median(windows)
        }
    }

    private func window(_ sockets: [RawSocket], seconds: Double) throws -> Window {
        var lanes = sockets.map { RawLane(socket: $0, linesPerAnswer: linesPerAnswer) }
        var set = SocketSet(sockets)
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        var latencies: [UInt32] = []
        let start = Clock.now()
        let end = start + UInt64(seconds * 1e9)
        for index in lanes.indices { try lanes[index].send(request, times: depth) }
        while lanes.contains(where: { !$0.sent.isEmpty }) {
            for index in set.ready(within: 1_000) {
                let answers = try lanes[index].receive(&buffer, &latencies)
                // As redis-benchmark does it: the next pipeline goes when the whole of the last one is answered.
                if answers > 0, lanes[index].sent.isEmpty, Clock.now() < end {
                    try lanes[index].send(request, times: depth)
                }
            }
        }
        let took = Double(Clock.now() - start) / 1e9
        return Window(perSecond: Double(latencies.count) / took, latencies: Latencies(latencies))
    }
}

/// One connection of a raw load.
private struct RawLane {
    let socket: RawSocket
    let linesPerAnswer: Int
    /// When the requests in flight were sent, oldest first.
    var sent: [UInt64] = []
    private var lines = 0

    init(socket: RawSocket, linesPerAnswer: Int) {
        self.socket = socket
        self.linesPerAnswer = linesPerAnswer
    }

    mutating func send(_ request: [UInt8], times: Int) throws {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(request.count * times)
        let now = Clock.now()
        for _ in 0..<times {
            bytes += request
            sent.append(now)
        }
        try socket.send(bytes)
    }

    mutating func receive(_ buffer: inout [UInt8], _ latencies: inout [UInt32]) throws -> Int {
        let count = try socket.receive(into: &buffer)
        for index in 0..<count where buffer[index] == UInt8(ascii: "\n") { lines += 1 }
        let answers = lines / linesPerAnswer
        lines -= answers * linesPerAnswer
        let now = Clock.now()
        for start in sent.prefix(answers) { latencies.append(UInt32(clamping: (now - start) / 1_000)) }
        sent.removeFirst(answers)
        return answers
    }
}
