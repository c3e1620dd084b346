package import NIOCore

/// How much of what was sent the peer's kernel has acknowledged: the one count that grows steadily while a peer reads
/// slowly. What our own kernel accepts grows in steps of megabytes, many seconds apart.
package enum AcknowledgedBytes {
    /// The beginning of `struct tcp_info` as Linux lays it out (linux/tcp.h); the declaration of the C library ends
    /// earlier. A kernel that knows less leaves the rest at zero.
    private struct Counts: Sendable {
        /// 104 bytes of states and counts, then two rates.
        var before:
            (
                UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64,
                UInt64, UInt64
            )
        /// `tcpi_bytes_acked` (Linux 4.1).
        var acknowledged: UInt64
    }

    /// How many of the bytes written the peer has acknowledged; where the system does not say, how many our own socket
    /// has accepted. Called on the event loop.
    static func taken(of written: Int, by channel: (any Channel)?) -> Int {
        if let channel, let acknowledged = of(channel) { return acknowledged }
        let buffered = try? channel?.syncOptions?.getOption(.bufferedWritableBytes)
        return written - (buffered ?? 0)
    }

    /// Since the connection began, with what TLS adds; called on the event loop. Nil where the system does not say.
    package static func of(_ channel: any Channel) -> Int? {
        #if os(Linux)
            guard let socket = channel as? any SocketOptionProvider else { return nil }
            var count: UInt64 = 0
            let counts: EventLoopFuture<Counts> = socket.unsafeGetSocketOption(level: .tcp, name: .tcp_info)
            // On the event loop the future succeeds at once.
            counts.assumeIsolated().whenSuccess { count = $0.acknowledged }
            return count > 0 ? Int(clamping: count) : nil
        #else
            return nil
        #endif
    }
}
