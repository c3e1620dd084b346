public import HatoModel

/// The events of a listener of messages, for as long as somebody reads them: it outlives its connection.
///
/// Each iteration is one listener, opened by its first `next()`. When the connection is lost it listens again, from the
/// version of the last event that was read, or of the last answer that nothing was missed (`since` and `epoch`): what was
/// missed comes merged into one event, or as the whole value where the service no longer keeps the changes or has another
/// history. Nothing is told twice, nothing is left out.
///
/// It throws what the first opening throws, be it that nobody answers; from then on only what will not pass:
/// `Messages.Cancelled` when the service has ended the listener (also when the token it showed has ended), `RPCError` when it refuses to listen again or the
/// client is closed. Cancelling the task that reads ends it quietly; that, or letting the iterator go, ends it on the
/// service too.
public struct MessagesListener: AsyncSequence, Sendable {
    public typealias Element = Messages.Event

    /// What the first opening asks for.
    public internal(set) var request: Messages.Listen
    /// Listening again is tried at once, then after a random time up to `delayMin`, doubling up to `delayMax` while it fails.
    public var delayMin: Duration = .milliseconds(50)
    public var delayMax: Duration = .seconds(10)
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

    public struct Iterator: AsyncIteratorProtocol, Sendable {
        private let listener: MessagesListener
        /// What the next opening asks for.
        private var request: Messages.Listen
        /// Held: the client ends a listener that nobody holds.
        private var subscription: RPCSubscription?
        /// The history of the events; nil until it was open once.
        private var epoch: String?
        /// Since the last event.
        private var failures = 0
        private var isOver = false

        init(_ listener: MessagesListener) {
            self.listener = listener
            request = listener.request
        }

        public mutating func next() async throws -> Messages.Event? {
            guard !isOver else { return nil }
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

        mutating func end() {
            isOver = true
            subscription = nil
        }

        /// Nil: the task was cancelled.
        private mutating func received() async throws -> RPCEvent? {
            while true {
                var events = try await opened().makeAsyncIterator()
                do {
                    guard let event = try await events.next() else { return nil }
                    try Self.checkReadable(event)
                    return event
                } catch let error as RPCError where error != .clientClosed {
                    subscription = nil
                    listener.whenLost?(error)
                    try await pause(after: error)
                }
            }
        }

        /// The service ends a listener that it could not read for; the listener has not ended for that.
        private static func checkReadable(_ event: RPCEvent) throws {
            guard event.method == Messages.Cancelled.method,
                try Messages.Cancelled.decode(event.params).reason == "unavailable"
            else { return }
            throw RPCError.unavailable(reason: "unavailable", "The service could not read what is listened to")
        }

        private mutating func opened() async throws -> RPCSubscription {
            while true {
                if let subscription { return subscription }
                do {
                    let new = try await listener.opening(request)
                    let result = try Messages.Listen.decodeResult(.object(new.result))
                    epoch = result.epoch
                    if result.unchanged == true {
                        // No event will say so, and a position that is never moved grows too old to resume from.
                        request.since = result.version
                        request.epoch = result.epoch
                    }
                    subscription = new
                } catch let error as RPCError where epoch != nil && error.isRetryable && error != .clientClosed {
                    try await pause(after: error)
                }
            }
        }

        private mutating func taken(_ event: RPCEvent) throws -> Messages.Event {
            if event.method == Messages.Cancelled.method { throw try Messages.Cancelled.decode(event.params) }
            let event = try Messages.Event.decode(event.params)
            request.since = event.version
            request.epoch = epoch
            // It is that of an older value.
            request.etag = nil
            failures = 0
            return event
        }

        private mutating func pause(after error: RPCError) async throws {
            failures += 1
            // The client itself spreads those who have lost a connection, and waits between attempts to make one.
            guard failures > 1, error.reason != RPCError.cannotConnectReason else { return }
            let longest = Swift.min(listener.delayMin * (1 << Swift.min(failures - 2, 20)), listener.delayMax)
            try await Task.sleep(for: longest * Double.random(in: 0...1))
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
