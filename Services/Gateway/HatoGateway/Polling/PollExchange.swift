import HatoFirebase
import NIOCore
import NIOHTTP1

/// One request for `/.lp` (spec realtime-database §8.9), on the event loop of its connection.
///
/// The session may belong to another event loop: the request is handed over to it, and the response comes back.
final class PollExchange: HTTPExchange {
    let kind = RequestKind.poll
    private let loopState: LoopState
    private let request: PollRequest
    private let parameters: SessionParameters
    private let client: SessionClient
    private let connection: HTTPConnection
    /// Names the request on all event loops.
    private let number: Int
    /// Where its session is, from which it waits for a response.
    private var place: SessionSecret.Place?
    private var hasEnded = false

    /// The exchange of a request; nil when it has its response already.
    static func exchange(
        for head: HTTPRequestHead, from address: String, _ connection: HTTPConnection, _ loopState: LoopState
    ) -> PollExchange? {
        guard head.method == .GET else {
            var response = refusal(.methodNotAllowed, "Polls are GET requests.\n")
            response.headers.add(name: "Allow", value: "GET")
            response.omitsBody = head.method == .HEAD
            connection.respond(response)
            return nil
        }
        do {
            return PollExchange(try PollRequest(target: head.uri), head, address, connection, loopState)
        } catch {
            switch error {
            case .wrong(let name):
                connection.respond(refusal(.badRequest, "The parameter \(name) is missing or wrong.\n"))
            }
            return nil
        }
    }

    /// A response that is kept nowhere, as all of sessions.
    private static func refusal(_ status: HTTPResponseStatus, _ text: String) -> HTTPResponse {
        var response = HTTPResponse.text(status, text)
        response.headers.add(name: "Cache-Control", value: "no-store")
        return response
    }

    private init(
        _ request: PollRequest, _ head: HTTPRequestHead, _ address: String, _ connection: HTTPConnection,
        _ loopState: LoopState
    ) {
        (self.request, self.connection, self.loopState) = (request, connection, loopState)
        parameters = SessionParameters(target: head.uri)
        let host = head.headers.first(name: "host") ?? ""
        client = SessionClient(
            database: loopState.configuration.namespaces.database(target: head.uri, host: host), host: host,
            address: address)
        number = loopState.newNumber()
    }

    func received(_ body: ByteBuffer) {}

    func requestEnded() {
        guard !hasEnded else { return }
        switch request {
        case .start(let callback): start(callback)
        case .poll(let id, let password, let content):
            poll(PollSession.Poll(request: number, reply: reply, content: content), id, password)
        case .leavingPage(let id, let password):
            guard let secrets = PollScript.Secrets(id: id, password: password) else {
                return end(Self.refusal(.badRequest, "The parameters id and pw are letters, digits, - and _.\n"))
            }
            var page = HTTPResponse.script(PollScript.leavingPage(secrets), type: "text/html; charset=utf-8")
            // Pages that require it of themselves show no frame without it.
            page.headers.add(name: "Cross-Origin-Embedder-Policy", value: "require-corp")
            end(page)
        case .leave(let id, let password):
            if let secret = SessionSecret(id) {
                loopState.peers.perform(on: secret.place.loop) { $0.polls.session(secret, password)?.clientLeft() }
            }
            end(.script([]))
        }
    }

    /// The session decides when the gateway stops.
    func gatewayStops() {}

    func clientLeft() {
        hasEnded = true
        guard let place else { return }
        let number = number
        loopState.peers.perform(on: place.loop) { $0.polls.session(at: place)?.requestEnded(number) }
    }

    private var reply: PollReply { PollReply(exchange: NIOLoopBound(self, eventLoop: loopState.loop)) }

    private func start(_ callback: Int) {
        loopState.end(former: parameters.former)
        guard let session = loopState.polls.begin(client, callback: callback) else {
            var response = Self.refusal(
                .serviceUnavailable, "There are too many polling sessions; try again later.\n")
            response.headers.add(name: "Retry-After", value: "10")
            return end(response)
        }
        place = session.place
        session.start(request: number, reply)
    }

    private func poll(_ poll: PollSession.Poll, _ id: String, _ password: String) {
        guard let secret = SessionSecret(id) else { return end(.script(PollScript.close)) }
        place = secret.place
        let isThere = loopState.peers.perform(on: secret.place.loop) { state in
            guard let session = state.polls.session(secret, password) else {
                return poll.reply.respond(PollScript.close)
            }
            session.polled(poll)
        }
        if !isThere { end(.script(PollScript.close)) }
    }

    /// The response has come.
    ///
    /// - Parameter counts: whether the session counts its bytes until the client has taken them.
    fileprivate func respond(_ script: [UInt8], counts: Bool) {
        guard !hasEnded else {
            guard let place, counts else { return }
            let (number, count) = (number, script.count)
            loopState.peers.perform(on: place.loop) {
                $0.polls.session(at: place)?.responseLost(request: number, count)
            }
            return
        }
        var response = HTTPResponse.script(script)
        if let place, counts {
            let (peers, count) = (loopState.peers, script.count)
            response.whenTaken = { peers.perform(on: place.loop) { $0.polls.session(at: place)?.wasTaken(count) } }
        }
        end(response)
    }

    private func end(_ response: HTTPResponse) {
        (hasEnded, place) = (true, nil)
        connection.respond(response)
    }
}

/// Where the response to a request for `/.lp` goes, whatever the event loop.
struct PollReply: Sendable {
    fileprivate let exchange: NIOLoopBound<PollExchange>

    /// Responds, once, in a later turn of the event loop of the request.
    ///
    /// - Parameter counts: whether the session hears that the client has taken it (`PollSession.wasTaken`).
    func respond(_ script: [UInt8], counts: Bool = false) {
        let exchange = exchange
        exchange.eventLoop.execute { exchange.value.respond(script, counts: counts) }
    }
}

extension HTTPResponse {
    /// A response that belongs to one session, and is kept nowhere.
    fileprivate static func script(
        _ bytes: [UInt8], type: String = "application/javascript; charset=utf-8"
    ) -> HTTPResponse {
        HTTPResponse(
            status: .ok,
            headers: [
                "Content-Type": type, "Cache-Control": "no-store", "Access-Control-Allow-Origin": "*",
                "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "cross-origin",
                "Referrer-Policy": "no-referrer",
            ], body: ByteBuffer(bytes: bytes))
    }
}
