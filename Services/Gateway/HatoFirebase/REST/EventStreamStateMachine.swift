public import HatoModel

/// Turns the events of one listener into the event stream of one request (spec realtime-database §7.5).
///
/// The stream begins with the first event, so that whatever fails before it is an ordinary response. Events have the
/// form of a GET with the same parameters: without `format=export` they have no priorities, and a change of a priority
/// alone sends nothing. A reader that is slow makes the wire pause: the service then merges what the reader misses into
/// one event.
///
/// The wire is the stream's own. Its owner performs the returned actions in their order.
public struct EventStreamStateMachine: Sendable {
    /// What the owner does.
    public enum Action: Sendable, Hashable {
        /// Sends the head of the stream.
        case sendHead(RESTAnswer)
        /// Sends a part of the body, and flushes it.
        case send([UInt8])
        /// Sends a whole response instead of a stream; the wire is closed.
        case answer(RESTAnswer)
        /// Makes a call on the same wire; its outcome goes to `callSucceeded` or `callFailed`.
        case call(RESTOperation)
        /// Begins again on another wire, for a while; after that, sends this response.
        case beginAgain(otherwise: RESTAnswer)
        /// Calls `keepAliveWasDue` after so many milliseconds.
        case scheduleKeepAlive(milliseconds: Int)
        /// Stops or continues reading from the wire.
        case pauseReading
        case resumeReading
        /// Closes the stream, after what was sent, and the wire.
        case close
    }

    private enum State {
        /// The listener is not open, or its first event is missing.
        case opening
        /// The reason for a missing index is being asked for.
        case probing
        case streaming
        case ended
    }

    private let request: RESTRequest
    private let identity: RESTIdentity
    private let keepAliveMs: Int
    private var state = State.opening
    private var isWritable = true

    /// - Parameters:
    ///   - request: a request with `isStream`.
    ///   - identity: the caller.
    public init(_ request: RESTRequest, as identity: RESTIdentity, _ limits: RESTLimits = RESTLimits()) {
        self.request = request
        self.identity = identity
        keepAliveMs = limits.keepAliveMs
    }

    // MARK: Events of the wire

    /// A call succeeded: that of `RESTRequest.start`, or one of an action.
    ///
    /// - Parameter result: the JSON text of the result.
    public mutating func callSucceeded(_ operation: RESTOperation, result: [UInt8]) -> [Action] {
        switch state {
        case .opening where operation.purpose == .listen:
            guard let members = ResultMembers(result) else { return fail(RESTErrors.internal) }
            guard members.string("warning") == Messages.Listen.Warning.noIndex.rawValue else { return [] }
            guard let probe = request.indexProbe(identity) else { return fail(RESTErrors.internal) }
            state = .probing
            return [.call(probe)]
        case .probing: return follow(request.step(after: operation, result: result))
        case .opening, .streaming, .ended: return []
        }
    }

    /// A call failed.
    public mutating func callFailed(_ operation: RESTOperation, _ error: RPCError) -> [Action] {
        switch state {
        case .opening, .probing: follow(request.step(after: operation, error: error, as: identity))
        case .streaming, .ended: []
        }
    }

    /// A notification `messages.event` arrived.
    ///
    /// - Parameter members: its params as a JSON text, or the members of these without braces.
    public mutating func eventsArrived(_ members: [UInt8]) -> [Action] {
        guard state == .opening || state == .streaming else { return [] }
        guard let text = EventText(request).blocks(members) else {
            return state == .opening ? fail(RESTErrors.internal) : end()
        }
        guard state == .opening else { return text.isEmpty ? [] : [.send(text)] }
        state = .streaming
        return [.sendHead(.stream), .send(text), .scheduleKeepAlive(milliseconds: keepAliveMs)]
    }

    /// The service ended the listener.
    ///
    /// - Parameter reason: of `messages.cancelled`.
    public mutating func listenerWasCancelled(reason: String) -> [Action] {
        switch state {
        case .opening, .probing:
            return fail(Self.error(of: reason))
        case .streaming:
            switch reason {
            case "permission_denied": return end(EventText.block("cancel", "null"))
            case "token_expired", "token_revoked":
                return end(EventText.block("auth_revoked", "credential is no longer valid"))
            // The client comes back and gets the reason as a response.
            default: return end()
            }
        case .ended: return []
        }
    }

    /// The wire ended.
    public mutating func wireEnded() -> [Action] {
        switch state {
        case .opening, .probing: fail(RESTErrors.unavailable)
        case .streaming: end()
        case .ended: []
        }
    }

    // MARK: Events of the client

    /// Time has passed since the last keep-alive.
    public mutating func keepAliveWasDue() -> [Action] {
        guard state == .streaming else { return [] }
        let next = Action.scheduleKeepAlive(milliseconds: keepAliveMs)
        // A reader that has not taken what was sent needs no more.
        return isWritable ? [.send(EventText.block("keep-alive", "null")), next] : [next]
    }

    /// The client's socket takes bytes again, or takes no more.
    public mutating func writabilityChanged(_ isWritable: Bool) -> [Action] {
        guard state != .ended, isWritable != self.isWritable else { return [] }
        self.isWritable = isWritable
        return [isWritable ? .resumeReading : .pauseReading]
    }

    /// The client closed its connection.
    public mutating func clientLeft() -> [Action] {
        guard state != .ended else { return [] }
        state = .ended
        return [.close]
    }

    // MARK: Ends

    private mutating func follow(_ step: RESTStep) -> [Action] {
        state = .ended
        return switch step {
        case .answer(let answer): [.answer(answer)]
        case .again(let otherwise): [.beginAgain(otherwise: otherwise)]
        // No call of a stream has one that follows.
        case .call: [.answer(request.error(RESTErrors.internal))]
        }
    }

    private mutating func fail(_ error: RESTError) -> [Action] {
        state = .ended
        return [.answer(request.error(error))]
    }

    private mutating func end(_ last: [UInt8]? = nil) -> [Action] {
        state = .ended
        return (last.map { [.send($0)] } ?? []) + [.close]
    }

    /// The response for a listener that ended before its first event.
    private static func error(of reason: String) -> RESTError {
        switch reason {
        case "permission_denied": RESTErrors.denied
        case "token_expired": RESTErrors.expiredToken
        case "token_revoked": RESTErrors.invalidToken
        case "too_big": RESTErrors.valueTooBig
        case "database_dropped": RESTErrors.notFound
        default: RESTErrors.unavailable
        }
    }
}
