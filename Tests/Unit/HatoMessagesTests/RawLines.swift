import Foundation
import HatoModel
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// A connection as bare lines, for what a client would hide: the order in which lines come.
final class RawLines: Sendable {
    private let descriptor: Int32
    // Only the one test that owns the connection asks for lines, one at a time.
    nonisolated(unsafe) private var iterator: AsyncStream<String>.Iterator

    private let continuation: AsyncStream<String>.Continuation

    private init(descriptor: Int32) {
        self.descriptor = descriptor
        let (lines, continuation) = AsyncStream.makeStream(of: String.self)
        iterator = lines.makeAsyncIterator()
        self.continuation = continuation
    }

    func startReading() {
        // The thread reads a number of its own: the other one, closed while it is read, could be the next connection's,
        // whose lines would end here.
        let (descriptor, continuation) = (dup(descriptor), continuation)
        Thread.detachNewThread {
            var pending: [UInt8] = []
            var block = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = read(descriptor, &block, block.count)
                guard count > 0 else { break }
                pending.append(contentsOf: block[..<count])
                while let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
                    continuation.yield(String(decoding: pending[..<end], as: UTF8.self))
                    pending.removeSubrange(...end)
                }
            }
            _ = Glibc.close(descriptor)
            continuation.finish()
        }
    }

    static func connect(_ running: RunningMessages, readsAtOnce: Bool = true) async throws -> RawLines {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(running.port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else { throw EndOfEvents() }
        let lines = RawLines(descriptor: descriptor)
        if readsAtOnce { lines.startReading() }
        return lines
    }

    func send(_ line: String) async throws {
        try send(bytes: Array((line + "\n").utf8))
    }

    /// Anything, also what is no line.
    func send(bytes: [UInt8]) throws {
        // A peer that has closed is an error here, not a signal that ends the tests.
        let sent = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        guard sent == bytes.count else { throw EndOfEvents() }
    }

    func next() async throws -> JSONValue {
        guard let line = await iterator.next() else { throw EndOfEvents() }
        return try JSONParser.parse(line)
    }

    func close() { end(.closed) }

    /// How a connection may end.
    enum End: Sendable {
        case closed
        /// Only the own direction: responses could still come.
        case halfClosed
        /// With a reset.
        case reset
        /// Without a packet: the kernel no longer acknowledges anything.
        case vanished
    }

    func end(_ end: End) {
        switch end {
        case .closed: _ = Glibc.shutdown(descriptor, Int32(SHUT_RDWR))
        case .halfClosed: _ = Glibc.shutdown(descriptor, Int32(SHUT_WR))
        case .reset:
            // Unlike a close with SO_LINGER this keeps the descriptor, which the reading thread may use.
            var address = sockaddr()
            address.sa_family = sa_family_t(AF_UNSPEC)
            _ = Glibc.connect(descriptor, &address, socklen_t(MemoryLayout<sockaddr>.size))
        case .vanished: dropEverything()
        }
    }

    /// Attaches a socket filter of one instruction: keep no byte of any packet.
    private func dropEverything() {
        struct Instruction {
            var code: UInt16 = 0x06
            var (whenTrue, whenFalse): (UInt8, UInt8) = (0, 0)
            var operand: UInt32 = 0
        }
        struct Program {
            var count: UInt16
            var instructions: UnsafeMutablePointer<Instruction>
        }
        var instruction = Instruction()
        let code = withUnsafeMutablePointer(to: &instruction) { pointer in
            var program = Program(count: 1, instructions: pointer)
            return setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, socklen_t(MemoryLayout<Program>.size))
        }
        #expect(code == 0)
    }

    deinit {
        close()
        _ = Glibc.close(descriptor)
    }
}
