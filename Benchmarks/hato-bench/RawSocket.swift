import Foundation
import HatoModel
import HatoRPC

/// A TCP connection to this machine, with as little code as possible.
struct RawSocket: Sendable {
    let descriptor: Int32

    /// Connects to 127.0.0.1. `receiveBytes` limits the kernel's buffer for a peer that does not read.
    init(port: Int, receiveBytes: Int32? = nil) throws {
        self.init(descriptor: try Self.newDescriptor())
        if var receiveBytes {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBytes, socklen_t(MemoryLayout<Int32>.size))
        }
        let connected = Self.withAddress(port) { connect(descriptor, $0, $1) }
        guard connected == 0 else {
            close()
            throw BenchError("no connection to port \(port): \(String(cString: strerror(errno)))")
        }
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Connects to a service and signs in.
    init(port: Int, receiveBytes: Int32? = nil, signedInWith token: String) throws {
        try self.init(port: port, receiveBytes: receiveBytes)
        try signIn(token)
    }

    private init(descriptor: Int32) { self.descriptor = descriptor }

    private static func newDescriptor() throws -> Int32 {
        #if canImport(Darwin)
            let kind = SOCK_STREAM
        #else
            let kind = Int32(SOCK_STREAM.rawValue)
        #endif
        let descriptor = socket(AF_INET, kind, 0)
        guard descriptor >= 0 else { throw BenchError("no socket: \(String(cString: strerror(errno)))") }
        return descriptor
    }

    private static func withAddress<Value>(
        _ port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value
    ) -> Value {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    func close() { _ = Foundation.close(descriptor) }

    // MARK: Serving

    /// A socket that listens on a port of the system's choice.
    static func listening() throws -> (socket: RawSocket, port: Int) {
        let socket = RawSocket(descriptor: try newDescriptor())
        guard withAddress(0, { bind(socket.descriptor, $0, $1) }) == 0, listen(socket.descriptor, 16) == 0 else {
            socket.close()
            throw BenchError("no port to listen on")
        }
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = getsockname(socket.descriptor, $0, &length)
            }
        }
        return (socket, Int(in_port_t(bigEndian: address.sin_port)))
    }

    /// The next peer of a listening socket.
    func accepted() throws -> RawSocket {
        let peer = accept(descriptor, nil, nil)
        guard peer >= 0 else { throw BenchError("no peer connected: \(String(cString: strerror(errno)))") }
        return RawSocket(descriptor: peer)
    }

    // MARK: Bytes

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { pointer in
                Foundation.write(descriptor, pointer.baseAddress.map { $0 + sent }, bytes.count - sent)
            }
            guard count > 0 else { throw BenchError("the peer closed: \(String(cString: strerror(errno)))") }
            sent += count
        }
    }

    /// The bytes that have arrived, at least one, from `offset` of the buffer on; returns their number.
    func receive(into buffer: inout [UInt8], at offset: Int = 0) throws -> Int {
        let count = buffer.withUnsafeMutableBytes { bytes in
            Foundation.read(descriptor, bytes.baseAddress.map { $0 + offset }, bytes.count - offset)
        }
        guard count > 0 else { throw BenchError("the peer closed") }
        return count
    }

    func receive(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        let count = Foundation.read(descriptor, buffer.baseAddress, buffer.count)
        guard count > 0 else { throw BenchError("the peer closed") }
        return count
    }

    /// A read that waits longer fails.
    func limitWaiting(seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Whether the peer has reset the connection.
    var hasEnded: Bool {
        var entry = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&entry, 1, 0) > 0
    }

    /// Ends both directions; a waiting read returns.
    func end() { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

    // MARK: Lines, for setting up

    /// Sends a request and reads the line of its response, which must be a result.
    @discardableResult
    func call(_ method: String, _ params: EncodedJSON = EncodedJSON("{}")) throws -> String {
        try send(ChatRequests.line(method, params.bytes))
        let line = try readLine()
        guard line.contains("\"result\"") else { throw BenchError("\(method): \(line)") }
        return line
    }

    func signIn(_ token: String) throws {
        try call(Session.Authenticate.method, EncodedJSON(["auth": .string(token)]))
    }

    /// Listens to the messages of a room and reads the first event, the present value.
    func openListener(on room: String) throws {
        try call(Messages.Listen.method, EncodedJSON(["path": .string("/chats/\(room)/messages")]))
        try readLine()
    }

    /// One line, byte by byte.
    @discardableResult
    func readLine() throws -> String {
        var line: [UInt8] = []
        var byte: [UInt8] = [0]
        while true {
            _ = try receive(into: &byte)
            if byte[0] == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            line.append(byte[0])
        }
    }
}
