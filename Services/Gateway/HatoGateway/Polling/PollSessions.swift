import HatoRPC
import NIOCore

/// The polling sessions of one event loop, and what each address has of them.
final class PollSessions {
    private unowned let loopState: LoopState
    private var sessions: [SessionSecret.Place: PollSession] = [:]
    private var usage: PollUsage
    private var isLeaving = false

    init(_ loopState: LoopState) {
        self.loopState = loopState
        let limits = loopState.configuration.limits
        usage = PollUsage(
            PollUsage.Limits(
                sessionsMax: limits.pollSessionsMax, sessionsPerClientMax: limits.pollSessionsPerAddressMax,
                bytesPerClientMax: limits.pollBytesPerAddressMax))
    }

    /// A new session; nil when there are too many.
    func begin(_ client: SessionClient, callback: Int) -> PollSession? {
        guard !isLeaving, let session = PollSession(loopState, client, callback: callback),
            usage.begin(session.address.network, site: session.address.ownSite)
        else { return nil }
        sessions[session.place] = session
        loopState.sessions.insert(session)
        loopState.metrics.pollingSessionsChanged(by: 1)
        return session
    }

    /// The session with this id and password.
    func session(_ id: SessionSecret, _ password: String) -> PollSession? {
        guard let session = sessions[id.place], session.has(id, password) else { return nil }
        return session
    }

    /// The session at a place that a request was handed over to before.
    func session(at place: SessionSecret.Place) -> PollSession? { sessions[place] }

    func remove(_ session: PollSession) {
        guard sessions[session.place] === session else { return }
        sessions[session.place] = nil
        loopState.sessions.remove(session)
        loopState.metrics.pollingSessionsChanged(by: -1)
        if session.hasPlace { giveBack(session) }
    }

    /// A socket takes the session over: it polls no more.
    func handedOver(_ session: PollSession) { giveBack(session) }

    private func giveBack(_ session: PollSession) {
        usage.end(session.address.network, site: session.address.ownSite)
    }

    /// Takes a change of the bytes that a session holds; false, without taking it, when its client has too many.
    func hold(_ change: Int, for session: PollSession) -> Bool {
        guard usage.allows(change, of: session.address.network), session.held.change(by: change) else { return false }
        usage.hold(change, of: session.address.network)
        return true
    }

    /// Clients were stopped, or may go on, because of what they have not taken.
    func outputChanged() { for session in Array(sessions.values) { session.outputChanged() } }

    /// The gateway stops: no session begins, and those end that no request waits for. Returns what ends the others,
    /// each in its turn.
    func departures() -> [() -> Void] {
        isLeaving = true
        let waiting = sessions.values.filter(\.isReachable)
        for session in Array(sessions.values) where !session.isReachable { session.leave() }
        return waiting.map { session in { [weak session] in session?.leave() } }
    }
}
