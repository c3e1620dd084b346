import HatoModel
import HatoTesting

/// A browser's session over polls (spec realtime-database §8.9), and over the socket that takes it over. For one caller
/// at a time.
///
/// One request is always open, and a second one brings data. They take turns on three connections, which are on
/// different event loops of the gateway.
final class FirebasePoller: FirebaseClient {
    private static let segmentBytes = 1_840

    let id: String
    let password: String
    private let sockets: [PlainSocket]
    private var turn = 0
    /// Of the last request, counted from 1.
    private var serial = 1
    /// The connection of the request that has no response yet.
    private var waiting: PlainSocket?
    private var queue: [JSONValue] = []
    private var nextResponse = 0
    /// Responses that came before an earlier one: requests overtake each other.
    private var responses: [Int: [JSONValue]] = [:]
    private var nextSegment = 0
    private var arePollsClosed = false
    private var socket: FirebaseSocket?
    private var receivesOnSocket = false
    /// Bytes of all responses.
    private(set) var receivedBytes = 0
    /// While it is true, no request is opened to wait for messages.
    var isResting = false

    init(_ stack: GatewayStack, parameters: String = "v=5&ns=hato") throws {
        sockets = try (0..<3).map { _ in try PlainSocket(stack.gateway.address) }
        let first = try HTTPResponseText.of("GET /.lp?start=t&ser=1&cb=7&\(parameters)", on: sockets[0])
        let parts = first.body.split(separator: "'").map(String.init)
        guard first.status == 200, first.headers["content-type"] == "application/javascript; charset=utf-8",
            first.headers["cache-control"] == "no-store",
            first.body.hasPrefix("function pLPCommand(c, a1, a2, a3, a4)"),
            let start = parts.firstIndex(of: "start"), parts.count > start + 4
        else { throw DeadlineExceeded("a session of polls begins: \(first)") }
        (id, password) = (parts[start + 2], parts[start + 4])
        try take(first)
        try openPoll()
    }

    /// The parameters that name the session.
    var names: String { "id=\(id)&pw=\(password)&ns=hato" }

    // MARK: Sending

    func send(_ text: String) throws {
        if let socket { return try socket.send(text) }
        try send(together: [text])
    }

    /// The base64url of a message with dots for padding, in pieces.
    static func segments(of text: String) -> [String] {
        var data = Array(Base64.url.encode(Array(text.utf8)).utf8)
        while data.count % 4 > 0 { data.append(UInt8(ascii: ".")) }
        return stride(from: 0, to: data.count, by: segmentBytes).map { start in
            String(decoding: data[start..<min(start + segmentBytes, data.count)], as: UTF8.self)
        }
    }

    /// Sends messages whose segments share polls.
    func send(together texts: [String]) throws {
        var rest = texts.flatMap { text in
            let segments = Self.segments(of: text)
            return segments.map { (count: segments.count, data: $0) }
        }[...]
        while !rest.isEmpty, !arePollsClosed {
            var query = ""
            for (index, segment) in rest.prefix(8).enumerated() {
                query += "&seg\(index)=\(nextSegment)&ts\(index)=\(segment.count)&d\(index)=\(segment.data)"
                nextSegment += 1
            }
            rest = rest.dropFirst(8)
            try openPoll(query)
        }
    }

    /// Opens a request; the older one gets its response then.
    private func openPoll(_ query: String = "") throws {
        guard !arePollsClosed else { return }
        let older = waiting
        turn = (turn + 1) % sockets.count
        serial += 1
        let head = "GET /.lp?\(names)&ser=\(serial)\(query) HTTP/1.1\r\nHost: localhost\r\n\r\n"
        try sockets[turn].send(Array(head.utf8))
        waiting = sockets[turn]
        if let older { try take(try HTTPResponseText(next: older)) }
    }

    // MARK: Receiving

    func message() throws -> JSONValue? {
        while queue.isEmpty {
            if let socket, receivesOnSocket { return try socket.message() }
            guard !arePollsClosed else { return nil }
            if waiting == nil { try openPoll() }
            guard let current = waiting else { continue }
            waiting = nil
            try take(try HTTPResponseText(next: current))
            if !isResting { try openPoll() }
        }
        let message = queue.removeFirst()
        guard message == ["t": "c", "d": ["t": "n", "d": [:]]], socket != nil else { return message }
        receivesOnSocket = true
        // The polls are closed behind it, without another message.
        while let message = try pollsOnly() { throw DeadlineExceeded("nothing more over polls: \(message)") }
        return try self.message()
    }

    private func pollsOnly() throws -> JSONValue? {
        while queue.isEmpty {
            guard !arePollsClosed else { return nil }
            if waiting == nil { try openPoll() }
            guard let current = waiting else { continue }
            waiting = nil
            try take(try HTTPResponseText(next: current))
        }
        return queue.removeFirst()
    }

    private func take(_ response: HTTPResponseText) throws {
        receivedBytes += response.body.utf8.count
        guard response.status == 200 else { throw DeadlineExceeded("a script: \(response)") }
        for line in response.body.split(separator: "\n") {
            if line.hasPrefix("pRTLPCB("), let comma = line.firstIndex(of: ",") {
                guard let number = Int(line[..<comma].dropFirst("pRTLPCB(".count)), number >= nextResponse,
                    responses[number] == nil, line.hasSuffix(");")
                else { throw DeadlineExceeded("the response \(nextResponse): \(line.prefix(100))") }
                responses[number] = try JSONParser.parse(String(line[line.index(after: comma)...].dropLast(2))).array
                while let messages = responses.removeValue(forKey: nextResponse) {
                    queue += messages
                    nextResponse += 1
                }
            } else if line.hasPrefix("pLPCommand('close'") {
                arePollsClosed = true
            }
        }
    }

    // MARK: The switch and the end

    /// A socket takes the session over, as the JS SDK does it. What `between` sends goes over polls.
    ///
    /// - Parameter last: a message that goes over polls together with the end.
    func switchToSocket(
        _ stack: GatewayStack, session: String, behind last: String? = nil, between: () throws -> Void = {}
    ) throws {
        let socket = try FirebaseSocket(stack, target: "/.ws?v=5&ns=hato&s=\(session)")
        func expect(_ type: String) throws {
            let message = try socket.message()
            guard message?["t"] == "c", message?["d"]?["t"] == .string(type) else {
                throw DeadlineExceeded("\(type) on the socket: \(String(describing: message))")
            }
        }
        try expect("a")
        for _ in 0..<2 {
            try socket.send(#"{"t":"c","d":{"t":"p","d":{}}}"#)
            try between()
            try expect("o")
        }
        try socket.send(#"{"t":"c","d":{"t":"a","d":{}}}"#)
        try send(together: (last.map { [$0] } ?? []) + [Self.end])
        self.socket = socket
    }

    private static let end = #"{"t":"c","d":{"t":"n","d":{}}}"#

    func cut() {
        for socket in sockets { socket.end() }
        socket?.cut()
    }
}
