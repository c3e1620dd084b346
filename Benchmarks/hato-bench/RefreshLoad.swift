import HatoModel

/// A client that refreshes, each time with the refresh token of its last response: a token is good once.
struct RefreshClient {
    let socket: RawSocket
    private(set) var request: [UInt8]

    init(port: Int, _ session: Auth.Session) throws {
        socket = try RawSocket(port: port)
        request = Self.line(Array(session.refreshToken.utf8))
    }

    /// - Parameter line: the response to `request`.
    mutating func take(_ line: UnsafeRawBufferPointer) throws {
        guard let token = ResponseText.member(ResponseText.refreshToken, of: line) else {
            throw BenchError("\(Auth.Refresh.method): \(String(decoding: line, as: UTF8.self))")
        }
        request = Self.line(token)
    }

    private static let begin = Array("{\"refreshToken\":\"".utf8)

    private static func line(_ token: [UInt8]) -> [UInt8] {
        ChatRequests.line(Auth.Refresh.method, begin + token + Array("\"}".utf8))
    }
}

/// Clients with one refresh in flight each, from one thread. The requests cannot be made beforehand as for a `RawLoad`.
struct RefreshLoad {
    private struct Lane {
        var client: RefreshClient
        var sentAt: UInt64 = 0
        /// The beginning of a response whose end has not arrived.
        var begun: [UInt8] = []
    }

    private var lanes: [Lane]
    private let set: SocketSet
    private let buffer = ReadBuffer(bytes: 64 << 10)
    private var latencies: [UInt32] = []
    /// The ID tokens of all responses, where they are kept.
    private(set) var idTokens: [String] = []
    private let keepsIDTokens: Bool

    init(port: Int, _ sessions: [Auth.Session], keepsIDTokens: Bool = false) throws {
        lanes = try sessions.map { Lane(client: try RefreshClient(port: port, $0)) }
        set = try SocketSet(lanes.map(\.client.socket))
        self.keepsIDTokens = keepsIDTokens
    }

    func close() { for lane in lanes { lane.client.socket.close() } }

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
        lanes[index].sentAt = Clock.now()
        try lanes[index].client.socket.send(lanes[index].client.request)
    }

    /// Whether the response is complete.
    private mutating func receive(_ index: Int) throws -> Bool {
        let count = try lanes[index].client.socket.receive(into: buffer.bytes)
        let bytes = UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count])
        guard bytes.place(of: UInt8(ascii: "\n")) != nil else {
            lanes[index].begun += bytes
            return false
        }
        if lanes[index].begun.isEmpty {
            try take(bytes, index)
        } else {
            let whole = lanes[index].begun + bytes
            try whole.withUnsafeBytes { try take($0, index) }
            lanes[index].begun.removeAll(keepingCapacity: true)
        }
        return true
    }

    private mutating func take(_ line: UnsafeRawBufferPointer, _ index: Int) throws {
        latencies.append(UInt32(clamping: (Clock.now() - lanes[index].sentAt) / 1_000))
        try lanes[index].client.take(line)
        guard keepsIDTokens, let token = ResponseText.member(ResponseText.idToken, of: line) else { return }
        idTokens.append(String(decoding: token, as: UTF8.self))
    }
}
