public import HatoModel
import Synchronization

/// The notifications to one listener, in order, for one reader.
///
/// Ends when cancelled or after the server's last word (`….cancelled`, which is delivered); throws `RPCError`
/// (unavailable) when the connection is lost: the subscriber listens again from the position it has seen. A reader that
/// is slow keeps at most `RPCClientConfiguration.subscriptionBufferMax` notifications here, then the client stops
/// reading from the server; only while calls wait for answers may there be 16 times as many, and beyond that the
/// subscription ends with `RPCError` (unavailable, `fell_behind`). Letting it go stops delivering, as `cancel` does.
public final class RPCSubscription: AsyncSequence, Sendable {
    public typealias Element = RPCEvent

    private struct State {
        var events: [RPCEvent] = []
        /// The first event not read yet; what is before it is dropped now and then.
        var first = 0
        var end: Result<Void, RPCError>?
        var waiting: CheckedContinuation<RPCEvent?, any Error>?

        var count: Int { events.count - first }

        mutating func take() -> RPCEvent? {
            guard first < events.count else { return nil }
            let event = events[first]
            first += 1
            if first == events.count {
                events.removeAll(keepingCapacity: first < 64)
                first = 0
            } else if first >= 1_024 {
                events.removeFirst(first)
                first = 0
            }
            return event
        }
    }

    /// The name of the subscription on its connection.
    public let id: String
    /// What the call that opened it answered.
    public let result: JSONObject

    private let state = Mutex(State())
    private let bufferMax: Int
    private let link: ClientLink

    init(id: String, result: JSONObject, bufferMax: Int, link: ClientLink) {
        self.id = id
        self.result = result
        self.bufferMax = bufferMax
        self.link = link
    }

    /// Nobody can read it any more: events that still come must not hold up the client.
    deinit { link.post(.forget(id)) }

    public func makeAsyncIterator() -> Iterator { Iterator(subscription: self) }

    /// Stops delivering; tell the server with its own method (`messages.unlisten`) or close the client.
    public func cancel() {
        finish(.success(()))
        link.post(.forget(id))
    }

    public struct Iterator: AsyncIteratorProtocol {
        let subscription: RPCSubscription

        public mutating func next() async throws -> RPCEvent? { try await subscription.next() }
    }

    /// Whether the reader is so slow that no more should be read from the server.
    var isFull: Bool { state.withLock { $0.count >= bufferMax } }

    /// On the client's loop, in order.
    func deliver(_ event: RPCEvent) {
        let waiting = state.withLock { state -> CheckedContinuation<RPCEvent?, any Error>? in
            guard state.end == nil else { return nil }
            if let waiting = state.waiting {
                state.waiting = nil
                return waiting
            }
            if state.count >= bufferMax * 16 {
                state.end = .failure(
                    RPCError.unavailable(reason: "fell_behind", "The reader of a subscription was too slow"))
            } else {
                state.events.append(event)
            }
            return nil
        }
        waiting?.resume(returning: event)
    }

    func finish(_ end: Result<Void, RPCError>) {
        let waiting = state.withLock { state in
            if state.end == nil { state.end = end }
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume(with: end.map { nil }.mapError { $0 as any Error })
    }

    private func next() async throws -> RPCEvent? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                var hasRoomAgain = false
                let ready = state.withLock { state -> Result<RPCEvent?, any Error>? in
                    let wasFull = state.count >= bufferMax
                    if let event = state.take() {
                        hasRoomAgain = wasFull && state.count < bufferMax
                        return .success(event)
                    }
                    if let end = state.end { return end.map { nil }.mapError { $0 as any Error } }
                    state.waiting = continuation
                    return nil
                }
                if hasRoomAgain { link.post(.readAgain) }
                if let ready { continuation.resume(with: ready) }
                if ready == nil, Task.isCancelled { finish(.success(())) }
            }
        } onCancel: {
            cancel()
        }
    }
}

/// One notification from a server.
public struct RPCEvent: Sendable, Hashable {
    public var method: String
    public var params: JSONObject

    public init(method: String, params: JSONObject) {
        self.method = method
        self.params = params
    }
}
