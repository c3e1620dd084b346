import Foundation

/// A TCP connection to this machine, as thin as it can be.
struct RawSocket: Sendable {
    let descriptor: Int32

    init(port: Int) throws {
        #if canImport(Darwin)
            let kind = SOCK_STREAM
        #else
            let kind = Int32(SOCK_STREAM.rawValue)
        #endif
        descriptor = socket(AF_INET, kind, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else {
            _ = Foundation.close(descriptor)
            throw BenchError("no connection to port \(port): \(String(cString: strerror(errno)))")
        }
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    func close() { _ = Foundation.close(descriptor) }

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

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    /// What has come, at least one byte.
    func receive(into buffer: inout [UInt8]) throws -> Int {
        let count = buffer.withUnsafeMutableBytes { Foundation.read(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { throw BenchError("the peer closed") }
        return count
    }

    /// Sends a line and takes the line that answers it, which must be a result.
    func call(_ method: String, _ params: String) throws -> String {
        try send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\(method)\",\"params\":\(params)}\n")
        let line = try readLine()
        guard line.contains("\"result\"") else { throw BenchError("\(method): \(line)") }
        return line
    }

    /// One line, byte by byte: only for setting up.
    func readLine() throws -> String {
        var line: [UInt8] = []
        var byte: [UInt8] = [0]
        while true {
            _ = try receive(into: &byte)
            if byte[0] == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            line.append(byte[0])
        }
    }

    /// Runs blocking work on a thread of its own: the tasks' threads are few.
    static func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }
}

/// Waits for several sockets at once.
struct SocketSet {
    private var entries: [pollfd]

    init(_ sockets: [RawSocket]) {
        entries = sockets.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
    }

    /// The indices of sockets that have something to read, after at most so many milliseconds.
    mutating func ready(within milliseconds: Int32) -> [Int] {
        guard poll(&entries, nfds_t(entries.count), milliseconds) > 0 else { return [] }
        return entries.indices.filter { entries[$0].revents != 0 }
    }
}
