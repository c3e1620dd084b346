import HatoModel
import HatoRPC
import Synchronization

/// The identity of registered onDisconnect writes: the caller at that time, and later the identity of the connection.
///
/// The identity behaves as that of a listener (protocol §2): the same user again extends it, another one replaces it,
/// `session.end` leaves no user (unless the identity came with the call). When its token ends, there is no user until
/// the connection authenticates again. The connection counts as busy as long as something refers to the owner.
///
/// The store has the identity too, for the case that the process ends first: each change of it is written in its order
/// among the writes of the connection, and no response waits for it.
final class DisconnectOwner: Sendable {
    private struct State {
        var caller: Caller
        var watch: RPCWatch?
    }

    /// Among those of its connection.
    let number: UInt32
    private let isCallCredential: Bool
    private let changed: @Sendable (DisconnectOwner, RPCIdentityWork?) -> Void
    private let state: Mutex<State>

    /// - Parameter changed: called on the connection's event loop after a change of the user, or with newer claims.
    init(
        _ context: RPCContext, number: UInt32,
        changed: @escaping @Sendable (DisconnectOwner, RPCIdentityWork?) -> Void
    ) {
        self.number = number
        self.changed = changed
        isCallCredential = context.isCallCredential
        state = Mutex(State(caller: context.caller))
        watch(context)
    }

    /// An owner of a process that has ended.
    init(_ caller: Caller, number: UInt32) {
        self.number = number
        changed = { _, _ in }
        isCallCredential = true
        state = Mutex(State(caller: caller))
    }

    /// The identity that is stored.
    var caller: Caller { state.withLock { $0.caller } }

    deinit { state.withLock { $0.watch }?.cancel() }

    /// The identity for rules at the time `now`, in milliseconds since 1970.
    func caller(at now: Int64) -> Caller {
        let caller = state.withLock { $0.caller }
        // The connection may have ended before its timer did.
        if case .user(let user) = caller, let end = user.expiresAt, end <= now { return .nobody }
        return caller
    }

    /// Takes over the identity of a request of the same user, whose credential may be newer; false for another user.
    func adopt(_ context: RPCContext) -> Bool {
        let caller = state.withLock { $0.caller }
        guard isCallCredential == context.isCallCredential, Self.isSame(caller, context.caller) else { return false }
        if caller != context.caller {
            state.withLock { $0.caller = context.caller }
            watch(context)
            changed(self, nil)
        }
        return true
    }

    /// Another variable is another identity, also where its uid is the same.
    private static func isSame(_ one: Caller, _ other: Caller) -> Bool {
        switch (one, other) {
        case (.variable, _), (_, .variable): one == other
        default: one.uid == other.uid && one.isAdministrator == other.isAdministrator
        }
    }

    private func watch(_ context: RPCContext) {
        let watch = context.watchIdentity { [weak self] change, work in self?.identityChanged(change, context, work) }
        let earlier = state.withLock { state in
            let earlier = state.watch
            state.watch = watch
            return earlier
        }
        earlier?.cancel()
    }

    /// On the connection's event loop.
    private func identityChanged(_ change: RPCIdentityChange, _ context: RPCContext, _ work: RPCIdentityWork) {
        switch change {
        case .extended(let caller), .replaced(let caller): state.withLock { $0.caller = caller }
        case .expired, .revoked:
            var nobody = context
            nobody.caller = .nobody
            state.withLock { $0.caller = .nobody }
            watch(nobody)
        }
        changed(self, work)
    }
}

extension DisconnectOwner: Hashable {
    static func == (left: DisconnectOwner, right: DisconnectOwner) -> Bool { left === right }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
