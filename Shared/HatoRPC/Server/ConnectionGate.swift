import HatoModel
import Logging
import Synchronization

/// Asks `ConnectionAdmission` about each connection of a server, and closes the connections it names.
///
/// The state is behind the mutex; any thread calls.
final class ConnectionGate: Sendable {
    private struct State {
        var admission: ConnectionAdmission
        var lines: LinesWithoutCredential
        var halfClosed: HalfClosedConnections
        /// All that are admitted and have not closed: any of them may be closed for another.
        var connections: [UInt64: RPCConnection] = [:]
    }

    private let state: Mutex<State>
    private let notices: ThrottledNotices

    init(_ limits: RPCLimits, _ notices: ThrottledNotices) {
        state = Mutex(
            State(
                admission: ConnectionAdmission(ConnectionAdmission.Limits(limits)),
                lines: LinesWithoutCredential(limits), halfClosed: HalfClosedConnections(limits)))
        self.notices = notices
    }

    /// Nil when the connection is admitted, which `closed` ends; else why it is not.
    func accepted(_ connection: RPCConnection) -> RPCError? {
        let (decision, victim) = state.withLock { state in
            let decision = state.admission.accepted(connection.id, from: connection.socketAddress)
            if case .refuse = decision { return (decision, RPCConnection?.none) }
            state.connections[connection.id] = connection
            guard case .admitClosing(let id) = decision else { return (decision, nil) }
            return (decision, state.connections[id])
        }
        switch decision {
        case .admit: return nil
        case .admitClosing:
            guard let victim else { return nil }
            notices.notice(
                .closedForAnother, "closed a connection for a new one",
                ["peer": "\(victim.shownAddress)"])
            victim.hub.post(.run(victim) { $0.cutOff(RPCError.closedForAnotherConnection) })
            return nil
        case .refuse(let refusal):
            let (words, error) =
                switch refusal {
                case .tooMany: ("too many", RPCError.tooManyConnections)
                case .tooManyFromAddress: ("too many from its address", RPCError.tooManyConnectionsFromAddress)
                }
            notices.notice(.refused, "refused a connection: \(words)", ["peer": "\(connection.remoteAddress)"])
            return error
        }
    }

    /// Whether the connection has a slot of its own now.
    func showedCredential(_ connection: RPCConnection, of caller: Caller) -> Bool {
        state.withLock { state in
            state.admission.showedCredential(connection.id, of: caller.uid)
        }
    }

    /// The connection speaks for clients of other addresses from now on.
    ///
    /// - Parameter address: of the client of all its calls; nil: each names its own.
    /// - Returns: false when too many do: then it does not.
    func forwards(_ connection: RPCConnection, from address: ClientAddress?) -> Bool {
        let (forwards, victim) = state.withLock { state -> (Bool, RPCConnection?) in
            guard state.admission.forwards(connection.id) else { return (false, nil) }
            let victim = state.halfClosed.moved(connection.id, to: address)
            return (true, victim.flatMap { state.connections[$0] })
        }
        close(halfClosed: victim)
        return forwards
    }

    func wasActive(_ connection: RPCConnection) { state.withLock { $0.admission.wasActive(connection.id) } }

    /// A line of this connection, which has not shown a credential, is long and has not ended; `lineEnded` ends that.
    ///
    /// - Parameter used: bytes that all connections hold.
    func lineBegan(of connection: RPCConnection, used: Int) {
        let victim = state.withLock { state in
            state.lines.began(connection.id, used: used).flatMap { state.connections[$0] }
        }
        guard let victim else { return }
        victim.hub.post(.run(victim) { $0.refuseUnfinishedLine() })
    }

    func lineEnded(of connection: RPCConnection) { state.withLock { $0.lines.ended(connection.id) } }

    /// The peer of this connection has closed its direction, and responses are still to come; `closed` ends that.
    func halfClosed(_ connection: RPCConnection) {
        // Those that many clients share are few.
        guard let address = connection.clientAddress else { return }
        let victim = state.withLock { state in
            state.halfClosed.began(connection.id, from: address).flatMap { state.connections[$0] }
        }
        close(halfClosed: victim)
    }

    private func close(halfClosed victim: RPCConnection?) {
        guard let victim else { return }
        notices.notice(
            .closedForAnother, "closed a connection: its peer closed its direction, and its address has many such",
            ["peer": "\(victim.shownAddress)"])
        victim.hub.post(.run(victim) { $0.closeNow() })
    }

    func closed(_ connection: RPCConnection) {
        state.withLock { state in
            state.admission.closed(connection.id)
            state.halfClosed.ended(connection.id)
            state.connections[connection.id] = nil
        }
    }
}
