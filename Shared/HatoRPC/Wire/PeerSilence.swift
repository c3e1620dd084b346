import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Decides whether a peer has vanished or is merely slow.
///
/// TCP's keep-alive asks only while nothing is on its way to the peer. What is on its way to a peer that has vanished
/// would be sent again for a quarter of an hour; TCP_USER_TIMEOUT would end that sooner, but it ends as well a peer
/// that is there and has not read for that time (Linux, tcp_probe_timer), and a listener may be as slow as it likes.
/// So it looks at what the kernel knows: a peer has vanished when it owes an acknowledgement all the time and has sent
/// none.
///
/// One sample in every twelfth of the time that keep-alive takes; the peer is given up so early that both together find
/// it within that time.
struct PeerSilence: Sendable {
    /// What the kernel knows of a connection.
    struct Sample: Sendable {
        /// Whether data or a probe was sent that is not acknowledged.
        var isAwaited: Bool
        /// Time since the last acknowledgement came.
        var quiet: TimeAmount
    }

    private var since: NIODeadline?

    /// How long keep-alive takes to give a peer up: the promise for all of them.
    static func limit(_ limits: RPCLimits) -> TimeAmount {
        .seconds(Int64(limits.keepAliveIdleSeconds + limits.keepAliveIntervalSeconds * limits.keepAliveProbes))
    }

    static func interval(_ limits: RPCLimits) -> TimeAmount { .nanoseconds(limit(limits).nanoseconds / 12) }

    /// Whether the peer has vanished.
    mutating func looked(_ sample: Sample, at now: NIODeadline, _ limits: RPCLimits) -> Bool {
        let interval = Self.interval(limits)
        guard sample.isAwaited, sample.quiet >= interval else {
            since = nil
            return false
        }
        let first = since ?? now
        since = first
        // The silence began up to an interval before it counted, and that was seen up to an interval later.
        return now - first >= Self.limit(limits) - interval - interval
    }
}

extension PeerSilence.Sample {
    /// Looks at a socket, at once when on its event loop; nil where there is no such question.
    static func at(_ channel: any Channel) -> EventLoopFuture<PeerSilence.Sample>? {
        #if os(Linux)
            guard let socket = channel as? any SocketOptionProvider else { return nil }
            return socket.getTCPInfo().map { known in
                PeerSilence.Sample(
                    isAwaited: known.tcpi_unacked > 0 || known.tcpi_probes > 0,
                    quiet: .milliseconds(Int64(known.tcpi_last_ack_recv)))
            }
        #else
            return nil
        #endif
    }
}
