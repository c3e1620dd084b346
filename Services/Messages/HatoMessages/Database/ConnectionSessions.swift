import HatoRPC
import Synchronization

/// The sessions of the connections that are open, each made when its connection first needs one.
final class ConnectionSessions: Sendable {
    private let sessions = Mutex<[UInt64: ConnectionSession]>([:])

    var count: Int { sessions.withLock { $0.count } }

    /// Called on the connection's event loop, so a connection asks one question at a time and closes between two.
    func session(of context: RPCContext) -> ConnectionSession {
        let connection = context.connection
        if let session = sessions.withLock({ $0[connection.id] }) { return session }
        // One that speaks for many is a client of its own: no client's turns are those of all others.
        let client = connection.forwardsForMany ? "forwarding \(connection.id)" : context.limitedClient
        let session = ConnectionSession(of: connection.id, client: client) {
            [weak connection] in connection?.setTurnHeld($0)
        }
        sessions.withLock { $0[connection.id] = session }
        let id = connection.id
        connection.onClose { [weak self] in
            self?.sessions.withLock { $0[id] = nil }
        }
        return session
    }
}
