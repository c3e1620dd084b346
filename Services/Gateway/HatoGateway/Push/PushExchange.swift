import HatoFirebase
import HatoModel
import NIOCore

/// One request of FCM's HTTP interfaces, or a report of what a user did, from its body to its response.
final class PushExchange: HTTPExchange {
    private let request: PushRequest
    private let caller: RESTCaller
    private let connection: HTTPConnection
    private let loop: any EventLoop
    private var body: [UInt8] = []
    private var hasEnded = false
    /// The call of the complete request.
    private var underWay: PushRequest.Call?

    private init(_ request: PushRequest, _ caller: RESTCaller, _ connection: HTTPConnection, on loop: any EventLoop) {
        (self.request, self.caller, self.connection, self.loop) = (request, caller, connection, loop)
    }

    /// The exchange of a request; nil when it has its response already.
    static func exchange(
        _ request: PushRequest, _ caller: RESTCaller, _ connection: HTTPConnection, on loop: any EventLoop
    ) -> PushExchange? {
        guard let fault = request.headFault else { return PushExchange(request, caller, connection, on: loop) }
        connection.respond(HTTPResponse(request.response(to: fault)))
        return nil
    }

    private var limits: GatewayLimits { caller.configuration.limits }
    private var bodyBytesMax: Int { request.isReport ? limits.reportBodyBytesMax : limits.pushBodyBytesMax }

    func announced(bodyBytes: Int) {
        if bodyBytes > bodyBytesMax { respond(request.response(to: PushFault.tooLarge)) }
    }

    func received(_ part: ByteBuffer) {
        guard !hasEnded else { return }
        guard body.count + part.readableBytes <= bodyBytesMax else {
            return respond(request.response(to: PushFault.tooLarge))
        }
        guard caller.held.change(by: part.readableBytes) else {
            return respond(request.response(to: PushFault.busy))
        }
        body.append(contentsOf: part.readableBytesView)
    }

    func requestEnded() {
        guard !hasEnded else { return }
        do throws(PushFault) {
            let call = try request.call(body, memoryMax: limits.accounts.memoryMax(ofBody: bodyBytesMax))
            dropBody()
            underWay = call
            connection.limitTime(limits.callMsMax)
            self.call(call)
        } catch { respond(request.response(to: error)) }
    }

    func clientLeft() { end() }

    private func call(_ call: PushRequest.Call) {
        let params = request.params(of: call, from: caller.address)
        let isThere = caller.upstream.callNotifier(call.method, params) { [self] outcome in
            switch outcome {
            case .success(let text): respond(request.response(to: call, result: Array(text.readableBytesView)))
            case .failure(let error): respond(request.response(to: error, of: call))
            }
        }
        guard !isThere else { return }
        let error = RPCError(
            .methodNotFound, reason: "method_not_found", "There is no notifier behind this gateway (setting notifier)")
        respond(request.response(to: error, of: call))
    }

    func timeCame() {
        guard let underWay else { return }
        let error = RPCError(.unavailable, reason: "connection_lost", "The notifier does not respond")
        respond(request.response(to: error, of: underWay))
    }

    private func respond(_ response: RESTAnswer) {
        guard !hasEnded else { return }
        end()
        connection.respond(HTTPResponse(response))
    }

    private func dropBody() {
        caller.held.release(body.count)
        body = []
    }

    private func end() {
        hasEnded = true
        dropBody()
    }
}
