import NIOCore
import NIOHTTP1

/// What a request is about, for metrics.
enum RequestKind: String, Sendable, CaseIterable {
    case rest, stream, socket, poll, account, native
    /// What has its response before one of the protocols gets it, and the health.
    case other

    /// Whether the response follows the request at once: how long it takes says how fast the gateway is.
    var isPrompt: Bool { [.rest, .account, .other].contains(self) }
}

/// A request, for metrics and the access log.
struct RequestRecord: Sendable {
    var kind: RequestKind
    let method: String
    /// Without the query, where tokens stand.
    let path: String
    /// The IP address of the client.
    let address: String
    let began: NIODeadline
    /// Nil: the client has gone before the response began.
    var status: UInt?
    /// Bytes of the body of the response, or of messages to a socket, before they are compressed or encrypted.
    var bytes = 0
    /// Of a native socket.
    var messages: Messages?

    /// What a socket has carried, and why it has ended.
    struct Messages: Sendable {
        /// From the client.
        var received = 0
        var receivedBytes = 0
        /// To the client.
        var sent = 0
        var sentBytes = 0
        var end = ""
    }

    init(_ head: HTTPRequestHead, from address: String, _ kind: RequestKind = .other) {
        (method, path) = (head.method.rawValue, String(head.path))
        (self.address, self.kind, began) = (address, kind, .now())
    }

    /// Since it began.
    var nanoseconds: Int64 { (NIODeadline.now() - began).nanoseconds }
}
