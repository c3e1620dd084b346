public import HatoModel

extension SessionStateMachine {
    /// What happened.
    public enum Event: Sendable, Hashable {
        /// The client is connected; the connection to messages is being opened.
        case accepted
        /// The connection to messages stands, at this time in milliseconds since 1970.
        case wireOpened(at: Int64)
        /// A message of the client has come.
        case message(ReceivedMessage)
        /// A call has succeeded, with the text of its result.
        case succeeded(call: Int, result: ArraySlice<UInt8>)
        /// A call was refused.
        case refused(call: Int, RPCError)
        /// A listener got a notification.
        case notified(Notification)
        /// A scheduled time has come.
        case timerFired(Timer)
        /// The connection to messages has ended.
        case wireEnded
        /// There is no such database.
        case namespaceWasUnknown
        /// The process stops: the client shall come back to the same host, where another process may listen.
        case stopping
    }

    /// A notification of messages for one listener.
    public struct Notification: Sendable, Hashable {
        /// Whether it is the end of the listener (`messages.cancelled`) and no event (`messages.event`).
        public var isEnd: Bool
        /// The listener.
        public var subscription: String
        /// The params as an object, with or without `subscription`.
        public var params: ArraySlice<UInt8>

        public init(isEnd: Bool = false, subscription: String, params: ArraySlice<UInt8>) {
            self.isEnd = isEnd
            self.subscription = subscription
            self.params = params
        }
    }

    /// What has to be done, in this order.
    public enum Action: Sendable, Hashable {
        /// Send a message to the client.
        case send([UInt8])
        /// Call a native method; `params` is the text of an object, in one line.
        case call(Int, method: String, params: [UInt8])
        /// Set the identity of the wire, as `session.authenticate` does; it ends like a call.
        case authenticate(Int, SessionCredential)
        /// Let a timer fire; one that is scheduled already is replaced.
        case schedule(Timer, Due)
        /// Let a timer not fire.
        case cancel(Timer)
        /// Close the transport and the connection to messages. No further event has an effect.
        case close(SessionEnd)
    }

    /// A timer.
    public enum Timer: Sendable, Hashable {
        /// The connection to messages must stand.
        case wire
        /// The token of the identity ends.
        case tokenEnd
        /// A client whose token has ended must have closed.
        case authEnd
        /// A read is tried again.
        case read(Int)
    }

    /// When a timer fires.
    public enum Due: Sendable, Hashable {
        /// After so many milliseconds.
        case after(Int)
        /// At a time in milliseconds since 1970.
        case at(Int64)
    }
}

/// Why a session was closed, for logs.
public enum SessionEnd: Sendable, Hashable {
    /// The connection to messages did not stand in time, or has ended.
    case wireLost
    /// A service is away, or cannot do it now; the reason of the error, or of the end of a listener.
    case outage(String)
    /// A service sent what cannot be read.
    case unreadableResult
    /// The client sent what is no message.
    case unreadableMessage(String)
    /// The client sent bytes that are no UTF-8, and no number to respond to.
    case notUTF8
    /// The client sent something before the hello.
    case tooEarly
    /// The client sent more requests than a session may have.
    case tooManyRequests
    /// Responses that wait for an earlier one take too much memory.
    case tooManyResponses
    /// The token of the identity has ended.
    case tokenEnded
    /// There is no such database.
    case unknownNamespace
}
