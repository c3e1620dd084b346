import HatoFirebase
import NIOCore
import NIOWebSocket

/// A session whose client is at a WebSocket on the same event loop.
///
/// A client that does not read makes the gateway read no more from messages, which then merges what the client misses;
/// a session that has too much under way makes it read no more from the client.
final class SocketSession: NamedSession {
    let secret: SessionSecret
    private let loopState: LoopState
    private let session: ClientSession
    private weak var socket: SocketConnection?

    init(_ loopState: LoopState, _ client: SessionClient) {
        self.loopState = loopState
        secret = SessionSecret(loopState.sessions.newPlace(on: loopState.peers.index))
        session = ClientSession(loopState, client, secret: secret)
    }

    func wasReplaced() { close(.notNeeded) }

    /// The session ends at once: a connection with TLS waits for its client, which may be dead.
    private func close(_ end: SocketEnd) {
        session.end()
        socket?.close(end)
    }
}

extension SocketSession: SocketOwner {
    var wantsInput: Bool { session.wantsInput }
    var queuedBytes: Int { session.queuedBytes }

    func socketOpened(_ socket: SocketConnection) {
        self.socket = socket
        loopState.sessions.insert(self)
        session.start(self)
    }

    func socketReceived(_ message: ReceivedMessage) { session.received(message) }

    func socketWritabilityChanged(_ isWritable: Bool) { session.setOutput(isPaused: !isWritable) }

    func socketEnded() {
        loopState.sessions.remove(self)
        session.end()
    }

    var leavesInTurn: Bool { true }

    func gatewayStops() {
        session.sendAway()
        socket?.close(.stopping)
    }
}

extension SocketSession: ClientSessionOwner {
    func session(_ session: ClientSession, sends message: [UInt8]) { socket?.send(message) }

    func sessionTurned(_ session: ClientSession) { socket?.turned() }

    func session(_ session: ClientSession, closedFor end: SessionEnd) { close(.ofSession(end)) }
}
