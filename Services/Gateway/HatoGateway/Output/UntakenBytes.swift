import HatoRPC
import NIOCore
import Synchronization

/// What the peers of all connections have not taken (`UntakenShares`), over all event loops. Any thread calls.
final class UntakenBytes: Sendable {
    private let shares: Mutex<UntakenShares>
    /// Without a stopped client there is nothing to look up.
    private let stoppedCount = Atomic(0)

    init(_ limits: GatewayLimits) {
        shares = Mutex(
            UntakenShares(
                UntakenShares.Limits(
                    bytesMax: limits.untakenBytesMax, perClientMax: limits.untakenBytesPerAddressMax,
                    progress: UntakenProgress.Limits(
                        stalledMsMax: limits.stalledPeerMsMax, slowMsMax: limits.untakenMsMax,
                        bytesPerSecondMin: limits.stalledPeerBytesPerSecond, drainMsMax: limits.untakenDrainMsMax))))
    }

    /// Of all clients.
    var count: Int { shares.withLock { $0.bytes } }

    /// Whether clients are stopped.
    var stopsClients: Bool { stoppedCount.load(ordering: .relaxed) > 0 }

    /// Whether the connections to services are not read for this client.
    func isStopped(_ client: ClientAddress) -> Bool { stopsClients && shares.withLock { $0.isStopped(client) } }

    /// A connection has so many bytes that its peer has not taken. Returns whether a client was stopped, or may go on.
    func changed(_ holder: UntakenShares.Holder, of client: ClientAddress, to bytes: Int) -> Bool {
        change { $0.changed(holder, of: client, to: bytes, at: Self.now) }
    }

    /// The peer of a connection of a client that is stopped has taken so many bytes (`UntakenShares.looked`).
    func looked(at holder: UntakenShares.Holder, taken: Int, waiting: Int) {
        shares.withLock { $0.looked(at: holder, taken: taken, waiting: waiting, at: Self.now) }
    }

    /// Looks at all clients again. Returns whether one was stopped, or may go on, and the connections that are to be
    /// closed.
    func review() -> (hasChanged: Bool, overdue: [UntakenShares.Holder]) {
        let hasChanged = change { $0.review(at: Self.now) }
        return (hasChanged, shares.withLock { $0.overdue() })
    }

    private func change(_ body: (inout sending UntakenShares) -> Bool) -> Bool {
        shares.withLock { shares in
            let hasChanged = body(&shares)
            stoppedCount.store(shares.stoppedCount, ordering: .relaxed)
            return hasChanged
        }
    }

    private static var now: Int64 { Int64(clamping: NIODeadline.now().uptimeNanoseconds / 1_000_000) }
}
