/// Which way the messages of a session go that began with polls: over polls, or over the socket that takes them over
/// (spec realtime-database §8.9 e). It stays one session: nothing is lost, nothing comes twice, and all messages keep
/// their order.
///
/// The client's messages on the socket wait until its last one over polls has come. The server's last message over
/// polls is sent when the client has acknowledged the switch; later ones go on the socket.
public struct TransportSwitch: Sendable {
    /// What happened. Sockets have numbers that the caller gives them.
    public enum Event: Sendable, Hashable {
        /// A socket names this session.
        case socketOpened(Int)
        /// A message has come on a socket.
        case socketReceived(Int, ReceivedMessage)
        /// A socket has ended.
        case socketEnded(Int)
        /// A message has come over polls.
        case pollsReceived(ReceivedMessage)
        /// The polls have come to their end.
        case pollsEnded
        /// The session sends a message.
        case send([UInt8])
    }

    /// What has to be done, in this order.
    public enum Action: Sendable, Hashable {
        /// The session gets a message of the client.
        case deliver(ReceivedMessage)
        /// Send on the socket.
        case sendOnSocket(Int, [UInt8])
        /// Send over polls.
        case sendOverPolls([UInt8])
        /// The last messages over polls were sent, in both directions (`PollStateMachine.Event.handedOver`).
        case handOver
        /// Close a socket that this session does not use.
        case closeSocket(Int)
        /// The session has ended.
        case end(End)
    }

    /// Why a session has ended.
    public enum End: Sendable, Hashable {
        /// The polls, or the socket that has taken over.
        case transportEnded
        /// The client sent something that has no place in the switch.
        case outOfOrder
        /// Too much waits on the socket for the end of the polls.
        case tooMuch
    }

    private enum State {
        case polling
        /// The socket has the offer; the client tries it.
        case offered(Int)
        /// The client sends on the socket; its last message over polls is still on the way.
        case acknowledged(Int)
        /// The client's last message over polls has come before its acknowledgement on the socket.
        case pollsDone(Int)
        case switched(Int)
        case ended
    }

    private let host: String
    private let heldBytesWanted: Int
    private let heldBytesMax: Int
    private var state = State.polling
    private var held: [ReceivedMessage] = []
    /// Bytes of messages on a socket that wait for the end of the polls.
    public private(set) var heldBytes = 0
    private var actions: [Action] = []

    /// - Parameters:
    ///   - host: the Host of the client's request.
    ///   - limits: `switchBytesMax` and `messageBytesMax` are used.
    public init(host: String, limits: PollLimits = PollLimits()) {
        self.host = host
        heldBytesWanted = limits.switchBytesMax
        heldBytesMax = limits.switchedBytesMax(limits.messageBytesMax)
    }

    /// Whether the socket should be read on; when not, messages that were read already are still taken.
    public var wantsSocketInput: Bool { heldBytes <= heldBytesWanted }

    /// The socket that has taken over; nil as long as the session ends with its polls.
    public var socket: Int? {
        switch state {
        case .acknowledged(let socket), .pollsDone(let socket), .switched(let socket): socket
        case .polling, .offered, .ended: nil
        }
    }

    /// Handles one event and returns what has to be done for it.
    public mutating func handle(_ event: Event) -> [Action] {
        if case .ended = state {
            if case .socketOpened(let socket) = event { return Self.refusal(of: socket, host) }
            return []
        }
        switch event {
        case .socketOpened(let socket): opened(socket)
        case .socketReceived(let socket, let message): received(message, on: socket)
        case .socketEnded(let socket): ended(socket)
        case .pollsReceived(let message): receivedOverPolls(message)
        case .pollsEnded: pollsEnded()
        case .send(let message): send(message)
        }
        let all = actions
        actions = []
        return all
    }

    /// What a socket gets that names no session, or one that has a socket: the client drops only that socket.
    public static func refusal(of socket: Int, _ host: String) -> [Action] {
        [.sendOnSocket(socket, ServerText.reset(host: host)), .closeSocket(socket)]
    }

    private mutating func opened(_ socket: Int) {
        switch state {
        case .polling: break
        // The client opens one at a time: the older one is dead.
        case .offered(let older): actions.append(.closeSocket(older))
        case .acknowledged, .pollsDone, .switched, .ended:
            actions += Self.refusal(of: socket, host)
            return
        }
        state = .offered(socket)
        actions.append(.sendOnSocket(socket, ServerText.switchOffer))
    }

    private mutating func received(_ message: ReceivedMessage, on socket: Int) {
        switch state {
        case .offered(socket), .pollsDone(socket):
            switch message.control {
            case .ping: actions.append(.sendOnSocket(socket, ServerText.pong))
            case .switchAcknowledged: acknowledged(socket)
            case .endOfTransmission, .other, nil: outOfOrder()
            }
        case .acknowledged(socket):
            held.append(message)
            heldBytes += message.bytes
            if heldBytes > heldBytesMax { end(.tooMuch) }
        case .switched(socket): actions.append(.deliver(message))
        // Of a socket that was closed.
        default: break
        }
    }

    private mutating func acknowledged(_ socket: Int) {
        actions.append(.sendOverPolls(ServerText.endOfTransmission))
        if case .pollsDone = state { switched(to: socket) } else { state = .acknowledged(socket) }
    }

    private mutating func receivedOverPolls(_ message: ReceivedMessage) {
        let isLast = message.control == .endOfTransmission
        switch state {
        case .polling where isLast: end(.outOfOrder)
        case .offered(let socket) where isLast: state = .pollsDone(socket)
        case .acknowledged(let socket) where isLast:
            switched(to: socket)
        case .polling, .offered, .acknowledged: actions.append(.deliver(message))
        case .pollsDone, .switched: end(.outOfOrder)
        case .ended: break
        }
    }

    private mutating func switched(to socket: Int) {
        state = .switched(socket)
        for message in held { actions.append(.deliver(message)) }
        (held, heldBytes) = ([], 0)
        actions.append(.handOver)
    }

    private mutating func send(_ message: [UInt8]) {
        switch state {
        case .polling, .offered, .pollsDone: actions.append(.sendOverPolls(message))
        case .acknowledged(let socket), .switched(let socket): actions.append(.sendOnSocket(socket, message))
        case .ended: break
        }
    }

    private mutating func ended(_ socket: Int) {
        switch state {
        case .offered(socket): state = .polling
        case .acknowledged(socket), .pollsDone(socket), .switched(socket):
            state = .ended
            end(.transportEnded)
        default: break
        }
    }

    private mutating func pollsEnded() {
        if case .switched = state { return }
        end(.transportEnded)
    }

    /// A socket that is only offered can be dropped; the session lives on.
    private mutating func outOfOrder() {
        guard case .offered(let socket) = state else { return end(.outOfOrder) }
        state = .polling
        actions.append(.closeSocket(socket))
    }

    private mutating func end(_ reason: End) {
        if case .offered(let socket) = state { actions.append(.closeSocket(socket)) }
        if let socket { actions.append(.closeSocket(socket)) }
        state = .ended
        (held, heldBytes) = ([], 0)
        actions.append(.end(reason))
    }
}

extension ReceivedMessage {
    /// The control message that this is; nil for a request.
    fileprivate var control: SessionMessage.Control? {
        guard case .whole(let bytes) = self else { return nil }
        return SessionMessage.Control(short: bytes)
    }
}
