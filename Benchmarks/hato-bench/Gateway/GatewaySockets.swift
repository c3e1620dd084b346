import HatoModel

/// Connections to a gateway, ready for their work.
enum GatewaySockets {
    /// A WebSocket whose session has begun, with the rights of a token.
    static func webSocket(port: Int, as token: String, receiveBytes: Int32? = nil) throws -> RawSocket {
        let socket = try RawSocket(port: port, receiveBytes: receiveBytes)
        socket.limitWaiting(seconds: 30)
        try socket.send(FirebaseRequests.upgrade)
        // The response, and the hello of the session behind it.
        try skip(to: #""t":"h""#, socket)
        try socket.send(FirebaseRequests.authenticate(token))
        try skip(to: #""s":"ok""#, socket)
        return socket
    }

    /// The same, and it listens to the messages of a room.
    static func listener(port: Int, as token: String, room: String, receiveBytes: Int32? = nil) throws -> RawSocket {
        let socket = try webSocket(port: port, as: token, receiveBytes: receiveBytes)
        try socket.send(FirebaseRequests.listen("/chats/\(room)/messages"))
        try skip(to: #""r":2,"b":{"s":"ok""#, socket)
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

    /// Reads up to a text, byte by byte.
    private static func skip(to text: String, _ socket: RawSocket) throws {
        let wanted = Array(text.utf8)
        var read: [UInt8] = []
        var byte: [UInt8] = [0]
        while !read.suffix(wanted.count).elementsEqual(wanted) {
            guard read.count < 1 << 16 else { throw BenchError("\(text) did not come") }
            _ = try socket.receive(into: &byte)
            read.append(byte[0])
        }
    }
}
