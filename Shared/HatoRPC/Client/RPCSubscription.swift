public import HatoModel
import Synchronization

/// The notifications to one listener, in order, for one reader; should several read, each notification goes to one.
///
/// Ends when cancelled or when the server ends it (with a notification `….cancelled`, which is delivered); throws
/// `RPCError` (unavailable) when the connection is lost: the subscriber listens again from the position it has seen
/// (`MessagesListener` does that by itself). A reader that is slow keeps at most
/// `RPCClientConfiguration.subscriptionBufferMax` notifications here, of `subscriptionBufferBytesMax` at most, then
/// the client stops reading from the server; only while calls wait for responses may there be 16 times as many, and
/// beyond that the subscription ends with `RPCError` (unavailable, `fell_behind`). Letting it go, or cancelling the
/// task that reads, is like `cancel`: the client also ends it on the server.
public final class RPCSubscription: AsyncSequence, Sendable {
    public typealias Element = RPCEvent

    private struct State {
        var events: [RPCEvent] = []
        /// The first event not read yet; what is before it is dropped now and then.
        var first = 0
        var end: Result<Void, RPCError>?
        /// Readers that wait, the longest waiting first; empty while there are events.
        var waiting: [CheckedContinuation<RPCEvent?, any Error>] = []

        /// Of the events that were not read yet.
        private var bytes = 0

        func isFull(_ limits: Limits) -> Bool { count >= limits.eventsMax || bytes >= limits.bytesMax }

        var count: Int { events.count - first }

        mutating func append(_ event: RPCEvent) {
            events.append(event)
            bytes += event.byteCount
        }

        mutating func take() -> RPCEvent? {
            guard first < events.count else { return nil }
            let event = events[first]
            bytes -= event.byteCount
            events[first].params = [:]
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
    /// The result of the call that opened it.
    public let result: JSONObject

    private let state = Mutex(State())
    private let limits: Limits
    private let link: ClientLink

    /// What a reader that is slow keeps here.
    struct Limits {
        var eventsMax: Int
        var bytesMax: Int
    }

    init(id: String, result: JSONObject, limits: Limits, link: ClientLink) {
        self.id = id
        self.result = result
        self.limits = limits
        self.link = link
    }

    /// It cannot be read any more: events that still come must not hold up the client.
    deinit { link.post(.forget(id)) }

    public func makeAsyncIterator() -> Iterator { Iterator(subscription: self) }

    /// Stops delivering, and ends the subscription on the server: before whatever the client is asked to call next.
    public func cancel() {
        finish(.success(()))
        link.post(.forget(id))
    }

    /// Reads the events one after the other.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: RPCSubscription

        /// The next event; nil when the subscription has ended. Throws `RPCError` when the connection was lost.
        public mutating func next() async throws -> RPCEvent? { try await subscription.next() }
    }

    /// Whether the reader is so slow that no more should be read from the server.
    var isFull: Bool { state.withLock { $0.isFull(limits) } }

    /// On the client's loop, in order. False when it has ended here, so that more need not come.
    func deliver(_ event: RPCEvent) -> Bool {
        let (reader, isOpen) = state.withLock { state -> (CheckedContinuation<RPCEvent?, any Error>?, Bool) in
            guard state.end == nil else { return (nil, false) }
            if !state.waiting.isEmpty { return (state.waiting.removeFirst(), true) }
            guard state.count < limits.eventsMax * 16 else {
                state.end = .failure(
                    RPCError.unavailable(reason: "fell_behind", "The reader of a subscription was too slow"))
                return (nil, false)
            }
            state.append(event)
            return (nil, true)
        }
        reader?.resume(returning: event)
        return isOpen
    }

    func finish(_ end: Result<Void, RPCError>) {
        let waiting = state.withLock { state in
            if state.end == nil { state.end = end }
            defer { state.waiting = [] }
            return state.waiting
        }
        for reader in waiting { reader.resume(with: end.map { nil }.mapError { $0 as any Error }) }
    }

    private func next() async throws -> RPCEvent? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                var isReadAgain = false
                let ready = state.withLock { state -> Result<RPCEvent?, any Error>? in
                    let wasFull = state.isFull(limits)
                    if let event = state.take() {
                        isReadAgain = wasFull && !state.isFull(limits)
                        return .success(event)
                    }
                    if let end = state.end { return end.map { nil }.mapError { $0 as any Error } }
                    state.waiting.append(continuation)
                    return nil
                }
                if isReadAgain { link.post(.readAgain) }
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
    /// The params of the notification, without the subscription.
    public var params: JSONObject
    /// What it took of its line.
    public var byteCount: Int

    public init(method: String, params: JSONObject, byteCount: Int = 0) {
        self.method = method
        self.params = params
        self.byteCount = byteCount
    }
}
