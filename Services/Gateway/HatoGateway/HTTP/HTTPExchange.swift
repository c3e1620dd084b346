import HatoFirebase
import NIOCore
import NIOHTTP1

/// What handles one request: on the event loop of its connection. Before the request is complete, nothing but its
/// response follows from it: no call has a time before.
protocol HTTPExchange: AnyObject {
    /// For metrics.
    var kind: RequestKind { get }
    /// The length of a body that is still to come: what is too long has its response at once.
    func announced(bodyBytes: Int)
    /// A part of the body.
    func received(_ body: ByteBuffer)
    /// The request is complete.
    func requestEnded()
    /// The client takes bytes again, or no more.
    func writabilityChanged(_ isWritable: Bool)
    /// The time that it has given itself is over (`HTTPConnection.limitTime`).
    func timeCame()
    /// The client has gone; nothing can be sent.
    func clientLeft()
    /// The gateway stops: what has no end by itself ends.
    func gatewayStops()
}

extension HTTPExchange {
    var kind: RequestKind { .other }
    func announced(bodyBytes: Int) {}
    func writabilityChanged(_ isWritable: Bool) {}
    func timeCame() {}
    func clientLeft() {}
    func gatewayStops() {}
}

/// A response as it is sent whole.
struct HTTPResponse {
    var status: HTTPResponseStatus
    var headers: HTTPHeaders
    var body: ByteBuffer
    /// Whether the body is not sent, though its length is (HEAD).
    var omitsBody = false
    /// Called once: when the socket has taken the response, or never will.
    var whenTaken: (() -> Void)?

    init(status: HTTPResponseStatus, headers: HTTPHeaders = HTTPHeaders(), body: ByteBuffer = ByteBuffer()) {
        (self.status, self.headers, self.body) = (status, headers, body)
    }

    /// A text for people.
    static func text(_ status: HTTPResponseStatus, _ text: String) -> HTTPResponse {
        HTTPResponse(
            status: status,
            headers: ["Content-Type": "text/plain; charset=utf-8", "Access-Control-Allow-Origin": "*"],
            body: ByteBuffer(string: text))
    }
}

extension HTTPResponse {
    /// To account operations of a client that has not taken what it has (`UntakenShares`). SDKs keep their user: no
    /// JSON.
    static var clientIsStopped: HTTPResponse {
        var response = HTTPResponse.text(
            .serviceUnavailable, "Responses to this address are not read; read them, and try again.\n")
        response.headers.add(name: "Retry-After", value: "1")
        return response
    }

    init(_ answer: RESTAnswer) {
        self.init(status: HTTPResponseStatus(statusCode: answer.status), body: ByteBuffer(bytes: answer.body))
        headers = HTTPHeaders(answer.headers.map { ($0.name, $0.value) })
        omitsBody = answer.omitsBody
    }

    /// - Parameter origin: the header `Origin` of the request.
    init(_ response: AccountResponse, forOrigin origin: String?, omitsBody: Bool) {
        self.init(status: HTTPResponseStatus(statusCode: response.status), body: ByteBuffer(bytes: response.body))
        headers = HTTPHeaders(response.headers(forOrigin: origin).map { ($0.name, $0.value) })
        self.omitsBody = omitsBody
    }
}
