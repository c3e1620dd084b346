import HatoModel
import HatoTesting

/// One response to a request over a plain socket.
struct HTTPResponseText {
    var status: Int
    /// By name in lower case.
    var headers: [String: String]
    var body: String

    var json: JSONValue? { try? JSONParser.parse(body) }

    /// Sends a request and reads its response, of which the length is known.
    static func of(
        _ request: String, _ headers: [String] = [], body: String? = nil, on socket: PlainSocket
    ) throws -> HTTPResponseText {
        try Self.request(request, headers, body: body, on: socket)
        return try HTTPResponseText(next: socket, isHead: request.hasPrefix("HEAD"))
    }

    /// Sends a request.
    static func request(
        _ request: String, _ headers: [String] = [], body: String? = nil, on socket: PlainSocket
    ) throws {
        var lines = ["\(request) HTTP/1.1", "Host: localhost"] + headers
        if let body { lines.append("Content-Length: \(body.utf8.count)") }
        try socket.send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? "")).utf8))
    }

    /// The next response on a socket.
    init(next socket: PlainSocket, isHead: Bool = false) throws {
        self = try HTTPResponseText(headOf: socket)
        if let count = headers["content-length"].flatMap({ Int($0) }), !isHead {
            body = String(decoding: try socket.bytes(count), as: UTF8.self)
        }
    }

    /// The head of a response; its body is not read.
    init(headOf socket: PlainSocket) throws {
        func line() throws -> String {
            let line = String(decoding: try socket.line(), as: UTF8.self)
            return line.hasSuffix("\r") ? String(line.dropLast()) : String(line.filter { $0 != "\r\n" })
        }
        let first = try line().split(separator: " ")
        guard first.count > 1, let status = Int(first[1]) else { throw DeadlineExceeded("a response") }
        (self.status, headers, body) = (status, [:], "")
        while true {
            let text = try line()
            guard let colon = text.firstIndex(of: ":") else { return }
            let value = text[text.index(after: colon)...].drop { $0 == " " }
            headers[text[..<colon].lowercased()] = String(value)
        }
    }
}
