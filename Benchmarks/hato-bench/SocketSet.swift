import Foundation

#if os(Linux)
    import CEpoll

    /// Waits for several sockets at once. The cost of a wait does not grow with the number of silent sockets.
    final class SocketSet {
        private let descriptor: Int32
        private var events = [epoll_event](repeating: epoll_event(), count: 256)

        init(_ sockets: [RawSocket]) throws {
            descriptor = epoll_create1(0)
            for (index, socket) in sockets.enumerated() {
                var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: UInt64(index)))
                guard epoll_ctl(descriptor, EPOLL_CTL_ADD, socket.descriptor, &event) == 0 else {
                    throw BenchError("cannot wait for a socket: \(String(cString: strerror(errno)))")
                }
            }
        }

        deinit { close(descriptor) }

        /// Puts the indices of readable sockets into `ready`: none if nothing arrived in time.
        func wait(_ ready: inout [Int], milliseconds: Int32) throws {
            ready.removeAll(keepingCapacity: true)
            let count = epoll_wait(descriptor, &events, Int32(events.count), milliseconds)
            guard count >= 0 else { throw BenchError("cannot wait: \(String(cString: strerror(errno)))") }
            for event in events[..<Int(count)] { ready.append(Int(event.data.u64)) }
        }
    }
#else
    /// Waits for several sockets at once.
    final class SocketSet {
        private var entries: [pollfd]

        init(_ sockets: [RawSocket]) throws {
            entries = sockets.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
        }

        /// Puts the indices of readable sockets into `ready`: none if nothing arrived in time.
        func wait(_ ready: inout [Int], milliseconds: Int32) throws {
            ready.removeAll(keepingCapacity: true)
            guard poll(&entries, nfds_t(entries.count), milliseconds) >= 0 else {
                throw BenchError("cannot wait: \(String(cString: strerror(errno)))")
            }
            for index in entries.indices where entries[index].revents != 0 { ready.append(index) }
        }
    }
#endif

extension SocketSet {
    /// Throws when nothing arrived for 30 s.
    func wait(_ ready: inout [Int]) throws {
        try wait(&ready, milliseconds: 30_000)
        guard !ready.isEmpty else { throw BenchError("nothing came for 30 s") }
    }
}
