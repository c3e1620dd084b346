import HatoFirebase
import NIOCore

/// A WebSocket that takes a polling session over (spec realtime-database §8.9 e), on the event loop of the socket; the
/// session may belong to another one.
///
/// What the session has not handled pauses the reading of the socket, and what the socket has not taken pauses the
/// session.
final class SwitchedSocket: SocketOwner {
    /// The socket, as its session sees it.
    struct Handle: Sendable {
        fileprivate let socket: NIOLoopBound<SwitchedSocket>

        /// Sends messages; the session hears when the socket has taken them (`PollSession.wasTaken`).
        func send(_ messages: [[UInt8]]) { perform { $0.send(messages) } }

        /// So many bytes of messages are handled.
        func wasHandled(_ bytes: Int) { perform { $0.wasHandled(bytes) } }

        func close(_ end: SocketEnd) { perform { $0.socket?.close(end) } }

        /// The session is none that a socket can take over.
        func refuse() { perform { $0.refuse() } }

        private func perform(_ body: @escaping @Sendable (SwitchedSocket) -> Void) {
            let socket = socket
            socket.eventLoop.execute { body(socket.value) }
        }
    }

    private let loopState: LoopState
    private let secret: SessionSecret?
    private let host: String
    /// Names the socket on all event loops.
    private let number: Int
    private weak var socket: SocketConnection?
    /// Bytes of messages that the session has not handled.
    private var unhandledBytes = 0

    /// - Parameters:
    ///   - session: what the client has sent as the id of the session.
    ///   - host: the Host of the request.
    init(_ loopState: LoopState, _ session: String, host: String) {
        (self.loopState, self.host) = (loopState, host)
        secret = SessionSecret(session)
        number = loopState.newNumber()
    }

    var wantsInput: Bool { unhandledBytes <= loopState.configuration.limits.polls.switchBytesMax }

    /// The session counts what messages does not take.
    var queuedBytes: Int { 0 }

    func socketOpened(_ socket: SocketConnection) {
        self.socket = socket
        guard let secret else { return refuse() }
        let handle = Handle(socket: NIOLoopBound(self, eventLoop: loopState.loop))
        let number = number
        let isThere = loopState.peers.perform(on: secret.place.loop) { state in
            guard let session = state.sessions.session(secret) as? PollSession else { return handle.refuse() }
            session.socketOpened(number, handle)
        }
        if !isThere { refuse() }
    }

    func socketReceived(_ message: ReceivedMessage) {
        let bytes = message.bytes
        unhandledBytes += bytes
        let number = number
        hand { $0.socketReceived(number, message, bytes: bytes) }
    }

    /// The session counts what the socket has not taken.
    func socketWritabilityChanged(_ isWritable: Bool) {}

    func socketEnded() {
        let number = number
        hand { $0.socketEnded(number) }
    }

    /// The session decides.
    var leavesInTurn: Bool { false }
    func gatewayStops() {}

    private func hand(_ body: @escaping @Sendable (PollSession) -> Void) {
        guard let place = secret?.place else { return }
        loopState.peers.perform(on: place.loop) { if let session = $0.polls.session(at: place) { body(session) } }
    }

    private func send(_ messages: [[UInt8]]) {
        let count = messages.reduce(0) { $0 + $1.count }
        let promise = loopState.loop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { [self] _ in hand { $0.wasTaken(count) } }
        guard let socket else { return promise.fail(ChannelError.ioOnClosedChannel) }
        for message in messages.dropLast() { socket.send(message) }
        socket.send(messages.last ?? [], promise: promise)
        socket.turned()
    }

    private func wasHandled(_ bytes: Int) {
        unhandledBytes -= bytes
        socket?.turned()
    }

    private func refuse() {
        for action in TransportSwitch.refusal(of: number, host) {
            switch action {
            case .sendOnSocket(_, let message): socket?.send(message)
            case .closeSocket: socket?.close(.notNeeded)
            default: break
            }
        }
    }
}
