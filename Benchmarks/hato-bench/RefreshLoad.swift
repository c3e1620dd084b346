import HatoModel

/// A client that refreshes, each time with the refresh token of its last response: a token is good once.
struct RefreshClient {
    enum Wire: Sendable {
        /// A line of the service.
        case line
        /// Firebase's request, at a gateway.
        case http
    }

    let socket: RawSocket
    private let wire: Wire
    private(set) var request: [UInt8]

    init(port: Int, _ session: Auth.Session, over wire: Wire = .line) throws {
        socket = try RawSocket(port: port)
        self.wire = wire
        request = Self.request(Array(session.refreshToken.utf8), wire)
    }

    func isComplete(_ bytes: UnsafeRawBufferPointer) throws -> Bool {
        switch wire {
        case .line: bytes.place(of: UInt8(ascii: "\n")) != nil
        case .http: try Framing.http.first(of: bytes) != nil
        }
    }

    /// - Parameter response: to `request`.
    mutating func take(_ response: UnsafeRawBufferPointer) throws {
        let name = wire == .line ? ResponseText.refreshToken : ResponseText.refreshTokenOfFirebase
        guard let token = ResponseText.member(name, of: response) else {
            throw BenchError("\(Auth.Refresh.method): \(String(decoding: response, as: UTF8.self))")
        }
        request = Self.request(token, wire)
    }

    private static let begin = Array("{\"refreshToken\":\"".utf8)

    private static func request(_ token: [UInt8], _ wire: Wire) -> [UInt8] {
        switch wire {
        case .line: ChatRequests.line(Auth.Refresh.method, begin + token + Array("\"}".utf8))
        case .http: FirebaseRequests.refresh(token)
        }
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

    init(
        port: Int, _ sessions: [Auth.Session], over wire: RefreshClient.Wire = .line, keepsIDTokens: Bool = false
    ) throws {
        lanes = try sessions.map { Lane(client: try RefreshClient(port: port, $0, over: wire)) }
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
        if lanes[index].begun.isEmpty, try lanes[index].client.isComplete(bytes) {
            try take(bytes, index)
            return true
        }
        lanes[index].begun += bytes
        let whole = lanes[index].begun
        guard try whole.withUnsafeBytes({ try lanes[index].client.isComplete($0) }) else { return false }
        try whole.withUnsafeBytes { try take($0, index) }
        lanes[index].begun.removeAll(keepingCapacity: true)
        return true
    }

    private mutating func take(_ line: UnsafeRawBufferPointer, _ index: Int) throws {
        latencies.append(UInt32(clamping: (Clock.now() - lanes[index].sentAt) / 1_000))
        try lanes[index].client.take(line)
        guard keepsIDTokens, let token = ResponseText.member(ResponseText.idToken, of: line) else { return }
        idTokens.append(String(decoding: token, as: UTF8.self))
    }
}
