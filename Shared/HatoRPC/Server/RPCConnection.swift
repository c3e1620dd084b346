public import HatoModel

/// One peer of a server, as the methods it calls see it. May be used from any thread.
public final class RPCConnection: Sendable {
    public let id: UInt64
    public let remoteAddress: String

    init(id: UInt64, remoteAddress: String) {
        self.id = id
        self.remoteAddress = remoteAddress
    }

    /// The identity of the connection, as of `session.authenticate`; nobody when its token has ended.
    public var caller: Caller { .nobody }

    /// Sends a notification `{"subscription": …, <members>}`; `members` are the further members of its params as JSON
    /// text without braces (`"version":1,"events":[…]`), written once for all listeners that get the same.
    ///
    /// False when the peer is behind: it has not taken `unsentNotificationBytesMax` yet, and nothing was sent. Bring it up
    /// to date when `onDrain` calls. Also false after the connection closed.
    public func notify(_ method: String, subscription: String, members: EncodedJSON) -> Bool { false }

    /// Calls once, on the event loop, as soon as the peer has taken enough for `notify` to answer true.
    public func onDrain(_ drained: @escaping @Sendable () -> Void) {}

    /// Calls once, on the event loop, when the connection has closed (at once if it has already).
    @discardableResult
    public func onClose(_ closed: @escaping @Sendable () -> Void) -> RPCWatch { RPCWatch {} }

    /// While there are holds, a connection without traffic is not closed: one for each listener, follower or onDisconnect entry.
    public func beginHold() {}
    public func endHold() {}

    /// Ends the connection after what has been answered is sent.
    public func close() {}

    func openSubscription(by sequence: UInt64) -> String { "" }

    func watchIdentity(
        of caller: Caller, isCallCredential: Bool, _ change: @escaping @Sendable (RPCIdentityChange) -> Void
    ) -> RPCWatch { RPCWatch {} }
}

/// A callback that can be taken back.
public final class RPCWatch: Sendable {
    private let end: @Sendable () -> Void

    init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    /// No callback starts after this returns on the connection's event loop; elsewhere one may just be running.
    public func cancel() { end() }
}
