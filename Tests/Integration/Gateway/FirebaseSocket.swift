import HatoModel
import HatoTesting

/// A WebSocket of a client of Firebase (RFC 6455): text frames only, each with a mask.
struct FirebaseSocket {
    /// The Host of its request.
    static let host = "localhost"

    private let socket: PlainSocket
    private let sendsPongs: Bool

    private static let usual = "/.ws?v=5&ns=hato"

    /// Requests a socket, and reads the head of the response.
    static func opening(
        _ stack: GatewayStack, _ headers: [String] = [], host: String = host, target: String = usual
    ) throws -> (socket: PlainSocket, response: HTTPResponseText) {
        try opening(on: try PlainSocket(stack.gateway.address), headers, host: host, target: target)
    }

    /// - Parameter rest: bytes that come in one piece with the request.
    private static func opening(
        on socket: PlainSocket, _ headers: [String] = [], host: String = host, target: String = usual,
        rest: [UInt8] = []
    ) throws -> (socket: PlainSocket, response: HTTPResponseText) {
        let lines = [
            "GET \(target) HTTP/1.1", "Host: \(host)", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
        ]
        try socket.send(Array(((lines + headers).joined(separator: "\r\n") + "\r\n\r\n").utf8) + rest)
        return (socket, try HTTPResponseText(headOf: socket))
    }

    init(_ stack: GatewayStack, host: String = host, target: String = usual) throws {
        try self.init(try Self.opening(stack, host: host, target: target))
    }

    init(_ gateway: ServingProgram, target: String) throws {
        try self.init(try Self.opening(on: try PlainSocket(gateway.address), target: target))
    }

    init(on socket: PlainSocket, target: String) throws {
        try self.init(try Self.opening(on: socket, target: target))
    }

    /// - Parameter ping: one that comes in one piece with the request.
    init(on socket: PlainSocket, pinging ping: [UInt8]? = nil) throws {
        try self.init(try Self.opening(on: socket, rest: ping.map { Self.frame($0, opcode: 0x89) } ?? []))
    }

    /// - Parameter sendsPongs: whether it responds to pings; that takes a reader.
    init(_ opening: (socket: PlainSocket, response: HTTPResponseText), sendsPongs: Bool = false) throws {
        let response: HTTPResponseText
        (socket, response) = opening
        self.sendsPongs = sendsPongs
        guard response.status == 101, response.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" else {
            throw DeadlineExceeded("the socket opens: \(response)")
        }
    }

    /// Ends the connection without a word.
    func cut() { socket.end() }

    /// Sends a message; a longer one than `chunk` characters in chunks, behind their number.
    func send(_ text: String, chunk: Int) throws {
        let characters = Array(text.unicodeScalars)
        guard characters.count > chunk else { return try send(text) }
        let starts = Array(stride(from: 0, to: characters.count, by: chunk))
        try send(String(starts.count))
        for start in starts {
            var piece = String.UnicodeScalarView()
            piece.append(contentsOf: characters[start..<min(characters.count, start + chunk)])
            try send(String(piece))
        }
    }

    /// Sends one text frame.
    func send(_ text: String) throws { try socket.send(Self.frame(text)) }

    /// The head of a text frame of so many bytes, and the beginning of its payload.
    func send(frameOf count: Int, _ part: [UInt8] = []) throws {
        let sizes = (0..<8).reversed().map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }
        try socket.send([0x81, 0x80 | 127] + sizes + [0, 0, 0, 0] + part)
    }

    /// - Parameter opcode: the first byte of the frame.
    func send(_ payload: [UInt8], opcode: UInt8) throws { try socket.send(Self.frame(payload, opcode: opcode)) }

    /// Sends frames in one piece.
    func send(together frames: [(payload: [UInt8], opcode: UInt8)]) throws {
        try socket.send(frames.flatMap { Self.frame($0.payload, opcode: $0.opcode) })
    }

    private static func frame(_ text: String) -> [UInt8] { frame(Array(text.utf8), opcode: 0x81) }

    private static func frame(_ payload: [UInt8], opcode: UInt8) -> [UInt8] {
        let mask: [UInt8] = [7, 77, 177, 201]
        var frame: [UInt8] = [opcode]
        if payload.count < 126 {
            frame.append(0x80 | UInt8(payload.count))
        } else {
            let sizes = (0..<8).reversed().map { UInt8(truncatingIfNeeded: payload.count >> ($0 * 8)) }
            frame += [0x80 | 127] + sizes
        }
        frame += mask
        return frame + payload.enumerated().map { $1 ^ mask[$0 % 4] }
    }

    /// The next message; nil when the server closes. Longer messages come in chunks.
    func message() throws -> JSONValue? { try chunks().map { try JSONParser.parse($0.joined()) } }

    /// The chunks of the next message; one if it came whole, nil when the server closes.
    func chunks() throws -> [String]? {
        guard let first = try frame() else { return nil }
        guard let count = Int(first) else { return [first] }
        return try (0..<count).map { _ in try frame() ?? "" }
    }

    /// The next text frame as JSON; nil when the server closes.
    func value() throws -> JSONValue? {
        guard let text = try frame() else { return nil }
        return try JSONParser.parse(text)
    }

    /// Why the server closes; texts before it are passed over.
    func end() throws -> (code: Int, reason: String) {
        while true {
            let (opcode, payload) = try nextFrame()
            guard opcode == 0x88 else { continue }
            let reason = String(decoding: payload.dropFirst(2), as: UTF8.self)
            return (payload.prefix(2).reduce(0) { $0 << 8 | Int($1) }, reason)
        }
    }

    /// Reads until this pong.
    func awaitPong(_ data: [UInt8]) throws {
        while true {
            let (opcode, payload) = try nextFrame()
            if opcode == 0x8A, payload == data { return }
        }
    }

    /// Reads so many pings, and responds to them if it sends pongs; throws where other frames come.
    func read(pings count: Int) throws {
        for _ in 0..<count {
            let (opcode, payload) = try nextFrame()
            guard opcode == 0x89 else { throw DeadlineExceeded("a ping, and no frame \(opcode)") }
            if sendsPongs { try socket.send(Self.frame(payload, opcode: 0x8A)) }
        }
    }

    /// Whether the server ends the connection; frames before that are passed over.
    func isClosedLater() -> Bool { socket.isClosedLater() }

    private func nextFrame() throws -> (opcode: UInt8, payload: [UInt8]) {
        let head = try socket.bytes(2)
        var count = Int(head[1] & 0x7F)
        if count >= 126 { count = try socket.bytes(count == 126 ? 2 : 8).reduce(0) { $0 << 8 | Int($1) } }
        return (head[0], try socket.bytes(count))
    }

    /// The text of the next text frame.
    private func frame() throws -> String? {
        while true {
            let (opcode, payload) = try nextFrame()
            switch opcode {
            case 0x81: return String(decoding: payload, as: UTF8.self)
            case 0x88: return nil
            case 0x89 where sendsPongs: try socket.send(Self.frame(payload, opcode: 0x8A))
            // A ping needs a pong within 75 seconds, which tests of other things do not last.
            default: continue
            }
        }
    }
}
