import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Synchronization

/// A blocking TCP connection to this machine that reads only on request, for one caller at a time.
final class PlainSocket: Sendable {
    /// Longer than any machine needs: only a call that hangs reaches it.
    private static let secondsMax = 240
    /// The kernel's buffer for a peer that does not read.
    private static let receiveBytes: Int32 = 8 << 10

    private let descriptor: Int32
    /// The bytes behind the last line.
    private let received = Mutex<[UInt8]>([])

    /// - Parameter address: such as `127.0.0.1:7702`.
    init(_ address: String) throws {
        guard let port = address.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw DeadlineExceeded("\(address) has a port")
        }
        #if canImport(Darwin)
            let kind = SOCK_STREAM
        #else
            let kind = Int32(SOCK_STREAM.rawValue)
        #endif
        descriptor = socket(AF_INET, kind, 0)
        guard descriptor >= 0 else { throw DeadlineExceeded("a socket: \(String(cString: strerror(errno)))") }
        var (limit, bytes) = (timeval(), Self.receiveBytes)
        limit.tv_sec = Self.secondsMax
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
        var peer = sockaddr_in()
        peer.sin_family = sa_family_t(AF_INET)
        peer.sin_port = in_port_t(port).bigEndian
        peer.sin_addr.s_addr = inet_addr(String(address.prefix { $0 != ":" }))
        let code = withUnsafePointer(to: &peer) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else { throw DeadlineExceeded("a connection: \(String(cString: strerror(errno)))") }
    }

    deinit { close(descriptor) }

    /// Listens with a credential; returns when the response is there, before the first event is read.
    static func listening(to path: String, at address: String, _ credential: String) throws -> PlainSocket {
        let socket = try PlainSocket(address)
        try socket.call("session.authenticate", ["auth": .string(credential)])
        try socket.call("messages.listen", ["path": .string(path)])
        return socket
    }

    /// Ends both directions.
    func end() { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

    func send(_ method: String, _ params: JSONObject) throws {
        var bytes = EncodedJSON(["jsonrpc": "2.0", "id": 1, "method": .string(method), "params": .object(params)]).bytes
        bytes.append(UInt8(ascii: "\n"))
        try send(bytes)
    }

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                write(descriptor, $0.baseAddress.map { $0 + sent }, bytes.count - sent)
            }
            if count < 0, [EPIPE, ECONNRESET].contains(errno) { throw ConnectionEnded(wanted: "all bytes are sent") }
            guard count > 0 else { throw DeadlineExceeded("all bytes are sent: \(String(cString: strerror(errno)))") }
            sent += count
        }
    }

    /// Sends a request, which must succeed, and takes its response.
    func call(_ method: String, _ params: JSONObject) throws {
        try send(method, params)
        let line = try line()
        guard try JSONParser.parse(line)["result"] != nil else {
            throw DeadlineExceeded("\(method) succeeds: \(String(decoding: line.prefix(1_000), as: UTF8.self))")
        }
    }

    /// Whether the peer ends the connection and sends nothing before; false if it only says nothing.
    func isClosed() -> Bool {
        guard received.withLock({ $0.isEmpty }) else { return false }
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, 0)
        return count == 0 || count < 0 && errno == ECONNRESET
    }

    /// The next line without its end.
    func line() throws -> [UInt8] {
        try received.withLock { received in
            var searched = 0
            while true {
                if let end = received[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                    let line = Array(received[..<end])
                    received.removeFirst(end + 1)
                    return line
                }
                searched = received.count
                try receive(&received, "a line")
            }
        }
    }

    /// So many bytes.
    func bytes(_ count: Int) throws -> [UInt8] {
        try received.withLock { received in
            while received.count < count { try receive(&received, "\(count) bytes") }
            let bytes = Array(received[..<count])
            received.removeFirst(count)
            return bytes
        }
    }

    private func receive(_ received: inout [UInt8], _ wanted: String) throws {
        let block = try [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
            let got = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if got == 0 || got < 0 && errno == ECONNRESET { throw ConnectionEnded(wanted: wanted) }
            guard got > 0 else { throw DeadlineExceeded("\(wanted): \(String(cString: strerror(errno)))") }
            count = got
        }
        received.append(contentsOf: block)
    }

    /// Whether the peer ends the connection; what it sends before is passed over.
    func isClosedLater() -> Bool {
        do { while true { _ = try bytes(1) } } catch { return error is ConnectionEnded }
    }
}

/// The peer has ended or reset a connection; a peer that only says nothing is a `DeadlineExceeded`.
struct ConnectionEnded: Error {
    /// What was to come instead.
    let wanted: String
}

/// Runs blocking work on a thread of its own.
enum Blocking {
    static func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }

    private final class Outcome<Value: Sendable>: Sendable {
        let result = Mutex<Result<Value, any Error>?>(nil)
    }

    /// Waits for asynchronous work, on such a thread.
    static func wait<Value: Sendable>(for body: @escaping @Sendable () async throws -> Value) throws -> Value {
        let done = DispatchSemaphore(value: 0)
        let outcome = Outcome<Value>()
        Task {
            let result: Result<Value, any Error>
            do { result = .success(try await body()) } catch { result = .failure(error) }
            outcome.result.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        guard let result = outcome.result.withLock({ $0 }) else { throw DeadlineExceeded("a result") }
        return try result.get()
    }
}
