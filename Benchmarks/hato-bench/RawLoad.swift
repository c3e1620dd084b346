import Foundation

/// Drives a server as redis-benchmark drives Redis: one thread, plain sockets, nothing decoded.
///
/// Each connection sends `depth` requests in one write, waits until all are answered, and sends the next ones. What has
/// come is taken from all connections before any of them sends again, as redis-benchmark does.
struct RawLoad {
    /// How answers are told apart in a protocol.
    struct Answers: Sendable {
        /// Line ends that make one answer.
        var lines: Int
        /// What stands in a line of an answer that refuses, and how far from the line's begin.
        var failure: (byte: UInt8, offset: Int)

        /// `{"jsonrpc":"2.0","id":1,"error"…`, not `"result"`.
        static let jsonRPC = Answers(lines: 1, failure: (UInt8(ascii: "e"), 25))
        /// To XADD: the length of the id, the id; or `-ERR …`.
        static let redis = Answers(lines: 2, failure: (UInt8(ascii: "-"), 0))
    }

    private struct Lane {
        let socket: RawSocket
        var next: Int
        /// Line ends of the answers that have not come.
        var missing = 0
        var sentAt: UInt64 = 0
    }

    private let answers: Answers
    private let depth: Int
    /// What is sent in turn, each of `depth` requests.
    private let bursts: [[UInt8]]
    private var lanes: [Lane]
    private let set: SocketSet
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)
    private var latencies: [UInt32] = []

    /// - Parameter sockets: one of each client, whose load this is from now on.
    init(_ sockets: [RawSocket], depth: Int, requests: [[UInt8]], _ answers: Answers) throws {
        self.answers = answers
        self.depth = depth
        let bursts = stride(from: 0, to: requests.count, by: depth).map { first in
            (0..<depth).flatMap { requests[(first + $0) % requests.count] }
        }
        self.bursts = bursts
        lanes = sockets.enumerated().map { index, socket in Lane(socket: socket, next: index * 61 % bursts.count) }
        set = try SocketSet(sockets)
    }

    func close() { for lane in lanes { lane.socket.close() } }

    /// After a moment to warm up, the medians of the windows.
    mutating func windows(_ settings: BenchSettings) throws -> Window {
        _ = try window(seconds: 0.5)
        return Window(mediansOf: try (0..<settings.windows).map { _ in try window(seconds: settings.seconds) })
    }

    /// Ends when everything is answered.
    mutating func window(seconds: Double) throws -> Window {
        latencies.removeAll(keepingCapacity: true)
        var ready: [Int] = []
        var free = Array(lanes.indices)
        var busy = 0
        let start = Clock.now()
        let end = start + UInt64(seconds * 1e9)
        while true {
            if Clock.now() < end {
                for index in free { try send(index) }
                busy += free.count
            }
            free.removeAll(keepingCapacity: true)
            if busy == 0 { break }
            try set.wait(&ready)
            for index in ready {
                if try receive(index) { free.append(index) }
            }
            busy -= free.count
        }
        return Window(seconds: Double(Clock.now() - start) / 1e9, latencies: latencies)
    }

    private mutating func send(_ index: Int) throws {
        let next = lanes[index].next
        lanes[index].next = (next + 1) % bursts.count
        lanes[index].missing = depth * answers.lines
        lanes[index].sentAt = Clock.now()
        try lanes[index].socket.send(bursts[next])
    }

    /// Whether all requests of this connection are answered now.
    private mutating func receive(_ index: Int) throws -> Bool {
        let count = try lanes[index].socket.receive(into: &buffer)
        guard let lines = lineEnds(count) else {
            throw BenchError("refused: \(String(decoding: buffer[..<count], as: UTF8.self))")
        }
        let took = UInt32(clamping: (Clock.now() - lanes[index].sentAt) / 1_000)
        let before = requests(lanes[index].missing)
        lanes[index].missing -= lines
        for _ in requests(lanes[index].missing)..<before { latencies.append(took) }
        return lanes[index].missing == 0
    }

    /// Requests whose answers are not whole.
    private func requests(_ missingLines: Int) -> Int { (missingLines + answers.lines - 1) / answers.lines }

    /// The line ends in the buffer; nil when one of the lines that begin there refuses.
    private func lineEnds(_ count: Int) -> Int? {
        buffer.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return 0 }
            var found = 0
            var line = 0
            while let end = memchr(start + line, Int32(UInt8(ascii: "\n")), count - line) {
                let next = UnsafeRawPointer(end) - start + 1
                if line + answers.failure.offset < next, bytes[line + answers.failure.offset] == answers.failure.byte {
                    return nil
                }
                found += 1
                line = next
            }
            return found
        }
    }
}
