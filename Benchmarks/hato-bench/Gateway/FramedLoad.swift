import Foundation

/// Where responses end, of a protocol that frames them.
enum Framing: Sendable {
    /// HTTP/1.1 with a Content-Length.
    case http
    /// Frames of a server (RFC 6455, section 5.2): one text of a session each.
    case webSocket

    /// The length of the first response in these bytes, and whether it is one: pings are none; nil when it is not
    /// complete.
    ///
    /// - Throws: `BenchError` when it is no success.
    func first(of bytes: UnsafeRawBufferPointer) throws -> (length: Int, isResponse: Bool)? {
        switch self {
        case .http: try Self.httpLength(bytes).map { ($0, true) }
        case .webSocket: try Self.frame(bytes)
        }
    }

    private static let headEnd = Array("\r\n\r\n".utf8)
    /// As NIO writes it for the gateway.
    private static let lengthName = Array("Content-Length: ".utf8)
    private static let success = Array(#""s":"ok""#.utf8)

    private static func httpLength(_ bytes: UnsafeRawBufferPointer) throws -> Int? {
        guard let end = bytes.place(of: headEnd) else { return nil }
        // `HTTP/1.1 200 OK`
        guard bytes[9] == UInt8(ascii: "2") else { throw BenchError("refused: \(text(bytes))") }
        let head = UnsafeRawBufferPointer(rebasing: bytes[..<end])
        guard let name = head.place(of: lengthName) else { throw BenchError("no length: \(text(bytes))") }
        let digits = head[(name + lengthName.count)...].prefix { 48...57 ~= $0 }
        let whole = end + headEnd.count + digits.reduce(0) { $0 * 10 + Int($1) - 48 }
        return bytes.count >= whole ? whole : nil
    }

    private static func frame(_ bytes: UnsafeRawBufferPointer) throws -> (length: Int, isResponse: Bool)? {
        guard bytes.count >= 2 else { return nil }
        var (head, length) = (2, Int(bytes[1]))
        if length == 126 {
            guard bytes.count >= 4 else { return nil }
            (head, length) = (4, Int(bytes[2]) << 8 | Int(bytes[3]))
        }
        guard bytes.count >= head + length else { return nil }
        let isText = bytes[0] == 0x81
        let payload = UnsafeRawBufferPointer(rebasing: bytes[head..<head + length])
        guard !isText || payload.place(of: success) != nil else { throw BenchError("refused: \(text(payload))") }
        return (head + length, isText)
    }

    private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        String(decoding: bytes.prefix(500), as: UTF8.self)
    }
}

extension UnsafeRawBufferPointer {
    /// The first position of some bytes.
    fileprivate func place(of bytes: [UInt8]) -> Int? {
        guard let first = bytes.first, let start = baseAddress else { return nil }
        var from = 0
        while count - from >= bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: self[from...(count - bytes.count)])
            guard let place = rest.place(of: first) else { return nil }
            if memcmp(start + from + place, bytes, bytes.count) == 0 { return from + place }
            from += place + 1
        }
        return nil
    }
}

/// Drives a gateway as `RawLoad` drives a service: one thread, plain sockets, `depth` requests of each connection in
/// one write, and the next ones when all have a response.
struct FramedLoad {
    private struct Lane {
        let socket: RawSocket
        var next: Int
        var missing = 0
        var sentAt: UInt64 = 0
        /// Bytes of responses that are not complete.
        var begun: [UInt8] = []
    }

    private let framing: Framing
    private let depth: Int
    private var requests: [NumberedRequest]
    private var number = 0
    private var lanes: [Lane]
    private let set: SocketSet
    private let buffer = ReadBuffer(bytes: 64 << 10)
    private var latencies: [UInt32] = []

    /// - Parameter sockets: one of each client, ready for requests; the load owns them from now on.
    init(_ sockets: [RawSocket], depth: Int, requests: [[UInt8]], _ framing: Framing) throws {
        self.framing = framing
        self.depth = depth
        self.requests = requests.map { NumberedRequest($0) }
        lanes = sockets.enumerated().map { Lane(socket: $1, next: $0 * 61 % requests.count) }
        set = try SocketSet(sockets)
    }

    func close() { for lane in lanes { lane.socket.close() } }

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
        var burst: [UInt8] = []
        for _ in 0..<depth {
            let next = lanes[index].next
            lanes[index].next = (next + 1) % requests.count
            number += 1
            requests[next].set(NumberedRequest.first + number)
            if depth == 1 { burst = requests[next].bytes } else { burst += requests[next].bytes }
        }
        lanes[index].missing = depth
        lanes[index].sentAt = Clock.now()
        try lanes[index].socket.send(burst)
    }

    /// Whether all requests of this connection have a response now.
    private mutating func receive(_ index: Int) throws -> Bool {
        let count = try lanes[index].socket.receive(into: buffer.bytes)
        let took = UInt32(clamping: (Clock.now() - lanes[index].sentAt) / 1_000)
        var (from, responses) = (0, 0)
        let fresh = UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count])
        if lanes[index].begun.isEmpty {
            (from, responses) = try take(fresh)
            if from < count { lanes[index].begun += fresh[from...] }
        } else {
            lanes[index].begun += fresh
            let begun = lanes[index].begun
            (from, responses) = try begun.withUnsafeBytes { try take($0) }
            lanes[index].begun.removeFirst(from)
        }
        for _ in 0..<responses { latencies.append(took) }
        lanes[index].missing -= responses
        return lanes[index].missing == 0
    }

    /// How many bytes of responses are complete, and how many responses these are.
    private func take(_ bytes: UnsafeRawBufferPointer) throws -> (bytes: Int, responses: Int) {
        var (from, responses) = (0, 0)
        while let (length, isResponse) = try framing.first(of: UnsafeRawBufferPointer(rebasing: bytes[from...])) {
            from += length
            if isResponse { responses += 1 }
        }
        return (from, responses)
    }
}
