import NIOCore

/// What the system keeps of the input of one connection (SO_RCVBUF), beside what the budget of the process counts.
///
/// Anyone may open thousands of connections and send what their order or the memory keeps from being read. So a
/// connection gets little until its peer has shown a credential; up to then its lines are short, too
/// (`unauthenticatedLineBytesMax`).
enum SocketInput {
    private static let unauthenticatedBytesMax = 32 << 10

    /// Of a new connection.
    static func option(_ limits: RPCLimits) -> SocketOptionValue {
        SocketOptionValue(min(unauthenticatedBytesMax, limits.socketReceivedBytesMax))
    }

    /// The peer has shown a credential. On the event loop.
    static func widen(_ channel: any Channel, _ limits: RPCLimits) {
        guard limits.socketReceivedBytesMax > unauthenticatedBytesMax else { return }
        let bytes = SocketOptionValue(limits.socketReceivedBytesMax)
        // Without it the connection is slower, no more.
        guard channel is any SocketOptionProvider else { return }
        channel.setOption(.socketOption(.so_rcvbuf), value: bytes).assumeIsolated().whenFailure { _ in }
    }

    /// What was shown is not the credential of those that send from now on. On the event loop.
    static func narrow(_ channel: any Channel, _ limits: RPCLimits) {
        guard channel is any SocketOptionProvider else { return }
        channel.setOption(.socketOption(.so_rcvbuf), value: option(limits)).assumeIsolated().whenFailure { _ in }
    }

    /// Whether the peer has reset the connection; false where the system does not say. On the event loop.
    static func isReset(_ channel: any Channel) -> Bool {
        #if os(Linux)
            guard let socket = channel as? any SocketOptionProvider else { return false }
            var isReset = false
            let state: EventLoopFuture<UInt8> = socket.unsafeGetSocketOption(level: .tcp, name: .tcp_info)
            // On the event loop the future succeeds at once.
            state.assumeIsolated().whenSuccess { isReset = $0 == closedState }
            return isReset
        #else
            return false
        #endif
    }

    /// TCP_CLOSE in `tcpi_state`, the first byte of `struct tcp_info` (linux/tcp.h).
    private static let closedState: UInt8 = 7
}
