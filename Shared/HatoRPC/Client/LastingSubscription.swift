import HatoModel

/// A subscription that is opened again when its connection is lost or the service could not go on with it: the
/// part of `ResumingEvents` that does not depend on the request. It has one reader.
struct LastingSubscription: Sendable {
    /// How opening again is tried.
    struct ReopeningPolicy: Sendable {
        var delayMin: Duration
        var delayMax: Duration
        var retryAfterMax: Duration
        var whenLost: (@Sendable (RPCError) -> Void)?
    }

    /// Opens it and returns where it begins; the argument is where it began the last time.
    typealias Opening = @Sendable (SubscriptionStart?) async throws -> (RPCSubscription, SubscriptionStart)

    private let policy: ReopeningPolicy
    /// Where it began the last time; nil until it was open once.
    private(set) var start: SubscriptionStart?
    /// Held: the client ends a subscription without references.
    private var subscription: RPCSubscription?
    /// Since the last notification that was taken.
    private var failures = 0

    init(_ policy: ReopeningPolicy) { self.policy = policy }

    /// The next notification; nil: the task was cancelled. Throws what the first opening throws; from then on only what
    /// is permanent.
    mutating func next(_ opening: Opening) async throws -> RPCEvent? {
        while true {
            var events = try await opened(opening).makeAsyncIterator()
            do {
                guard let event = try await events.next() else { return nil }
                try Self.checkReadable(event)
                return event
            } catch let error as RPCError where error != .clientClosed {
                subscription = nil
                policy.whenLost?(error)
                try await pause(after: error)
            }
        }
    }

    /// A notification was taken: what fails from now on fails for the first time.
    mutating func succeeded() { failures = 0 }

    /// The service ends a subscription that it could not read for; the reader's has not ended for that.
    private static func checkReadable(_ event: RPCEvent) throws {
        guard event.method == Messages.Cancelled.method,
            try Messages.Cancelled.decode(event.params).reason == "unavailable"
        else { return }
        throw RPCError.unavailable(reason: "unavailable", "The service could not read what is listened to")
    }

    private mutating func opened(_ opening: Opening) async throws -> RPCSubscription {
        while true {
            if let subscription { return subscription }
            do {
                let (new, newStart) = try await opening(start)
                subscription = new
                start = newStart
            } catch let error as RPCError where start != nil && error.isRetryable && error != .clientClosed {
                try await pause(after: error)
            }
        }
    }

    private mutating func pause(after error: RPCError) async throws {
        failures += 1
        let doublings = min(max(failures - 2, 0), 20)
        let longest = min(policy.delayMin * (1 << doublings), policy.delayMax)
        let spread = longest * Double.random(in: 0...1)
        if let asked = error.retryAfter {
            // Not earlier, and not all at the same moment.
            try await Task.sleep(for: min(asked, policy.retryAfterMax) + spread)
        } else if failures > 1, error.reason != RPCError.cannotConnectReason {
            // The client itself spreads the clients that have lost a connection, and waits between attempts to make
            // one.
            try await Task.sleep(for: spread)
        }
    }
}
