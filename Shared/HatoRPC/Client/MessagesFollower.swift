public import HatoModel

/// The changes of a database that match a follower's patterns, in the order of commits, for as long as somebody reads
/// them: it outlives its connection.
///
/// Each iteration is one follower, opened by its first `next()`. When the connection is lost it follows again, after
/// the last change that was read, or from where it began when there was none yet: nothing is told twice, nothing is
/// left out. A change with no `changes` only says how far the follower is.
///
/// It throws what the first opening throws, be it that nobody answers; from then on only what will not pass:
/// `RPCError` when what was missed is no longer kept (`compacted`), when the service has another history
/// (`unknown_version`), when it refuses for another reason or the client is closed; `Messages.Cancelled` when the
/// service has ended the follower. Who keeps a position of its own then decides how to go on. Cancelling the task
/// that reads ends it quietly; that, or letting the iterator go, ends it on the service too.
public struct MessagesFollower: AsyncSequence, Sendable {
    public typealias Element = Messages.Change

    /// What the first opening asks for.
    public let request: Messages.Follow
    /// Following again is tried at once, then after a random time up to `delayMin`, doubling up to `delayMax` while
    /// it fails.
    public var delayMin: Duration = .milliseconds(50)
    /// The longest wait before it connects again.
    public var delayMax: Duration = .seconds(10)
    /// When the service says how long to wait (`retryAfterMs` of its error), that time is waited first, but never
    /// longer than this.
    public var retryAfterMax: Duration = .seconds(60)
    /// Called once for each lost connection, before following again is tried.
    public var whenLost: (@Sendable (RPCError) -> Void)?
    private let opening: @Sendable (Messages.Follow) async throws -> RPCSubscription

    /// - Parameter opening: subscribes; called again for each new connection, with what to ask for then.
    public init(
        _ request: Messages.Follow, opening: @escaping @Sendable (Messages.Follow) async throws -> RPCSubscription
    ) {
        self.request = request
        self.opening = opening
    }

    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Reads the changes one after the other.
    public struct Iterator: AsyncIteratorProtocol, Sendable {
        private let follower: MessagesFollower
        /// What the next opening asks for.
        private var request: Messages.Follow
        /// Nil when it has ended.
        private var lasting: LastingSubscription?
        /// What `next()` returned or threw last, as it came: with members that this version does not know.
        public private(set) var notification: RPCEvent?

        init(_ follower: MessagesFollower) {
            self.follower = follower
            request = follower.request
            lasting = LastingSubscription(
                LastingSubscription.Patience(
                    delayMin: follower.delayMin, delayMax: follower.delayMax, retryAfterMax: follower.retryAfterMax,
                    whenLost: follower.whenLost))
        }

        /// The next change; nil when the sequence has ended. Throws what ended the follower.
        public mutating func next() async throws -> Messages.Change? {
            do {
                if let event = try await received() { return try taken(event) }
            } catch is CancellationError {
                // Whoever reads has gone, as when `received` is nil.
            } catch {
                lasting = nil
                throw error
            }
            lasting = nil
            return nil
        }

        /// Nil: the task was cancelled, or it has ended before.
        private mutating func received() async throws -> RPCEvent? {
            let (request, opening) = (request, follower.opening)
            return try await lasting?.next { start in
                let subscription = try await opening(Self.resumed(request, from: start))
                let result = try Messages.Follow.decodeResult(.object(subscription.result))
                return (subscription, LastingSubscription.Start(version: result.version, epoch: result.epoch))
            }
        }

        /// What to ask for when it was open already and no change was read.
        private static func resumed(
            _ request: Messages.Follow, from start: LastingSubscription.Start?
        ) -> Messages.Follow {
            guard let start else { return request }
            var request = request
            // From now on meant: from then on. (Who wants the oldest that is kept still does.)
            if request.after == nil { request.after = start.version }
            request.epoch = start.epoch
            return request
        }

        private mutating func taken(_ event: RPCEvent) throws -> Messages.Change {
            notification = event
            if event.method == Messages.Cancelled.method { throw try Messages.Cancelled.decode(event.params) }
            let change = try Messages.Change.decode(event.params)
            request.after = change.version
            request.epoch = change.epoch
            lasting?.succeeded()
            return change
        }
    }
}

extension RPCClient {
    /// Follows the changes of a database, and goes on after a lost connection. `credential` is for this follower only,
    /// instead of the identity of the connection, which every new connection shows again.
    public func follow(_ request: Messages.Follow, credential: String? = nil) -> MessagesFollower {
        MessagesFollower(request) { try await self.subscribe($0, credential: credential) }
    }
}
