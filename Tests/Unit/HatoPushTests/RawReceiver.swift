import Foundation
import HatoTesting
import Synchronization

/// A receiver that takes one connection, reads the beginning of the request, sends the bytes that the test says, and
/// then nothing more: the connection stays open.
final class RawReceiver: Sendable {
    private let listening: Int32
    private let accepted = Atomic<Int32>(-1)
    let port: Int

    init(sends text: String) throws {
        #if canImport(Darwin)
            let kind = SOCK_STREAM
        #else
            let kind = Int32(SOCK_STREAM.rawValue)
        #endif
        listening = socket(AF_INET, kind, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let (listening, length) = (listening, size)
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listening, $0, length) == 0 && listen(listening, 1) == 0
                    ? getsockname(listening, $0, &size) : -1
            }
        }
        guard code == 0 else { throw DeadlineExceeded("a socket: \(String(cString: strerror(errno)))") }
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread { [self] in
            let connection = accept(listening, nil, nil)
            var buffer = [UInt8](repeating: 0, count: 65_536)
            guard connection >= 0, recv(connection, &buffer, buffer.count, 0) > 0 else { return }
            _ = Array(text.utf8).withUnsafeBytes { send(connection, $0.baseAddress, $0.count, 0) }
            accepted.store(connection, ordering: .sequentiallyConsistent)
        }
    }

    /// Whether the sender has closed the connection.
    var isClosed: Bool {
        let connection = accepted.load(ordering: .sequentiallyConsistent)
        guard connection >= 0 else { return false }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(connection, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count <= 0 { return count == 0 || errno != EAGAIN }
        }
    }

    deinit {
        shutdown(listening, Int32(SHUT_RDWR))
        close(listening)
        let connection = accepted.load(ordering: .sequentiallyConsistent)
        if connection >= 0 { close(connection) }
    }
}
