public import HatoModel

/// What a method knows about the request beside its params.
public struct RPCContext: Sendable {
    /// The caller: by the `auth` (and `as`) of the call, else the identity of the connection.
    public var caller: Caller
    /// The connection the request came on.
    public var connection: RPCConnection
    /// Whether `caller` came with this call and not from `session.authenticate`.
    public var isCallCredential: Bool
    /// Whether an administrator makes this call and speaks as `caller` (`as` of the call).
    public var isByAdministrator: Bool
    /// The name of the service key that the call was made with, or its connection has authenticated with; nil without
    /// one.
    public var service: String?
    /// The name of the method that was called.
    public var method: String
    /// What the request took of its line.
    public var byteCount: Int
    /// The request this belongs to, as the order of its connection counts it.
    let sequence: UInt64
    /// The name of the client that is charged for the connection, when the request is that client's.
    let chargedClient: String?
    /// The address of the client whose call is forwarded (`from` of the call, else of `session.forward`, else that of
    /// the socket); nil: the connection does not forward.
    public let forwarded: ForwardedAddress?

    /// The address of the client as limits count it.
    public var clientAddress: ClientAddress { forwarded?.client ?? connection.socketAddress }

    /// The client that limits count: a user, wherever the connections come from, else the address.
    public var client: String { chargedClient ?? ClientAccount.name(caller, clientAddress) }

    /// The same for limits that do not hold for administrators, also when they speak as a user: nil for them.
    public var limitedClient: String? { caller.isAdministrator || isByAdministrator ? nil : client }

    /// The bytes that a result of a read may have without a reservation (`RPCReply.readAgain`).
    public var unreservedReadBytesMax: Int { connection.hub.server.limits.unreservedReadBytesMax }

    /// A name for a listener that this request opens, unique on its connection.
    ///
    /// Notifications to it wait until the response of this request is written, so that the peer knows the name when the
    /// first one comes.
    public func openSubscription() -> String { connection.openSubscription(by: sequence) }

    /// Calls when the identity that this request was made with changes or ends (protocol §2); for a listener that it
    /// opens. While the watch lives, the connection does not count as idle. Callbacks come on the connection's event
    /// loop. One that leaves work to another thread keeps the `RPCIdentityWork` until it is done.
    public func watchIdentity(
        _ change: @escaping @Sendable (RPCIdentityChange, RPCIdentityWork) -> Void
    ) -> RPCWatch {
        connection.watchIdentity(
            IdentityWatches.Identity(caller: caller, isCallCredential: isCallCredential, method: method), change)
    }
}

/// What is left to do after the identity of a connection has changed: the connection's next request waits until nothing
/// refers to it. A peer that authenticates as two users in turn leaves no more than one change of each listener to do.
public final class RPCIdentityWork: Sendable {
    private let done: @Sendable () -> Void

    init(_ done: @escaping @Sendable () -> Void) { self.done = done }

    /// Called at the end of the work by code that would not refer to it otherwise.
    public func isStillUnderWay() {}

    deinit { done() }
}

/// What happened to the identity a listener was opened with.
public enum RPCIdentityChange: Sendable, Hashable {
    /// The same user authenticated again: nothing to check, the identity lasts longer. Carries the newer claims.
    case extended(Caller)
    /// The connection now speaks for another caller (or none): rules must be evaluated again, as this caller.
    case replaced(Caller)
    /// The token ended: the listener must be cancelled with reason `token_expired`.
    case expired
    /// The identity ended before its token, as auth said: the listener must be cancelled with reason `token_revoked`.
    case revoked
}
