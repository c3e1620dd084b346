import HatoFirebase
import HatoModel
import NIOCore
import NIOHTTP1

/// One request of Firebase Auth, from its body to its response: on the event loop of its connection.
///
/// The bytes of its body count in the budget of the loop until it has its response: what an operation keeps of them is
/// no more. Each call has its own time; without a response in it the client gets a text, by which SDKs keep their user:
/// that of an outage, or that the outcome is not known.
final class AccountsExchange: HTTPExchange {
    let kind = RequestKind.account
    /// Where the response goes.
    struct Client {
        /// The IP address.
        var address: String
        /// The header `Origin`.
        var origin: String?
        /// Whether the request is a HEAD.
        var omitsBody: Bool
    }

    /// What is read.
    struct Request {
        var request: AccountRequest
        var context: AccountContext
        /// Bytes of its body; of a longer one the rest is not read.
        var bytesMax: Int
    }

    private let router: AccountsRouter
    private var request: Request
    private let client: Client
    private let connection: HTTPConnection
    private var exchange: AccountExchange?
    private let held: HeldBytes
    private var heldBytes = 0
    private var hasEnded = false
    /// The call that is under way.
    private var underWay: SharedCall?

    init(_ router: AccountsRouter, _ request: Request, _ client: Client, _ connection: HTTPConnection) {
        (self.router, self.request, self.client, self.connection) = (router, request, client, connection)
        held = router.held.of(client.address)
    }

    func announced(bodyBytes: Int) {
        if bodyBytes > request.bytesMax { refuseBody() }
    }

    func received(_ body: ByteBuffer) {
        guard exchange == nil, !hasEnded else { return }
        guard held.change(by: body.readableBytes) else {
            return respond(AccountResponse.outage(retryAfterSeconds: 1))
        }
        heldBytes += body.readableBytes
        request.request.body.append(contentsOf: body.readableBytesView)
        if request.request.body.count > request.bytesMax { refuseBody() }
    }

    func requestEnded() { begin() }

    func clientLeft() { end() }

    /// It has its response before it is complete, and makes no call.
    private func refuseBody() {
        guard exchange == nil, !hasEnded else { return }
        request.request.isBodyTooLong = true
        begin()
    }

    private func begin() {
        guard exchange == nil, !hasEnded else { return }
        guard let (exchange, step) = AccountExchange.begin(request.request, request.context) else {
            return respond(AccountResponse.outage())
        }
        self.exchange = exchange
        request.request.body = []
        follow(step)
    }

    private func follow(_ step: AccountExchange.Step) {
        switch step {
        case .respond(let response): respond(response)
        case .call(let call): make(call)
        }
    }

    private func make(_ call: NativeCall) {
        guard var params = call.params(administratorKey: router.emulator?.administratorKey) else {
            return respond(AccountResponse.outage())
        }
        params["from"] = .string(client.address)
        connection.limitTime(timeMax(of: call))
        let text = JSONValue.object(params).encoded
        let made = router.wires(for: call).call(call.method, text, msMax: timeMax(of: call)) { [self] outcome in
            guard !hasEnded else { return }
            let result = outcome.flatMap { text in Self.value(of: text) }
            guard let step = exchange?.received(result) else { return }
            follow(step)
        }
        // One that failed at once may have been followed by another.
        if made.isUnderWay { underWay = made }
    }

    /// The result as a value; of a text that is none the outcome is unknown.
    private static func value(of text: ByteBuffer) -> Result<JSONValue, RPCError> {
        guard let value = try? JSONParser.parse(Array(text.readableBytesView)) else {
            return .failure(
                RPCError(.unavailable, reason: "unreadable_result", "The result of the service is no JSON"))
        }
        return .success(value)
    }

    /// In milliseconds.
    private func timeMax(of call: NativeCall) -> Int {
        call.isImport ? router.limits.importCallMsMax : router.limits.authCallMsMax
    }

    func timeCame() {
        guard let response = exchange?.timedOut() else { return }
        respond(response)
        underWay?.giveUp()
    }

    private func respond(_ response: AccountResponse) {
        guard !hasEnded else { return }
        end()
        if let effect = response.effect { router.emulator?.codes.apply(effect) }
        connection.respond(HTTPResponse(response, forOrigin: client.origin, omitsBody: client.omitsBody))
    }

    private func end() {
        hasEnded = true
        exchange = nil
        request.request.body = []
        held.release(heldBytes)
        heldBytes = 0
    }
}
