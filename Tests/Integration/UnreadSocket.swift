import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A blocking socket that reads only when the test calls it.
final class UnreadSocket: Sendable {
    private let descriptor: Int32

    /// - Parameter receiveBytes: of the kernel's buffer.
    init(port: Int, receiveBytes: Int32 = 4_096) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
        var size = receiveBytes
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(clamping: port).bigEndian)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
    }

    deinit { _ = Glibc.close(descriptor) }

    func send(_ text: String) throws {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
            rest = rest.dropFirst(count)
        }
    }

    /// A line, read byte by byte; nil at the end.
    func line() -> String? {
        var (bytes, byte): ([UInt8], UInt8) = ([], 0)
        while recv(descriptor, &byte, 1, 0) == 1 {
            if byte == UInt8(ascii: "\n") { return String(decoding: bytes, as: UTF8.self) }
            bytes.append(byte)
        }
        return nil
    }

    /// Waits for the next `count` bytes and returns them; fewer at the end.
    func read(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let received = recv(descriptor, &bytes, count, Int32(MSG_WAITALL))
        return Array(bytes.prefix(max(0, received)))
    }

    /// The bytes that have arrived, at most so many.
    func available(_ count: Int = 1 << 20) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let received = recv(descriptor, &bytes, count, Int32(MSG_DONTWAIT))
        return Array(bytes.prefix(max(0, received)))
    }

    /// Closes with a reset.
    func reset() {
        var how = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &how, socklen_t(MemoryLayout<linger>.size))
    }
}
