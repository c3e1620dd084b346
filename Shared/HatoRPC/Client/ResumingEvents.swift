public import HatoModel

/// A request that opens a subscription which goes on from a position after its connection was lost.
public protocol ResumableRequest: RPCRequest {
    /// The notifications of the subscription.
    associatedtype Event: RPCNotification

    /// Where a subscription with this result began.
    static func start(of result: Result) -> SubscriptionStart
    /// Makes this the request that opens it again, where it began as `start` says.
    mutating func resume(from start: SubscriptionStart)
    /// Makes this the request that opens it again after `event`.
    mutating func resume(after event: Event, of start: SubscriptionStart)
}

/// Where a subscription began.
public struct SubscriptionStart: Sendable {
    /// The version up to which nothing comes.
    public var version: UInt64
    /// The history of the version.
    public var epoch: String
    /// Whether everything up to there had been read before.
    public var missedNothing: Bool

    public init(version: UInt64, epoch: String, missedNothing: Bool = false) {
        self.version = version
        self.epoch = epoch
        self.missedNothing = missedNothing
    }
}

/// The events of a subscription of messages, for as long as they are read: the sequence outlives its connection.
///
/// Each iteration is one subscription, opened by its first `next()`. When the connection is lost it is opened again,
/// from the position of the last event that was read: no event is lost, and none comes twice.
///
/// The sequence throws what the first opening throws, also when the service cannot be reached; from then on only what
/// is permanent: `Messages.Cancelled` when the service has ended the subscription, `RPCError` when it refuses to open
/// it again or the client is closed. Cancelling the task that reads ends the sequence without an error; that, or
/// releasing the iterator, ends the subscription on the service too.
public struct ResumingEvents<Request: ResumableRequest>: AsyncSequence, Sendable {
    public typealias Element = Request.Event

    /// The request of the first opening.
    public internal(set) var request: Request
    /// Opening again is tried at once, then after a random time up to `delayMin`, doubling up to `delayMax` while it
    /// fails.
    public var delayMin: Duration = .milliseconds(50)
    /// The longest wait before it connects again.
    public var delayMax: Duration = .seconds(10)
    /// When the service says how long to wait (`retryAfterMs` of its error), that time is waited first, but never
    /// longer than this.
    public var retryAfterMax: Duration = .seconds(60)
    /// Called once for each lost connection, before the subscription is opened again.
    public var whenLost: (@Sendable (RPCError) -> Void)?
    private let opening: @Sendable (Request) async throws -> RPCSubscription

    /// - Parameter opening: subscribes; called again for each new connection, with the request for it.
    public init(_ request: Request, opening: @escaping @Sendable (Request) async throws -> RPCSubscription) {
        self.request = request
        self.opening = opening
    }

    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Reads the events one after the other.
    public struct Iterator: AsyncIteratorProtocol, Sendable {
        private let opening: @Sendable (Request) async throws -> RPCSubscription
        /// The request of the next opening.
        private var request: Request
        /// Nil when it has ended.
        private var lasting: LastingSubscription?
        /// What `next()` returned or threw last, as it came: with members that this version does not know.
        public private(set) var notification: RPCEvent?

        init(_ events: ResumingEvents) {
            opening = events.opening
            request = events.request
            lasting = LastingSubscription(
                LastingSubscription.ReopeningPolicy(
                    delayMin: events.delayMin, delayMax: events.delayMax, retryAfterMax: events.retryAfterMax,
                    whenLost: events.whenLost))
        }

        /// The next event; nil when the sequence has ended. Throws what ended the subscription.
        public mutating func next() async throws -> Request.Event? {
            do {
                if let event = try await received() { return try taken(event) }
            } catch is CancellationError {
                // The reading task has ended, as when `received` is nil.
            } catch {
                end()
                throw error
            }
            end()
            return nil
        }

        mutating func end() { lasting = nil }

        /// Nil: the task was cancelled, or it has ended before.
        private mutating func received() async throws -> RPCEvent? {
            let (request, opening) = (request, opening)
            return try await lasting?.next { last in
                var request = request
                if let last { request.resume(from: last) }
                let subscription = try await opening(request)
                return (subscription, Request.start(of: try Request.decodeResult(.object(subscription.result))))
            }
        }

        private mutating func taken(_ event: RPCEvent) throws -> Request.Event {
            notification = event
            if event.method == Messages.Cancelled.method { throw try Messages.Cancelled.decode(event.params) }
            let event = try Request.Event.decode(event.params)
            if let start = lasting?.start { request.resume(after: event, of: start) }
            lasting?.succeeded()
            return event
        }
    }
}
