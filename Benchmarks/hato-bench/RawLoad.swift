import Foundation

/// Drives a server as redis-benchmark drives Redis: one thread, plain sockets, nothing decoded.
///
/// Each connection sends `depth` requests in one write, waits until all have a response, and sends the next ones. All
/// received bytes are read from all connections before any of them sends again, as redis-benchmark does. Requests are
/// made beforehand and nothing is allocated during a run: on few processors, all the time of this thread is taken from
/// the server.
struct RawLoad {
    /// How a protocol separates responses.
    struct Answers: Sendable {
        /// The number of line ends of a response.
        var lines: Int
        /// The text in the line of an error response, and its offset from the beginning of the line.
        var failure: (byte: UInt8, offset: Int)
        /// Whether a response names its request. Otherwise responses come in the order of the requests.
        var hasIDs: Bool

        /// `{"jsonrpc":"2.0","id":1000,"error"…`, not `"result"`.
        static let jsonRPC = Answers(
            lines: 1, failure: (UInt8(ascii: "e"), RequestID.offset + RequestID.digits + 2), hasIDs: true)
        /// To XADD: the length of the id, the id; or `-ERR …`.
        static let redis = Answers(lines: 2, failure: (UInt8(ascii: "-"), 0), hasIDs: false)
    }

    private struct Lane {
        let socket: RawSocket
        var next: Int
        /// Line ends of the responses that have not arrived.
        var missing = 0
        var sentAt: UInt64 = 0
        /// The beginning of a line whose end has not arrived.
        var begun: [UInt8] = []
    }

    /// Bytes of a line that identify it.
    private static let headBytes = 32

    private let answers: Answers
    private let depth: Int
    /// The requests that are sent in turn, each entry with `depth` of them.
    private let bursts: [[UInt8]]
    private var lanes: [Lane]
    /// Whether a request has no response yet, by lane and position in its burst.
    private var isOpen: [Bool]
    private let set: SocketSet
    private let buffer = ReadBuffer(bytes: 64 << 10)
    private var latencies: [UInt32] = []

    /// - Parameter sockets: one of each client; the load owns them from now on.
    init(_ sockets: [RawSocket], depth: Int, requests: [[UInt8]], _ answers: Answers) throws {
        self.answers = answers
        self.depth = depth
        let bursts = stride(from: 0, to: requests.count, by: depth).map { first in
            (0..<depth).flatMap { place in
                let request = requests[(first + place) % requests.count]
                return answers.hasIDs ? RequestID.put(RequestID.first + place, into: request) : request
            }
        }
        self.bursts = bursts
        lanes = sockets.enumerated().map { index, socket in Lane(socket: socket, next: index * 61 % bursts.count) }
        isOpen = [Bool](repeating: false, count: sockets.count * depth)
        set = try SocketSet(sockets)
    }

    /// Clients of a service that have signed in.
    init(at port: Int, as token: String, _ shape: LoadShape, requests: [[UInt8]]) throws {
        let sockets = try (0..<shape.clients).map { _ in try RawSocket(port: port, signedInWith: token) }
        try self.init(sockets, depth: shape.depth, requests: requests, .jsonRPC)
    }

    func close() { for lane in lanes { lane.socket.close() } }

    /// After a moment to warm up, the medians of the windows.
    mutating func windows(_ settings: BenchSettings) throws -> Window {
        try warmUp()
        return Window(mediansOf: try (0..<settings.windows).map { _ in try window(seconds: settings.seconds) })
    }

    mutating func warmUp() throws { _ = try window(seconds: 0.5) }

    /// Ends when every request has its response.
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
        if answers.hasIDs {
            for place in index * depth..<(index + 1) * depth { isOpen[place] = true }
        }
        lanes[index].sentAt = Clock.now()
        try lanes[index].socket.send(bursts[next])
    }

    /// Whether all requests of this connection have a response now.
    private mutating func receive(_ index: Int) throws -> Bool {
        let count = try lanes[index].socket.receive(into: buffer.bytes)
        let lines = try takeLines(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count]), index)
        let took = UInt32(clamping: (Clock.now() - lanes[index].sentAt) / 1_000)
        let before = requests(lanes[index].missing)
        lanes[index].missing -= lines
        for _ in requests(lanes[index].missing)..<before { latencies.append(took) }
        return lanes[index].missing == 0
    }

    /// Requests whose responses are not complete.
    private func requests(_ missingLines: Int) -> Int { (missingLines + answers.lines - 1) / answers.lines }

    // MARK: Lines

    /// The number of lines that end in the received bytes. Throws when one of them is an error, or belongs to no
    /// request.
    private mutating func takeLines(_ bytes: UnsafeRawBufferPointer, _ index: Int) throws -> Int {
        var found = 0
        var rest = bytes
        while let end = rest.place(of: UInt8(ascii: "\n")) {
            let line = UnsafeRawBufferPointer(rebasing: rest[..<end])
            if lanes[index].begun.isEmpty {
                try check(line, index)
            } else {
                begin(line, index)
                let begun = lanes[index].begun
                try begun.withUnsafeBytes { try check($0, index) }
                lanes[index].begun.removeAll(keepingCapacity: true)
            }
            found += 1
            rest = UnsafeRawBufferPointer(rebasing: rest[(end + 1)...])
        }
        begin(rest, index)
        return found
    }

    /// Keeps as much of a line as identifies it.
    private mutating func begin(_ bytes: UnsafeRawBufferPointer, _ index: Int) {
        let missing = Self.headBytes - lanes[index].begun.count
        if missing > 0 { lanes[index].begun.append(contentsOf: bytes.prefix(missing)) }
    }

    private mutating func check(_ line: UnsafeRawBufferPointer, _ index: Int) throws {
        guard answers.failure.offset >= line.count || line[answers.failure.offset] != answers.failure.byte else {
            throw BenchError("refused: \(String(decoding: line, as: UTF8.self))")
        }
        guard answers.hasIDs else { return }
        guard let id = RequestID.read(line), case let place = id - RequestID.first, 0..<depth ~= place,
            isOpen[index * depth + place]
        else { throw BenchError("answers nothing that was asked: \(String(decoding: line, as: UTF8.self))") }
        isOpen[index * depth + place] = false
    }
}

/// The ids of a load's requests: all of the same length, so that they have the same offset in requests and responses.
enum RequestID {
    /// The id of `ChatRequests.line`.
    static let first = 1_000
    static let digits = 4
    /// `{"jsonrpc":"2.0","id":`
    static let offset = 22

    static func put(_ id: Int, into line: [UInt8]) -> [UInt8] {
        var line = line
        line.replaceSubrange(offset..<offset + digits, with: String(id).utf8)
        return line
    }

    /// Nil if there is no id at that offset.
    static func read(_ line: UnsafeRawBufferPointer) -> Int? {
        guard line.count >= offset + digits else { return nil }
        var id = 0
        for place in offset..<offset + digits {
            let digit = Int(line[place]) - 48
            guard 0...9 ~= digit else { return nil }
            id = id * 10 + digit
        }
        return id
    }
}

/// A buffer for reading from sockets, for one thread at a time.
final class ReadBuffer {
    let bytes: UnsafeMutableRawBufferPointer

    init(bytes count: Int) {
        bytes = .allocate(byteCount: count, alignment: 64)
    }

    deinit { bytes.deallocate() }
}

extension UnsafeRawBufferPointer {
    /// The first position of a byte.
    func place(of byte: UInt8) -> Int? {
        guard let start = baseAddress, let found = memchr(start, Int32(byte), count) else { return nil }
        return UnsafeRawPointer(found) - start
    }
}
