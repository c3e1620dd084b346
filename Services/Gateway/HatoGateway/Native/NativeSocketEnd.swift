import HatoModel
import HatoRPC
import NIOCore
import NIOWebSocket

/// Why a native socket is closed, as its client gets it: a code (RFC 6455 §7.4) and a reason.
enum NativeSocketEnd: Hashable {
    /// The client has closed it.
    case ofClient
    /// A frame without a mask, or out of order.
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
    /// A message that the service takes for the beginning of an HTTP request.
    case noJSON
    /// The service has refused a message that is longer than it takes, and ended the connection.
    case refusedLine
    /// The gateway stops.
    case stopping
    /// The service was not reached: nothing of the client has reached it.
    case unavailable
    /// The service, or the network, has ended the connection: the outcome of what has no response is not known.
    case lost
    /// The service refuses to let the gateway speak for clients.
    case refused

    init(_ end: RPCWireEnd) {
        switch end {
        case .connectFailed, .connectTimedOut: self = .unavailable
        case .closed, .lost, .protocolError, .lineTooLong: self = .lost
        // Such as the limit of its connections; the key of the gateway may be wrong.
        case .refused(let error): self = error.isRetryable ? .unavailable : .refused
        }
    }

    var code: WebSocketErrorCode {
        switch self {
        case .ofClient: .normalClosure
        case .wrongFrame: .protocolError
        case .noText: .unacceptableData
        case .notUTF8: .unknown(1007)
        case .tooLong, .refusedLine: .messageTooLarge
        case .tooSlow, .noJSON: .policyViolation
        case .stopping: .goingAway
        case .refused: .unexpectedServerError
        // Try again later (IANA's registry of close codes).
        case .busy, .unavailable, .lost: .unknown(1013)
        }
    }

    /// At most 123 bytes.
    var reason: String {
        switch self {
        case .ofClient: ""
        case .wrongFrame: "frames need a mask, and their order"
        case .noText: "messages are text frames, each of one JSON text"
        case .notUTF8: "text frames are UTF-8"
        case .tooLong: "the message has more bytes than one may have"
        case .busy: "busy: the gateway holds too much that is not complete"
        case .tooSlow: "too_slow: a message that has begun must be complete in time"
        case .noJSON: "messages are JSON-RPC 2.0, no HTTP requests"
        case .refusedLine: "line_too_long: the service does not take a message of this size"
        case .stopping: "stopping: connect again"
        case .unavailable: "unavailable: the service cannot be reached now"
        case .lost: "connection_lost: the service has ended the connection"
        case .refused: "forward_refused: the service does not let the gateway speak for clients"
        }
    }

    /// Whether a line of a service refuses one that is too long: it belongs to no request, and is the last one.
    static func isRefusal(_ line: ByteBuffer) -> Bool {
        let start = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":"
        guard line.readableBytes <= 1_024, line.readableBytesView.starts(with: start.utf8),
            let error = try? JSONParser.parse(Array(line.readableBytesView))["error"]
        else { return false }
        return error["data"]?["reason"] == "line_too_long"
    }
}

extension WebSocketErrorCode {
    /// Whether a close frame may have it (RFC 6455 §7.4).
    var isForFrames: Bool {
        switch UInt16(webSocketErrorCode: self) {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}
