import HatoFirebase
import HatoModel
import NIOCore

/// With what requests of the REST interface are handled on one event loop.
struct RESTCaller {
    var configuration: GatewayConfiguration
    var upstream: Upstream
    var held: HeldBytes
    /// The IP address of the client.
    var address: String

    /// The caller as services take it.
    func identity(of request: RESTRequest) -> RESTIdentity {
        let identity = request.identity(from: address)
        return configuration.emulator.map { identity.emulated($0.administratorKey) } ?? identity
    }
}

/// One request of the REST interface, from its body to its response.
final class RESTExchange: HTTPExchange {
    let kind = RequestKind.rest
    private let request: RESTRequest
    private let caller: RESTCaller
    private let connection: HTTPConnection
    private let loop: any EventLoop
    private let identity: RESTIdentity
    private var body: [UInt8] = []
    /// Bytes of the call that waits for its response.
    private var callBytes = 0
    private var hasEnded = false
    /// Until when a query waits for its index.
    private var indexDeadline: NIODeadline?

    init(_ request: RESTRequest, _ caller: RESTCaller, _ connection: HTTPConnection, on loop: any EventLoop) {
        (self.request, self.caller, self.connection, self.loop) = (request, caller, connection, loop)
        identity = caller.identity(of: request)
    }

    private var limits: GatewayLimits { caller.configuration.limits }

    func announced(bodyBytes: Int) {
        if bodyBytes > limits.rest.bodyBytesMax { respond(request.error(RESTErrors.writeTooBig)) }
    }

    func received(_ part: ByteBuffer) {
        guard !hasEnded else { return }
        guard body.count + part.readableBytes <= limits.rest.bodyBytesMax else {
            return respond(request.error(RESTErrors.writeTooBig))
        }
        guard caller.held.change(by: part.readableBytes) else { return respond(request.error(RESTErrors.unavailable)) }
        body.append(contentsOf: part.readableBytesView)
    }

    func requestEnded() {
        guard !hasEnded else { return }
        let body = body
        dropBody()
        do {
            switch try request.start(body, as: identity, limits.rest) {
            case .answer(let answer): respond(answer)
            case .call(let operation):
                connection.limitTime(request.timeoutMs ?? limits.callMsMax)
                caller.upstream.prepare(request.database) { [self] in
                    if !hasEnded { call(operation) }
                }
            }
        } catch {
            respond(request.error(error))
        }
    }

    private func dropBody() {
        caller.held.release(body.count)
        body = []
    }

    private func dropCall() {
        caller.held.release(callBytes)
        callBytes = 0
    }

    func clientLeft() { end() }

    func timeCame() { respond(request.error(request.timeoutMs == nil ? lostError : RESTErrors.timedOut)) }

    /// What became of a call without a response. Clients repeat what is only unavailable: a write could be done twice.
    private var lostError: RESTError {
        isRead ? RESTErrors.unavailable : RESTErrors.unknownOutcome
    }

    private var isRead: Bool { request.method == .get || request.method == .head }

    private func call(_ operation: RESTOperation) {
        guard caller.held.change(by: operation.params.count) else {
            return respond(request.error(RESTErrors.unavailable))
        }
        callBytes = operation.params.count
        caller.upstream.callMessages(operation.method, operation.params) { [self] outcome in
            dropCall()
            guard !hasEnded else { return }
            switch outcome {
            case .success(let text):
                follow(request.step(after: operation, result: Array(text.readableBytesView)), operation)
            // Its outcome is unknown: also to a service that stops.
            case .failure(let error)
            where error.reason == "connection_lost" || error.code == .unavailable && !error.isRetryable:
                respond(request.error(lostError))
            case .failure(let error): follow(request.step(after: operation, error: error, as: identity), operation)
            }
        }
    }

    private func follow(_ step: RESTStep, _ operation: RESTOperation) {
        switch step {
        case .answer(let answer): respond(answer)
        case .call(let next): call(next)
        case .again(let otherwise):
            let end = indexDeadline ?? .now() + .milliseconds(Int64(limits.session.indexMsMax))
            indexDeadline = end
            guard NIODeadline.now() < end else { return respond(otherwise) }
            loop.assumeIsolated().scheduleTask(in: .milliseconds(Int64(limits.session.indexRetryMs))) { [weak self] in
                guard let self, !self.hasEnded else { return }
                self.call(operation)
            }
        }
    }

    private func respond(_ answer: RESTAnswer) {
        guard !hasEnded else { return }
        end()
        // Other responses of the client were not taken meanwhile: that of a read can be asked for again.
        let isDropped = isRead && answer.body.count > limits.stoppedResponseBytesMax && connection.isStopped
        connection.respond(HTTPResponse(isDropped ? request.error(RESTErrors.unavailable) : answer))
    }

    private func end() {
        hasEnded = true
        dropBody()
    }
}
