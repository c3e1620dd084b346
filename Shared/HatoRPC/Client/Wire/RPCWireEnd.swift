package import HatoModel
import NIOCore
import NIOPosix

/// Why a wire has ended.
package enum RPCWireEnd: Sendable, Hashable {
    /// There was no connection, for a reason in words for people: nothing that was sent has reached the service.
    case connectFailed(String)
    /// There was no connection within the time limit: nothing that was sent has reached the service.
    case connectTimedOut(Duration)
    /// The owner has closed the wire.
    case closed
    /// The service, or the network, has closed the connection; the words say why where that is known.
    case lost(String?)
    /// The service has sent an error for the whole connection.
    case refused(RPCError)
    /// The service has sent what the protocol does not have.
    case protocolError(String)
    /// The service has sent a line of more bytes than this limit.
    case lineTooLong(Int)

    /// Why connecting failed.
    init(connecting error: any Error, within limit: Duration) {
        let last = (error as? NIOConnectionError)?.connectionErrors.last?.error ?? error
        if case ChannelError.connectTimeout = last {
            self = .connectTimedOut(limit)
        } else {
            self = .connectFailed(ConnectionProblem.words(error))
        }
    }

    /// Whether nothing that was sent has reached the service.
    package var isBeforeSending: Bool {
        switch self {
        case .connectFailed, .connectTimedOut: true
        default: false
        }
    }

    /// The error of the requests that have no response.
    package var error: RPCError {
        switch self {
        case .connectFailed(let words): RPCError.cannotConnect(words)
        case .connectTimedOut(let limit):
            RPCError.cannotConnect("no connection within \(limit.components.seconds) seconds")
        case .closed: RPCError.connectionLost("it was closed here")
        case .lost(let words): RPCError.connectionLost(words)
        case .refused(let error): error
        case .protocolError(let words): RPCError.badResponse(words)
        case .lineTooLong(let limit): RPCError.badResponse("a line of more than \(limit) bytes")
        }
    }
}
