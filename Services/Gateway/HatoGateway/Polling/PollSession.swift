import HatoFirebase
import HatoIdentity
import HatoModel
import HatoRPC
import NIOCore

/// One session that began with polls: the requests of its client, the session, and the socket that may take it over.
///
/// It lives on one event loop; requests and the socket come from any. Bounds: what the client has not taken pauses the
/// connection to messages, what the session does not take yet keeps further requests waiting, and all bytes count for
/// the address of the client.
final class PollSession: NamedSession {
    /// A request of the client.
    struct Poll: Sendable {
        var request: Int
        var reply: PollReply
        var content: PollRequest.Poll
    }

    private struct Socket {
        let handle: SwitchedSocket.Handle
        /// Bytes of messages that it does not know to be handled.
        var unreportedBytes = 0
    }

    /// Requests that may wait for the session. Browsers have two at a time.
    private static let parkedMax = 4

    let secret: SessionSecret
    private let id: SessionSecret
    private let password: String
    private let loopState: LoopState
    private let client: SessionClient
    let address: ClientAddress
    /// Its share of what all clients hold.
    let held: HeldBytes
    private let session: ClientSession
    private var polls: PollStateMachine
    private var transport: TransportSwitch
    private var replies: [Int: PollReply] = [:]
    private var parked: [Poll] = []
    /// Messages that the session does not take yet.
    private var inbox: [ReceivedMessage] = []
    private var inboxBytes = 0
    private var timers: [PollStateMachine.Timer: Scheduled<Void>] = [:]
    private var sockets: [Int: Socket] = [:]
    /// Messages that go to a socket at the end of this turn.
    private var outgoing: (socket: Int, messages: [[UInt8]]) = (0, [])
    /// Bytes that were sent and that the client has not taken.
    private var untakenBytes = 0
    private var heldBytes = 0
    private var isSettling = false
    /// Whether it counts as a session that polls (`PollUsage`).
    private(set) var hasPlace = true
    /// Nothing more comes from the session, but the client may not know it yet.
    private var isClosed = false
    private var hasEnded = false
    /// What a socket of it is closed with.
    private var socketEnd = SocketEnd.notNeeded

    init?(_ loopState: LoopState, _ client: SessionClient, callback: Int) {
        let place = loopState.sessions.newPlace(on: loopState.peers.index)
        let password = Base64.url.encode(SessionSecret.random())
        (secret, id) = (SessionSecret(place), SessionSecret(place))
        guard let secrets = PollScript.Secrets(id: id.text, password: password) else { return nil }
        (self.loopState, self.client, self.password) = (loopState, client, password)
        address = ClientAddress(client.address)
        held = loopState.held.of(client.address)
        session = ClientSession(loopState, client, secret: secret)
        let limits = loopState.configuration.limits.polls
        polls = PollStateMachine(secrets, callback: callback, limits: limits)
        transport = TransportSwitch(host: client.host, limits: limits)
    }

    var place: SessionSecret.Place { secret.place }
    private var limits: PollLimits { loopState.configuration.limits.polls }

    /// In constant time.
    func has(_ id: SessionSecret, _ password: String) -> Bool {
        let isRight = ConstantTime.isSame(Array(password.utf8), Array(self.password.utf8))
        return self.id.isSame(as: id) && isRight
    }

    // MARK: Requests

    func start(request: Int, _ reply: PollReply) {
        replies[request] = reply
        feedPolls(.started(request: request))
        session.start(self)
        settle()
    }

    func polled(_ poll: Poll) {
        parked.append(poll)
        settle()
    }

    /// The client does not wait for this request any more.
    func requestEnded(_ request: Int) {
        parked.removeAll { $0.request == request }
        guard replies.removeValue(forKey: request) != nil else { return }
        feedPolls(.requestEnded(request))
        settle()
    }

    /// The client has left its page.
    func clientLeft() {
        feedPolls(.left)
        settle()
    }

    /// The client has taken so many bytes of what was sent.
    func wasTaken(_ bytes: Int) {
        untakenBytes -= bytes
        settle()
    }

    /// The client of this request has gone before the response of so many bytes came.
    func responseLost(request: Int, _ bytes: Int) {
        untakenBytes -= bytes
        feedPolls(.responseLost(request: request))
        settle()
    }

    /// The client was stopped, or may go on (`UntakenShares`).
    func outputChanged() { settle() }

    func wasReplaced() { end() }

    // MARK: The socket

    /// A socket names this session.
    func socketOpened(_ number: Int, _ socket: SwitchedSocket.Handle) {
        guard !isClosed else { return socket.refuse() }
        sockets[number] = Socket(handle: socket)
        feedSwitch(.socketOpened(number))
        settle()
    }

    func socketReceived(_ number: Int, _ message: ReceivedMessage, bytes: Int) {
        guard sockets[number] != nil else { return }
        sockets[number]?.unreportedBytes += bytes
        feedSwitch(.socketReceived(number, message))
        settle()
    }

    func socketEnded(_ number: Int) {
        guard sockets.removeValue(forKey: number) != nil else { return }
        feedSwitch(.socketEnded(number))
        settle()
    }

    // MARK: The end

    /// Whether there is a request or a socket on which the client hears of the end.
    var isReachable: Bool { !replies.isEmpty || !sockets.isEmpty }

    /// The gateway stops.
    func leave() {
        guard !hasEnded else { return }
        if transport.socket != nil {
            session.sendAway()
            closeSockets(.stopping)
        } else {
            session.end()
            close()
        }
        end()
    }

    /// The client is to know that the session is closed.
    private func close() {
        guard !isClosed else { return }
        isClosed = true
        feedPolls(.closed)
        // The end of the polls ends all when the client knows.
        if transport.socket != nil { end() }
    }

    /// Ends everything at once.
    private func end() {
        guard !hasEnded else { return }
        (hasEnded, isClosed) = (true, true)
        session.end()
        feedPolls(.left)
        for poll in parked { poll.reply.respond(PollScript.close) }
        parked = []
        closeSockets(socketEnd)
        for timer in timers.values { timer.cancel() }
        timers = [:]
        (inbox, inboxBytes) = ([], 0)
        _ = loopState.polls.hold(-heldBytes, for: self)
        heldBytes = 0
        loopState.polls.remove(self)
    }

    // MARK: The state machines

    private func feedPolls(_ event: PollStateMachine.Event) {
        for action in polls.handle(event) {
            switch action {
            case .respond(let request, let script):
                guard let reply = replies.removeValue(forKey: request) else { continue }
                untakenBytes += script.count
                reply.respond(script, counts: true)
            case .received(let message): feedSwitch(.pollsReceived(message))
            case .schedule(let timer, let milliseconds): schedule(timer, afterMs: milliseconds)
            case .cancel(let timer): timers.removeValue(forKey: timer)?.cancel()
            case .end(let end):
                loopState.closed(end)
                feedSwitch(.pollsEnded)
                // A client that misses a response stays stuck also when a socket has taken over.
                if isClosed || end == .responseLost { self.end() }
            }
        }
    }

    private func feedSwitch(_ event: TransportSwitch.Event) {
        for action in transport.handle(event) {
            switch action {
            case .deliver(let message): deliver(message)
            case .sendOnSocket(let socket, let message):
                untakenBytes += message.count
                if outgoing.socket != socket { sendOutgoing() }
                outgoing.socket = socket
                outgoing.messages.append(message)
            case .sendOverPolls(let message): feedPolls(.send(message))
            case .handOver: handOver()
            case .closeSocket(let socket):
                sendOutgoing()
                sockets.removeValue(forKey: socket)?.handle.close(socketEnd)
            case .end(let reason):
                loopState.closed(reason)
                end()
            }
        }
    }

    private func handOver() {
        guard !hasEnded else { return }
        if hasPlace { loopState.polls.handedOver(self) }
        hasPlace = false
        feedPolls(.handedOver)
    }

    private func sendOutgoing() {
        guard !outgoing.messages.isEmpty else { return }
        sockets[outgoing.socket]?.handle.send(outgoing.messages)
        outgoing.messages = []
    }

    private func closeSockets(_ end: SocketEnd) {
        sendOutgoing()
        for socket in sockets.values { socket.handle.close(end) }
        sockets = [:]
    }

    private func schedule(_ timer: PollStateMachine.Timer, afterMs milliseconds: Int) {
        guard !hasEnded else { return }
        timers.removeValue(forKey: timer)?.cancel()
        let time = TimeAmount.milliseconds(Int64(milliseconds))
        timers[timer] = loopState.loop.assumeIsolated().scheduleTask(in: time) { [weak self] in
            guard let self else { return }
            self.timers[timer] = nil
            self.feedPolls(.timerFired(timer))
            self.settle()
        }
    }

    // MARK: Flow

    private func deliver(_ message: ReceivedMessage) {
        guard !isClosed else { return }
        guard inboxBytes <= limits.untakenBytesMax else {
            loopState.closed(TransportSwitch.End.tooMuch)
            socketEnd = .busy
            return end()
        }
        inbox.append(message)
        inboxBytes += message.bytes
    }

    /// The end of each turn: hands messages and requests on as far as they are wanted, and pauses what is not.
    private func settle() {
        guard !isSettling, !hasEnded else { return }
        isSettling = true
        repeat { takeInbox() } while takeParked()
        isSettling = false
        guard !hasEnded else { return }
        sendOutgoing()
        session.setOutput(
            isPaused: !polls.wantsOutput(besides: untakenBytes) || loopState.output.isStopped(address))
        if inbox.isEmpty, transport.wantsSocketInput {
            for (number, socket) in sockets where socket.unreportedBytes > 0 {
                socket.handle.wasHandled(socket.unreportedBytes)
                sockets[number]?.unreportedBytes = 0
            }
        }
        let parkedBytes = parked.reduce(0) { $0 + $1.content.bytes }
        let bytes = polls.heldBytes + inboxBytes + transport.heldBytes + parkedBytes
        if bytes != heldBytes {
            guard loopState.polls.hold(bytes - heldBytes, for: self) else {
                socketEnd = .busy
                return end()
            }
            heldBytes = bytes
        }
    }

    private func takeInbox() {
        var count = 0
        while count < inbox.count, session.wantsInput, !isClosed {
            let message = inbox[count]
            count += 1
            inboxBytes -= message.bytes
            session.received(message)
        }
        inbox.removeFirst(min(count, inbox.count))
    }

    /// Takes the next request, unless the session has enough to do and another one can bring what it says.
    private func takeParked() -> Bool {
        guard let poll = parked.first, !hasEnded,
            inbox.isEmpty || isClosed || !polls.isPollWaiting || parked.count > Self.parkedMax
        else { return false }
        parked.removeFirst()
        replies[poll.request] = poll.reply
        feedPolls(.polled(request: poll.request, poll.content))
        return true
    }
}

extension PollSession: ClientSessionOwner {
    func session(_ session: ClientSession, sends message: [UInt8]) { feedSwitch(.send(message)) }

    func sessionTurned(_ session: ClientSession) { settle() }

    func session(_ session: ClientSession, closedFor end: SessionEnd) {
        socketEnd = .ofSession(end)
        session.end()
        close()
    }
}
