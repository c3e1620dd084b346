import HatoModel
import HatoRPC
import Synchronization

/// In whose name something was left to be written: the caller at that time, and whoever the connection speaks for
/// later.
///
/// The identity behaves as that of a listener does (protocol §2): the same user again extends it, another one takes
/// its place, `session.end` leaves nobody (unless it came with the call). When its token ends, nobody is left until
/// the connection authenticates again. It lives as long as something refers to it; the connection counts as busy that
/// long.
///
/// Who it is stands in the store too, for the case that the process ends first: each change is written in its place
/// among the writes of the connection, without anybody waiting for it.
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

    /// - Parameter changed: called on the connection's event loop when it has become somebody else, or has newer
    ///   claims.
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

    /// Somebody of a process that is gone.
    init(_ caller: Caller, number: UInt32) {
        self.number = number
        changed = { _, _ in }
        isCallCredential = true
        state = Mutex(State(caller: caller))
    }

    /// Whom the store is told of.
    var caller: Caller { state.withLock { $0.caller } }

    deinit { state.withLock { $0.watch }?.cancel() }

    /// Whom the rules judge, at the time `now` in milliseconds since 1970.
    func caller(at now: Int64) -> Caller {
        let caller = state.withLock { $0.caller }
        // The connection may have ended before its timer did.
        if case .user(let user) = caller, let end = user.expiresAt, end <= now { return .nobody }
        return caller
    }

    /// Takes over a request of the same person, whose credential may be newer; false when it is somebody else's.
    func adopt(_ context: RPCContext) -> Bool {
        let caller = state.withLock { $0.caller }
        guard isCallCredential == context.isCallCredential, caller.uid == context.caller.uid,
            caller.isAdministrator == context.caller.isAdministrator
        else { return false }
        if caller != context.caller {
            state.withLock { $0.caller = context.caller }
            watch(context)
            changed(self, nil)
        }
        return true
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
        case .expired:
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
