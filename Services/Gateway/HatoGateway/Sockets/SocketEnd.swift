import HatoFirebase
import NIOCore
import NIOWebSocket

/// Why a socket of a session is closed, as its client gets it: a code (RFC 6455 §7.4) and a reason. Firebase's SDKs
/// look at neither: they come back after their own delays.
enum SocketEnd: Hashable, Sendable {
    /// The client has closed it, with this code.
    case ofClient(UInt16)
    /// The session goes on elsewhere, or its client has ended it.
    case notNeeded
    /// The gateway stops.
    case stopping
    /// A frame without a mask, out of order, or with bits or lengths that mean nothing.
    case wrongFrame
    /// A binary frame.
    case noText
    /// A text that is not UTF-8.
    case notUTF8
    case tooLong
    /// The gateway holds too much.
    case busy
    /// A message that has begun is not complete for too long.
    case tooSlow
    /// The session was closed.
    case ofSession(SessionEnd)

    var code: WebSocketErrorCode {
        switch self {
        case .ofClient(let code): WebSocketErrorCode(codeNumber: Int(code))
        case .notNeeded: .normalClosure
        case .stopping: .goingAway
        case .wrongFrame: .protocolError
        case .noText: .unacceptableData
        case .notUTF8: .unknown(1007)
        case .tooLong: .messageTooLarge
        case .busy: Self.tryAgainLater
        case .tooSlow: .policyViolation
        case .ofSession(let end): Self.code(end)
        }
    }

    /// At most 123 bytes, and nothing that the client has sent.
    var reason: String {
        switch self {
        case .ofClient: ""
        case .notNeeded: "the session has ended, or goes on over another connection"
        case .stopping: "stopping: connect again"
        case .wrongFrame: "frames need a mask and their order, and no extension was agreed on"
        case .noText: "messages are text frames"
        case .notUTF8: "text frames are UTF-8"
        case .tooLong: "the frame has more bytes than a message may have"
        case .busy: "busy: the gateway holds too much that is not complete"
        case .tooSlow: "too_slow: a message that has begun must be complete in time"
        case .ofSession(let end): Self.reason(end)
        }
    }

    /// Whether the client may be sending: closed at once, it would lose the code.
    var lingers: Bool {
        switch self {
        case .ofClient, .notNeeded, .stopping, .ofSession(.wireLost), .ofSession(.outage): false
        default: true
        }
    }

    /// IANA's registry of close codes.
    private static let tryAgainLater = WebSocketErrorCode.unknown(1013)

    /// - Parameter data: of the close frame of the client (RFC 6455 §5.5.1, §7.4).
    init(closedWith data: ByteBuffer) {
        var data = data
        guard data.readableBytes > 0 else {
            self = .ofClient(1000)
            return
        }
        guard let number = data.readInteger(as: UInt16.self),
            WebSocketErrorCode(codeNumber: Int(number)).isForFrames
        else {
            self = .wrongFrame
            return
        }
        let isText = String(validating: data.readableBytesView, as: UTF8.self) != nil
        self = isText ? .ofClient(number) : .notUTF8
    }

    private static func code(_ end: SessionEnd) -> WebSocketErrorCode {
        switch end {
        case .wireLost, .outage, .tooManyResponses: tryAgainLater
        case .unreadableResult: .unexpectedServerError
        case .notUTF8: .unknown(1007)
        case .unreadableMessage, .tooEarly, .tooManyRequests, .tokenEnded, .unknownNamespace: .policyViolation
        }
    }

    private static func reason(_ end: SessionEnd) -> String {
        switch end {
        case .wireLost, .outage: "unavailable: a service cannot be reached now"
        case .unreadableResult: "a service has sent what cannot be read"
        case .notUTF8: "text frames are UTF-8"
        case .unreadableMessage: #"messages are JSON, e.g. {"t":"d","d":{"r":1,"a":"g","b":{"p":"/a","q":{}}}}"#
        case .tooEarly: "clients send nothing before the first message of the server"
        case .tooManyRequests: "too many requests wait for their responses"
        case .tooManyResponses: "busy: too many responses wait for an earlier one"
        case .tokenEnded: "the token has ended: connect again with a new one"
        case .unknownNamespace: "there is no such database"
        }
    }
}
