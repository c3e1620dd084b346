import HatoFirebase
import HatoModel
import HatoRPC
import NIOCore
import NIOHTTP1

/// One event stream, on a connection to messages of its own.
final class EventStreamExchange: HTTPExchange {
    let kind = RequestKind.stream
    private let request: RESTRequest
    private let caller: RESTCaller
    private let connection: HTTPConnection
    private let loop: any EventLoop
    private let identity: RESTIdentity
    private var machine: EventStreamStateMachine
    private var wire: ForwardedWire?
    private var operations: [UInt64: RESTOperation] = [:]
    private var keepAlive: Scheduled<Void>?
    private var opening: Scheduled<Void>?
    private var indexDeadline: NIODeadline?
    private var hasEnded = false

    init(_ request: RESTRequest, _ caller: RESTCaller, _ connection: HTTPConnection, on loop: any EventLoop) {
        (self.request, self.caller, self.connection, self.loop) = (request, caller, connection, loop)
        identity = caller.identity(of: request)
        machine = EventStreamStateMachine(request, as: identity, caller.configuration.limits.rest)
    }

    private var limits: GatewayLimits { caller.configuration.limits }

    func received(_ body: ByteBuffer) {}

    func requestEnded() { begin() }

    func writabilityChanged(_ isWritable: Bool) { perform(machine.writabilityChanged(isWritable)) }

    func gatewayStops() {
        connection.finish()
        end()
    }

    func clientLeft() {
        perform(machine.clientLeft())
        end()
    }

    private func begin() {
        guard !hasEnded else { return }
        do {
            guard case .call(let operation) = try request.start([], as: identity, limits.rest) else { return end() }
            limitTime()
            caller.upstream.prepare(request.database) { [weak self] in self?.open(operation) }
        } catch {
            connection.respond(HTTPResponse(request.error(error)))
            end()
        }
    }

    private func open(_ operation: RESTOperation) {
        guard !hasEnded else { return }
        wire = caller.upstream.messages.connect(on: loop, for: caller.address, self)
        perform(machine.writabilityChanged(connection.isWritable))
        send(operation)
    }

    /// The first event must come in time: that of the request, if it has one.
    private func limitTime() {
        guard opening == nil else { return }
        let time = TimeAmount.milliseconds(Int64(request.timeoutMs ?? limits.callMsMax))
        let error = request.timeoutMs == nil ? RESTErrors.unavailable : RESTErrors.timedOut
        opening = loop.assumeIsolated().scheduleTask(in: time) { [weak self] in
            guard let self else { return }
            self.connection.respond(HTTPResponse(self.request.error(error)))
            self.end()
        }
    }

    private func send(_ operation: RESTOperation) {
        guard let id = wire?.send(operation.method, operation.params) else { return }
        operations[id] = operation
    }

    private func perform(_ actions: [EventStreamStateMachine.Action]) {
        for action in actions {
            switch action {
            case .sendHead(let answer):
                opening?.cancel()
                let response = HTTPResponse(answer)
                connection.begin(response.status, response.headers)
            case .send(let bytes): connection.send(ByteBuffer(bytes: bytes))
            case .answer(let answer):
                connection.respond(HTTPResponse(answer))
                end()
            case .call(let operation): send(operation)
            case .beginAgain(let otherwise): beginAgain(otherwise)
            case .scheduleKeepAlive(let milliseconds):
                keepAlive = loop.assumeIsolated().scheduleTask(in: .milliseconds(Int64(milliseconds))) { [weak self] in
                    guard let self else { return }
                    self.perform(self.machine.keepAliveWasDue())
                }
            case .pauseReading: wire?.pause()
            case .resumeReading: wire?.resume()
            case .close:
                connection.finish()
                end()
            }
        }
    }

    /// An index is being built.
    private func beginAgain(_ otherwise: RESTAnswer) {
        let until = indexDeadline ?? .now() + .milliseconds(Int64(limits.session.indexMsMax))
        indexDeadline = until
        closeWire()
        guard NIODeadline.now() < until else {
            connection.respond(HTTPResponse(otherwise))
            return end()
        }
        machine = EventStreamStateMachine(request, as: identity, limits.rest)
        loop.assumeIsolated().scheduleTask(in: .milliseconds(Int64(limits.session.indexRetryMs))) { [weak self] in
            self?.begin()
        }
    }

    private func closeWire() {
        let wire = wire
        self.wire = nil
        operations = [:]
        wire?.close()
    }

    private func end() {
        hasEnded = true
        keepAlive?.cancel()
        opening?.cancel()
        closeWire()
    }
}

extension EventStreamExchange: ForwardedWireOwner {
    func wireOpened(_ wire: ForwardedWire) {}

    func wire(_ wire: ForwardedWire, received response: RPCWireResponse) {
        guard wire === self.wire, let operation = operations.removeValue(forKey: response.id) else { return }
        switch response.outcome {
        case .result(let text):
            perform(machine.callSucceeded(operation, result: Array(text.readableBytesView)))
        case .error(let error, _): perform(machine.callFailed(operation, error))
        }
    }

    func wire(_ wire: ForwardedWire, received notification: RPCWireNotification) {
        guard wire === self.wire else { return }
        if notification.method == Messages.Cancelled.method {
            perform(machine.listenerWasCancelled(reason: notification.text("reason") ?? ""))
        } else {
            perform(machine.eventsArrived(notification.object))
        }
    }

    func wireEnded(_ wire: ForwardedWire, _ error: RPCError, unanswered: [UInt64]) {
        guard wire === self.wire else { return }
        self.wire = nil
        perform(machine.wireEnded())
    }
}

extension RPCWireNotification {
    /// The members as a JSON object.
    var object: [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(members.reduce(2) { $0 + $1.name.utf8.count + $1.text.readableBytes + 4 })
        text.append(UInt8(ascii: "{"))
        for (index, member) in members.enumerated() {
            if index > 0 { text.append(UInt8(ascii: ",")) }
            text.append(contentsOf: JSONValue.string(member.name).encoded)
            text.append(UInt8(ascii: ":"))
            text.append(contentsOf: member.text.readableBytesView)
        }
        text.append(UInt8(ascii: "}"))
        return text
    }

    /// The member as a string; nil when it is none.
    func text(_ name: String) -> String? {
        guard let bytes = self[name] else { return nil }
        return (try? JSONParser.parse(Array(bytes.readableBytesView)))?.string
    }
}
