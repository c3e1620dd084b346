import HatoModel
import HatoRPC

/// Where notifications go: a connection, or what stands for one in a test. May be used from any thread.
protocol ListenerPeer: AnyObject, Sendable {
    var id: UInt64 { get }
    var isClosed: Bool { get }

    /// The name of the client that requests of `caller` on this connection count for.
    func client(speakingAs caller: Caller) -> String

    /// False when the peer is behind (or gone) and nothing was sent.
    func notify(_ method: String, subscription: String, members: EncodedJSON) -> Bool
    /// Calls once, as soon as `notify` may return true again.
    func onDrain(_ drained: @escaping @Sendable () -> Void)
    /// Calls once, when the peer is gone.
    func whenClosed(_ closed: @escaping @Sendable () -> Void)
}

extension RPCConnection: ListenerPeer {
    func whenClosed(_ closed: @escaping @Sendable () -> Void) { onClose(closed) }
}
