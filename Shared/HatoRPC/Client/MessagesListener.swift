public import HatoModel

/// The events of a listener of messages, for as long as somebody reads them: it outlives its connection.
///
/// Each iteration is one listener, opened by its first `next()`. When the connection is lost it listens again, from
/// the version of the last event that was read, or of the last answer that nothing was missed (`since` and `epoch`):
/// what was missed comes merged into one event, or as the whole value where the service no longer keeps the changes
/// or has another history. Nothing is told twice, nothing is left out.
///
/// It throws what the first opening throws, be it that nobody answers; from then on only what will not pass:
/// `Messages.Cancelled` when the service has ended the listener (also when the token it showed has ended), `RPCError`
/// when it refuses to listen again or the client is closed. Cancelling the task that reads ends it quietly; that, or
/// letting the iterator go, ends it on the service too.
public struct MessagesListener: AsyncSequence, Sendable {
    public typealias Element = Messages.Event

    /// What the first opening asks for.
    public internal(set) var request: Messages.Listen
    /// Listening again is tried at once, then after a random time up to `delayMin`, doubling up to `delayMax` while
    /// it fails.
    public var delayMin: Duration = .milliseconds(50)
    /// The longest wait before it connects again.
    public var delayMax: Duration = .seconds(10)
    /// When the service says how long to wait (`retryAfterMs` of its error), that time is waited first, but never
    /// longer than this.
    public var retryAfterMax: Duration = .seconds(60)
    /// Called once for each lost connection, before listening again is tried.
    public var whenLost: (@Sendable (RPCError) -> Void)?
    private let opening: @Sendable (Messages.Listen) async throws -> RPCSubscription

    /// - Parameter opening: subscribes; called again for each new connection, with what to ask for then.
    public init(
        _ request: Messages.Listen, opening: @escaping @Sendable (Messages.Listen) async throws -> RPCSubscription
    ) {
        self.request = request
        self.opening = opening
    }

    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Reads the events one after the other.
    public struct Iterator: AsyncIteratorProtocol, Sendable {
        private let listener: MessagesListener
        /// What the next opening asks for.
        private var request: Messages.Listen
        /// Nil when it has ended.
        private var lasting: LastingSubscription?
        /// What `next()` returned or threw last, as it came: with members that this version does not know.
        public private(set) var notification: RPCEvent?

        init(_ listener: MessagesListener) {
            self.listener = listener
            request = listener.request
            lasting = LastingSubscription(
                LastingSubscription.Patience(
                    delayMin: listener.delayMin, delayMax: listener.delayMax, retryAfterMax: listener.retryAfterMax,
                    whenLost: listener.whenLost))
        }

        /// The next event; nil when the sequence has ended. Throws what ended the listener.
        public mutating func next() async throws -> Messages.Event? {
            do {
                if let event = try await received() { return try taken(event) }
            } catch is CancellationError {
                // Whoever reads has gone, as when `received` is nil.
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
            let (request, opening) = (request, listener.opening)
            return try await lasting?.next { last in
                var request = request
                if let last, last.missedNothing, (request.since ?? 0) < last.version {
                    // No event said so, and a position that is never moved grows too old to resume from.
                    request.since = last.version
                    request.epoch = last.epoch
                }
                let subscription = try await opening(request)
                let result = try Messages.Listen.decodeResult(.object(subscription.result))
                let start = LastingSubscription.Start(
                    version: result.version, epoch: result.epoch, missedNothing: result.unchanged == true)
                return (subscription, start)
            }
        }

        private mutating func taken(_ event: RPCEvent) throws -> Messages.Event {
            notification = event
            if event.method == Messages.Cancelled.method { throw try Messages.Cancelled.decode(event.params) }
            let event = try Messages.Event.decode(event.params)
            request.since = event.version
            request.epoch = lasting?.start?.epoch
            // It is that of an older value.
            request.etag = nil
            lasting?.succeeded()
            return event
        }
    }
}

extension RPCClient {
    /// Listens, and goes on after a lost connection: events as they come, or `snapshots` of the value with what
    /// happened to its children. `credential` is for this listener only, instead of the identity of the connection,
    /// which every new connection shows again.
    public func listen(_ request: Messages.Listen, credential: String? = nil) -> MessagesListener {
        MessagesListener(request) { try await self.subscribe($0, credential: credential) }
    }
}
