import HatoFirebase
import HatoModel
import HatoRPC
import NIOCore

/// The client of a session, as the request shows it that begins the session.
struct SessionClient: Sendable {
    /// Of the namespace; nil: there is none of that name.
    var database: DatabaseName?
    /// The Host of the request.
    var host: String
    /// The IP address.
    var address: String
}

/// What carries the messages of a session: on its event loop.
protocol ClientSessionOwner: AnyObject {
    /// A message for the client.
    func session(_ session: ClientSession, sends message: [UInt8])
    /// What came together has been handled: all is sent, and `wantsInput` may have changed.
    func sessionTurned(_ session: ClientSession)
    /// The session is closed, and sends nothing more.
    func session(_ session: ClientSession, closedFor end: SessionEnd)
}

/// One session of a client, above any transport: the state machine, its connection to messages and its timers, all on
/// one event loop.
///
/// The owner keeps it, and ends it: then the connection to messages closes, and the service makes the session's
/// onDisconnect writes.
final class ClientSession {
    private let loopState: LoopState
    private let client: SessionClient
    private weak var owner: (any ClientSessionOwner)?
    private var machine: SessionStateMachine
    private var wire: ForwardedWire?
    /// The calls of the session, by their ids on the wire.
    private var calls: [UInt64: Int] = [:]
    private var timers: [SessionStateMachine.Timer: Scheduled<Void>] = [:]
    private var isOutputPaused = false
    private var hasEnded = false

    /// - Parameter secret: the id that the client gets, by which a later request may name the session.
    init(_ loopState: LoopState, _ client: SessionClient, secret: SessionSecret) {
        (self.loopState, self.client) = (loopState, client)
        machine = SessionStateMachine(
            database: client.database == .default ? nil : client.database, host: client.host, session: secret.text,
            limits: loopState.configuration.limits.session)
    }

    /// Whether the client should be read; when not, messages that were read already are still taken.
    var wantsInput: Bool { machine.wantsInput && wire?.isWritable != false }

    /// Bytes of calls that messages does not take.
    var queuedBytes: Int { wire.map { $0.isWritable ? 0 : $0.queuedBytes } ?? 0 }

    /// Connects to messages; the first message for the client follows.
    func start(_ owner: any ClientSessionOwner) {
        self.owner = owner
        guard let database = client.database else { return perform(machine.handle(.namespaceWasUnknown)) }
        perform(machine.handle(.accepted))
        loopState.upstream.prepare(database) { [weak self] in self?.connect() }
    }

    private func connect() {
        guard !hasEnded else { return }
        wire = loopState.upstream.messages.connect(on: loopState.loop, for: client.address, self)
        if isOutputPaused { wire?.pause() }
    }

    /// A message of the client.
    func received(_ message: ReceivedMessage) {
        guard !hasEnded else { return }
        perform(machine.handle(.message(message)))
    }

    /// While the output is paused, nothing is read from messages, which merges what the client misses.
    func setOutput(isPaused: Bool) {
        guard isPaused != isOutputPaused else { return }
        isOutputPaused = isPaused
        if isPaused { wire?.pause() } else { wire?.resume() }
    }

    /// Sends the client to the same host, where another process may listen.
    func sendAway() { perform(machine.handle(.stopping)) }

    /// Ends it, without a word to the owner.
    func end() {
        hasEnded = true
        for timer in timers.values { timer.cancel() }
        timers = [:]
        calls = [:]
        let wire = wire
        self.wire = nil
        wire?.close()
    }

    private func perform(_ actions: [SessionStateMachine.Action]) {
        for action in actions where !hasEnded {
            switch action {
            case .send(let message): owner?.session(self, sends: message)
            case .call(let call, let method, let params): self.call(call, method, params)
            case .authenticate(let call, let credential):
                self.call(call, HatoModel.Session.Authenticate.method, loopState.params(of: credential))
            case .schedule(let timer, let due): schedule(timer, due)
            case .cancel(let timer): timers.removeValue(forKey: timer)?.cancel()
            case .close(let reason):
                loopState.closed(reason)
                owner?.session(self, closedFor: reason)
            }
        }
    }

    private func call(_ call: Int, _ method: String, _ params: [UInt8]) {
        // A connection that has ended says so by itself.
        guard let id = wire?.send(method, params) else { return }
        calls[id] = call
    }

    private func schedule(_ timer: SessionStateMachine.Timer, _ due: SessionStateMachine.Due) {
        let delay =
            switch due {
            case .after(let milliseconds): Int64(milliseconds)
            case .at(let time):
                min(max(0, time.subtractingReportingOverflow(loopState.now()).partialValue), Self.delayMax)
            }
        timers.removeValue(forKey: timer)?.cancel()
        timers[timer] = loopState.loop.assumeIsolated().scheduleTask(in: .milliseconds(delay)) { [weak self] in
            guard let self, !self.hasEnded else { return }
            self.timers[timer] = nil
            if case .at(let time) = due, time > self.loopState.now() { return self.schedule(timer, due) }
            self.perform(self.machine.handle(.timerFired(timer)))
            self.owner?.sessionTurned(self)
        }
    }

    /// Milliseconds; a longer delay is waited for in parts.
    private static let delayMax: Int64 = 24 * 3_600_000
}

extension ClientSession: ForwardedWireOwner {
    func wireOpened(_ wire: ForwardedWire) {
        guard wire === self.wire else { return }
        perform(machine.handle(.wireOpened(at: loopState.now())))
        owner?.sessionTurned(self)
    }

    func wire(_ wire: ForwardedWire, received response: RPCWireResponse) {
        guard wire === self.wire, let call = calls.removeValue(forKey: response.id) else { return }
        switch response.outcome {
        case .result(let text):
            perform(machine.handle(.succeeded(call: call, result: Array(text.readableBytesView)[...])))
        case .error(let error, _): perform(machine.handle(.refused(call: call, error)))
        }
    }

    func wire(_ wire: ForwardedWire, received notification: RPCWireNotification) {
        guard wire === self.wire else { return }
        perform(
            machine.handle(
                .notified(
                    .init(
                        isEnd: notification.method == Messages.Cancelled.method,
                        subscription: notification.subscription, params: notification.object[...]))))
    }

    func wireDelivered(_ wire: ForwardedWire) {
        guard wire === self.wire else { return }
        owner?.sessionTurned(self)
    }

    func wireBecameWritable(_ wire: ForwardedWire) {
        guard wire === self.wire else { return }
        owner?.sessionTurned(self)
    }

    func wireEnded(_ wire: ForwardedWire, _ error: RPCError, unanswered: [UInt64]) {
        guard wire === self.wire else { return }
        self.wire = nil
        perform(machine.handle(.wireEnded))
        owner?.sessionTurned(self)
    }
}
