/// One polling session of a browser: which poll gets which response (spec realtime-database §8.9). What messages mean
/// is for `SessionStateMachine`, and when a socket takes over for `TransportSwitch`.
///
/// Responses are numbered from 0 without a gap. At most one poll waits: an older one gets its response when another
/// comes. What no poll has fetched when the session closes is delivered to the next one, with the command to close.
///
/// A browser or a proxy sends a poll again by itself when the connection ends before the response has come. A client
/// that has not received a response waits for its number for ever: such a session ends, and the client begins another.
public struct PollStateMachine: Sendable {
    /// What happened. Requests have numbers that the caller gives them.
    public enum Event: Sendable, Hashable {
        /// The request that begins the session; it waits for the first message.
        case started(request: Int)
        /// A poll with the right password.
        case polled(request: Int, PollRequest.Poll)
        /// The client does not wait for this request any more.
        case requestEnded(Int)
        /// The response to this request had no client to go to.
        case responseLost(request: Int)
        /// A message for the client.
        case send([UInt8])
        /// The client has left its page.
        case left
        /// A socket has taken over: what was sent so far is the last over polls, and no segment is missing.
        case handedOver
        /// The session is closed.
        case closed
        /// A scheduled time has come.
        case timerFired(Timer)
    }

    /// What has to be done, in this order.
    public enum Action: Sendable, Hashable {
        /// Respond to a request with a script.
        case respond(request: Int, [UInt8])
        /// Handle a message of the client.
        case received(ReceivedMessage)
        /// Let a timer fire after so many milliseconds; one that is scheduled already is replaced.
        case schedule(Timer, afterMs: Int)
        /// Let a timer not fire.
        case cancel(Timer)
        /// The polls have come to their end: polls with this id get `PollScript.close` from now on. Without a socket
        /// the session ends too.
        case end(End)
    }

    /// A timer.
    public enum Timer: Sendable, Hashable {
        /// What was sent in this turn goes out together.
        case flush
        /// A poll has waited long enough.
        case poll
        /// No poll has come for long.
        case idle
    }

    /// Why polls have come to their end.
    public enum End: Sendable, Hashable {
        /// The client has left its page, or gave up at the start.
        case left
        /// No poll has come for long.
        case idle
        /// The client sent segments that cannot be put together.
        case wrongSegments(SegmentAssembler.Failure)
        /// The client has not received a response, and waits for its number.
        case responseLost
        /// The session was closed, and the client knows.
        case closed
    }

    /// A request.
    private struct Request {
        var number: Int
        var serial: Int?
    }

    private enum Phase {
        case starting, polling, handedOver, closed, ended
    }

    private let secrets: PollScript.Secrets
    private let callback: Int
    private let limits: PollLimits
    private var phase = Phase.starting
    private var segments: SegmentAssembler
    private var waiting: Request?
    /// The last requests whose responses have numbers. A browser has two at a time.
    private var numbered: [Request] = []
    private static let numberedMax = 8
    /// Whether the last message over polls has come (`TransportSwitch`).
    private var hasLast = false
    private var messages: [[UInt8]] = []
    private var messageBytes = 0
    /// The number of the next response.
    private var next = 0
    private var isFlushScheduled = false
    private var actions: [Action] = []

    /// - Parameter callback: the number of the client's callbacks.
    public init(_ secrets: PollScript.Secrets, callback: Int, limits: PollLimits = PollLimits()) {
        self.secrets = secrets
        self.callback = callback
        self.limits = limits
        segments = SegmentAssembler(limits)
    }

    /// Whether the session should get further messages; when not, those that come are still taken.
    ///
    /// - Parameter sentBytes: bytes that were sent to the client, and that it has not taken yet.
    public func wantsOutput(besides sentBytes: Int = 0) -> Bool { messageBytes + sentBytes <= limits.unfetchedBytesMax }

    /// Whether a request waits for its response.
    public var isPollWaiting: Bool { waiting != nil }

    /// Bytes that are kept for the client.
    public var heldBytes: Int { messageBytes + segments.heldBytes }

    /// Handles one event and returns what has to be done for it.
    public mutating func handle(_ event: Event) -> [Action] {
        switch event {
        case .started(let request): if phase == .starting { waiting = Request(number: request) }
        case .polled(let request, let poll): polled(Request(number: request, serial: poll.serial), poll.segments)
        case .requestEnded(let request): requestEnded(request)
        case .responseLost(let request): responseLost(to: request)
        case .send(let message): send(message)
        case .left: if phase != .ended { end(.left) }
        case .handedOver: handedOver()
        case .closed: closed()
        case .timerFired(let timer): fired(timer)
        }
        let all = actions
        actions = []
        return all
    }

    private mutating func polled(_ request: Request, _ segments: [SegmentAssembler.Segment]) {
        guard phase != .ended, phase != .starting else {
            actions.append(.respond(request: request.number, PollScript.close))
            return
        }
        if let serial = request.serial, numbered.contains(where: { $0.serial == serial }) {
            actions.append(.respond(request: request.number, PollScript.close))
            return end(.responseLost)
        }
        if let older = waiting, older.serial != nil, older.serial == request.serial {
            // The connection of the older one has ended; its response must not take a number.
            actions.append(.respond(request: older.number, []))
        } else if waiting != nil {
            respondToWaiting()
        }
        actions.append(.cancel(.idle))
        waiting = request
        do {
            for message in try self.segments.received(segments) { actions.append(.received(message)) }
        } catch {
            return end(.wrongSegments(error))
        }
        if messages.isEmpty, phase != .polling {
            respondWithClose()
        } else if messages.isEmpty {
            actions.append(.schedule(.poll, afterMs: limits.pollMsMax))
        } else {
            // Messages that this one causes go with it.
            scheduleFlush()
        }
    }

    private mutating func requestEnded(_ request: Int) {
        guard waiting?.number == request else { return }
        waiting = nil
        if phase == .starting { return end(.left) }
        actions.append(.cancel(.poll))
        actions.append(.schedule(.idle, afterMs: limits.idleMsMax))
    }

    private mutating func responseLost(to request: Int) {
        guard phase != .ended, numbered.contains(where: { $0.number == request }) else { return }
        end(.responseLost)
    }

    private mutating func send(_ message: [UInt8]) {
        guard phase == .starting || phase == .polling else { return }
        messages.append(message)
        if message == ServerText.endOfTransmission { hasLast = true }
        messageBytes += message.count
        scheduleFlush()
    }

    private mutating func scheduleFlush() {
        guard waiting != nil, !isFlushScheduled else { return }
        isFlushScheduled = true
        actions.append(.schedule(.flush, afterMs: 0))
    }

    private mutating func handedOver() {
        guard phase == .polling else { return }
        phase = .handedOver
        if messages.isEmpty { respondWithClose() }
    }

    private mutating func closed() {
        guard phase == .starting || phase == .polling else { return }
        phase = .closed
        respondWithClose()
    }

    private mutating func fired(_ timer: Timer) {
        switch timer {
        case .flush:
            isFlushScheduled = false
            if !messages.isEmpty { respondToWaiting() }
        case .poll: respondToWaiting()
        case .idle: if phase != .ended, waiting == nil { end(phase == .closed ? .closed : .idle) }
        }
    }

    /// Responses the poll that waits with what there is.
    private mutating func respondToWaiting() {
        guard let request = waiting else { return }
        if phase == .closed || (phase == .handedOver && messages.isEmpty) { return respondWithClose() }
        let taken = takeMessages()
        respond(
            request, next == 0 ? PollScript.start(callback: callback, secrets, taken) : PollScript.response(next, taken)
        )
        if phase == .starting { phase = .polling }
        count(request, isEmpty: taken.isEmpty)
    }

    /// The response to this request has the next number.
    private mutating func count(_ request: Request, isEmpty: Bool) {
        next += 1
        // Behind the last message there is nothing to miss.
        guard !isEmpty || !hasLast else { return }
        if numbered.count == Self.numberedMax { numbered.removeFirst() }
        numbered.append(request)
    }

    /// Responses the poll that waits with what there is and the command to close.
    private mutating func respondWithClose() {
        guard let request = waiting else { return }
        var script: [UInt8] = []
        if !messages.isEmpty || next == 0 {
            let taken = messages
            (messages, messageBytes) = ([], 0)
            script =
                next == 0 ? PollScript.start(callback: callback, secrets, taken) : PollScript.response(next, taken)
            count(request, isEmpty: taken.isEmpty)
        }
        respond(request, script + PollScript.close(after: next - 1))
        if phase == .closed { end(.closed) }
    }

    private mutating func respond(_ request: Request, _ script: [UInt8]) {
        waiting = nil
        actions.append(.cancel(.poll))
        actions.append(.respond(request: request.number, script))
        actions.append(.schedule(.idle, afterMs: limits.idleMsMax))
    }

    private mutating func takeMessages() -> [[UInt8]] {
        var bytes = 0
        var count = 0
        for message in messages {
            guard count == 0 || bytes + message.count <= limits.responseBytesMax else { break }
            bytes += message.count
            count += 1
        }
        let taken = Array(messages.prefix(count))
        messages.removeFirst(count)
        messageBytes -= bytes
        return taken
    }

    private mutating func end(_ reason: End) {
        phase = .ended
        if let request = waiting {
            waiting = nil
            actions.append(.respond(request: request.number, PollScript.close))
        }
        (messages, messageBytes) = ([], 0)
        actions.append(.cancel(.poll))
        actions.append(.cancel(.idle))
        actions.append(.end(reason))
    }
}
