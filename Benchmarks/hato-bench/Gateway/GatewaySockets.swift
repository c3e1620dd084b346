import Foundation
import HatoModel

/// Connections to a gateway, ready for their work.
enum GatewaySockets {
    /// A WebSocket whose session has begun, with the rights of a token.
    static func webSocket(port: Int, as token: String, receiveBytes: Int32? = nil) throws -> RawSocket {
        let socket = try RawSocket(port: port, receiveBytes: receiveBytes)
        socket.limitWaiting(seconds: 30)
        try socket.send(FirebaseRequests.upgrade)
        try skip(to: "\r\n\r\n", socket)
        try skipFrames(to: #""t":"h""#, socket)
        try socket.send(FirebaseRequests.frame(FirebaseRequests.authenticate(token)))
        try skipFrames(to: #""s":"ok""#, socket)
        return socket
    }

    /// The same, and it listens to the messages of a room.
    static func listener(port: Int, as token: String, room: String, receiveBytes: Int32? = nil) throws -> RawSocket {
        let socket = try webSocket(port: port, as: token, receiveBytes: receiveBytes)
        try socket.send(FirebaseRequests.frame(FirebaseRequests.listen("/chats/\(room)/messages")))
        try skipFrames(to: #""r":2,"b":{"s":"ok""#, socket)
        return socket
    }

    /// An event stream of the messages of a room.
    static func stream(port: Int, as token: String, room: String, receiveBytes: Int32? = nil) throws -> RawSocket {
        let socket = try RawSocket(port: port, receiveBytes: receiveBytes)
        socket.limitWaiting(seconds: 30)
        try socket.send(FirebaseRequests.stream("/chats/\(room)/messages.json?auth=\(token)"))
        try skip(to: "event: put", socket)
        return socket
    }

    /// A session over long polling that listens to the messages of a room; its next poll is sent.
    static func poller(port: Int, as token: String, room: String, receiveBytes: Int32? = nil) throws -> RawSocket {
        let socket = try RawSocket(port: port, receiveBytes: receiveBytes)
        socket.limitWaiting(seconds: 60)
        let script = try polled("start=t&cb=1&v=5&ns=hato", socket)
        let start = script.split(separator: "'", omittingEmptySubsequences: false)
        guard let command = start.firstIndex(of: "start"), command + 4 < start.count else {
            throw BenchError("the session has no name")
        }
        let names = "id=\(start[command + 2])&pw=\(start[command + 4])&ns=hato"
        var received = ""
        let messages = [FirebaseRequests.authenticate(token), FirebaseRequests.listen("/chats/\(room)/messages")]
        for (number, message) in messages.enumerated() {
            let data = Data(message.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
            received += try polled("\(names)&seg0=\(number)&ts0=1&d0=\(data.replacing("=", with: "."))", socket)
        }
        while !received.contains(#""r":2,"b":{"s":"ok""#) { received += try polled(names, socket) }
        try socket.send(FirebaseRequests.rest("GET", "/.lp?\(names)"))
        return socket
    }

    /// The body of the response to a poll.
    private static func polled(_ query: String, _ socket: RawSocket) throws -> String {
        try socket.send(FirebaseRequests.rest("GET", "/.lp?\(query)"))
        let head = try skip(to: "\r\n\r\n", socket).lowercased().split(separator: "\r\n")
        guard let line = head.first(where: { $0.hasPrefix("content-length: ") }), let length = Int(line.dropFirst(16))
        else { throw BenchError("a poll has no response: \(head)") }
        return String(decoding: try (0..<length).map { _ in try byte(of: socket) }, as: UTF8.self)
    }

    private static let skippedBytesMax = 1 << 16

    /// Reads up to a text, byte by byte.
    @discardableResult
    private static func skip(to text: String, _ socket: RawSocket) throws -> String {
        let wanted = Array(text.utf8)
        var read: [UInt8] = []
        while !read.suffix(wanted.count).elementsEqual(wanted) {
            guard read.count < skippedBytesMax else { throw BenchError("\(text) did not come") }
            read.append(try byte(of: socket))
        }
        return String(decoding: read, as: UTF8.self)
    }

    /// Reads frames of a server (RFC 6455, section 5.2) up to the one that contains a text, and nothing behind it.
    private static func skipFrames(to text: String, _ socket: RawSocket) throws {
        var count = 0
        while count < skippedBytesMax {
            _ = try byte(of: socket)
            var length = Int(try byte(of: socket))
            if length == 126 {
                let high = Int(try byte(of: socket))
                length = high << 8 | Int(try byte(of: socket))
            }
            let payload = try (0..<length).map { _ in try byte(of: socket) }
            if String(decoding: payload, as: UTF8.self).contains(text) { return }
            count += length + 2
        }
        throw BenchError("\(text) did not come")
    }

    private static func byte(of socket: RawSocket) throws -> UInt8 {
        var byte: [UInt8] = [0]
        _ = try socket.receive(into: &byte)
        return byte[0]
    }
}
