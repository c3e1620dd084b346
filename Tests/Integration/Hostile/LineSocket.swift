import Foundation

/// A blocking TCP connection to this machine that sends and receives lines, valid JSON or not.
///
/// For one thread at a time. Each wait ends at a deadline.
final class LineSocket {
    enum Problem: Error, CustomStringConvertible {
        case cannotConnect(String)
        case closed(String)
        case noLineInTime

        var description: String {
            switch self {
            case .cannotConnect(let reason): "no connection: \(reason)"
            case .closed(let reason): "the connection was closed: \(reason)"
            case .noLineInTime: "no line came in time"
            }
        }
    }

    private let descriptor: Int32
    private var received: [UInt8] = []
    /// The first byte that is not part of a returned line.
    private var start = 0
    private var block = [UInt8](repeating: 0, count: 1 << 16)

    /// Connects to an address such as `127.0.0.1:7702`.
    init(_ address: String, within seconds: Int) throws(Problem) {
        guard let port = address.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw .cannotConnect("\(address) has no port")
        }
        #if canImport(Darwin)
            let kind = SOCK_STREAM
        #else
            let kind = Int32(SOCK_STREAM.rawValue)
        #endif
        descriptor = socket(AF_INET, kind, 0)
        guard descriptor >= 0 else { throw .cannotConnect(Self.lastError) }
        var limit = timeval()
        limit.tv_sec = seconds
        var on: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        var peer = sockaddr_in()
        peer.sin_family = sa_family_t(AF_INET)
        peer.sin_port = in_port_t(port).bigEndian
        peer.sin_addr.s_addr = inet_addr("127.0.0.1")
        let code = withUnsafePointer(to: &peer) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else { throw .cannotConnect(Self.lastError) }
    }

    deinit { close(descriptor) }

    func send(_ line: String) throws(Problem) {
        let bytes = Array(line.utf8) + [UInt8(ascii: "\n")]
        #if canImport(Darwin)
            let flags: Int32 = 0
        #else
            let flags = Int32(MSG_NOSIGNAL)
        #endif
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { pointer in
                Foundation.send(descriptor, pointer.baseAddress.map { $0 + sent }, bytes.count - sent, flags)
            }
            guard count > 0 else { throw .closed(Self.lastError) }
            sent += count
        }
    }

    /// The next line without its end.
    func line() throws(Problem) -> [UInt8] {
        var searched = start
        while true {
            if let end = received[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                defer { start = end + 1 }
                return Array(received[start..<end])
            }
            received.removeFirst(start)
            start = 0
            searched = received.count
            let count = recv(descriptor, &block, block.count, 0)
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { throw .noLineInTime }
            guard count > 0 else { throw .closed(count == 0 ? "its end came" : Self.lastError) }
            received.append(contentsOf: block[..<count])
        }
    }

    private static var lastError: String { String(cString: strerror(errno)) }
}
