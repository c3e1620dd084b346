import HatoModel
import NIOCore

/// The caller of one connection: its identity and when that ends, the credential it has shown, and with it its slot
/// among the connections of the server (`ConnectionGate`). On the event loop only.
final class ConnectionSession {
    private let state: ConnectionState
    private var identity = Caller.nobody
    /// Nil: the connection does not forward.
    private var forwarding: Forwarding?
    /// Of calls without an address of their own; nil: the connection does not forward.
    private var peerAddress: ForwardedAddress?
    /// `Authenticator.endings` when the identity was looked at last.
    private var endingsSeen: Int?
    /// The caller whose credential was shown first.
    private var shownCaller: Caller?
    /// Whether the connection is not closed for another.
    private var hasOwnSlot = false
    private var activity = ActivityTicks()
    private var expiry: Scheduled<Void>?

    init(_ state: ConnectionState) { self.state = state }

    /// What a line of this connection may have.
    var lineBytesMax: Int {
        let limits = state.server.limits
        return shownCaller == nil ? min(limits.unauthenticatedLineBytesMax, limits.lineBytesMax) : limits.lineBytesMax
    }

    // MARK: The caller of a request

    /// Takes `auth`, `as` and `from` out of the params, unless the method has parameters of these names itself.
    func identify(_ request: inout CurrentRequest) -> Identification {
        let server = state.server
        let auth = request.take("auth")
        let speaksAs = request.take("as")
        request.isByAdministrator = speaksAs != nil
        do {
            request.forwarded = try Forwarding.address(of: request.take("from"), on: forwarding) ?? peerAddress
        } catch {
            return .refused(error)
        }
        guard let auth else {
            lookAtIdentity()
            request.service = identity.serviceName
            return .byConnection(identity, now: server.now(), request.method, speaksAs)
        }
        let identification = Identification.byCredential(auth, speaksAs, bytesMax: server.limits.credentialBytesMax)
        guard case .unverified(let credential, _) = identification else { return identification }
        request.isCallCredential = true
        guard let caller = server.authenticator.remembered(credential) else { return identification }
        showed(caller)
        request.service = caller.serviceName
        return .speaker(for: caller, speaksAs, request.method)
    }

    /// An identity that has ended before its token is one whose token has ended.
    private func lookAtIdentity() {
        let endings = state.server.authenticator.endings
        guard endings != endingsSeen else { return }
        endingsSeen = endings
        guard case .user(var user) = identity, state.server.authenticator.hasEnded(user) else { return }
        user.expiresAt = .min
        identity = .user(user)
    }

    /// The connection speaks for clients of other addresses from now on; false when too many do.
    func forward(_ forwarding: Forwarding) -> Bool {
        guard state.server.admission.forwards(state.connection, from: forwarding.from?.client) else { return false }
        self.forwarding = forwarding
        peerAddress = ForwardedAddress(ofPeer: state.connection)
        hasOwnSlot = true
        if forwarding.isOfClient {
            // The credential was not the client's.
            shownCaller = nil
            state.hasShownCredential = false
            state.connection.handler?.narrowSocket()
        }
        state.connection.forward(forwarding)
        return true
    }

    /// Whether all lines are those of one client.
    var isOfClient: Bool { forwarding?.isOfClient ?? false }

    /// A credential of this caller was verified.
    func showed(_ caller: Caller) {
        guard shownCaller == nil else { return }
        shownCaller = caller
        state.hasShownCredential = true
        state.connection.handler?.widenSocket()
        takeOwnSlot()
    }

    // MARK: The slot

    /// The peer has sent something.
    func wasActive() {
        guard !hasOwnSlot, activity.isDue(at: .now()) else { return }
        // Others of the same user may have closed.
        takeOwnSlot()
        if !hasOwnSlot { state.server.admission.wasActive(state.connection) }
    }

    private func takeOwnSlot() {
        guard let shownCaller, !hasOwnSlot else { return }
        hasOwnSlot = state.server.admission.showedCredential(state.connection, of: shownCaller)
    }

    // MARK: session.authenticate, session.end

    /// The connection speaks for `caller` from now on.
    func become(_ caller: Caller, isEnd: Bool) {
        identity = caller
        endingsSeen = nil
        state.machine.identityChanged(isTakenOver: !state.connection.setCaller(caller, isEnd: isEnd))
        // It may have ended since it was verified.
        if case .user(let user) = caller, state.server.authenticator.hasEnded(user) {
            state.connection.endIdentities()
        }
        scheduleExpiry()
    }

    /// Ends the listeners whose token has ended, and comes back when the next one does.
    func scheduleExpiry() {
        cancelExpiry()
        let now = state.server.now()
        guard state.machine.phase != .closed, let next = state.connection.expireIdentities(now: now) else { return }
        // A clock that is set forward is noticed within a minute.
        let delay = min(max(next - now, 1), 60_000)
        expiry = state.hub.loop.assumeIsolated().scheduleTask(in: .milliseconds(delay)) { [weak self] in
            self?.scheduleExpiry()
        }
    }

    func cancelExpiry() {
        expiry?.cancel()
        expiry = nil
    }
}

/// The activity of a connection without a credential, in ticks: the gate's lock is not taken for each read.
struct ActivityTicks {
    /// Two connections that are silent for about as long count as equal.
    static let interval = TimeAmount.milliseconds(500)

    private var last: NIODeadline?

    /// Whether activity at this time is worth reporting.
    mutating func isDue(at now: NIODeadline) -> Bool {
        if let last, now - last < Self.interval { return false }
        last = now
        return true
    }
}

extension Caller {
    fileprivate var serviceName: String? { if case .service(let service) = self { service.name } else { nil } }
}
