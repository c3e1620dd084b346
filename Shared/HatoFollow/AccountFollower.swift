public import HatoModel
public import HatoRPC
public import Logging
import Synchronization

/// Follows the changes of accounts, sessions and keys in auth, from where it was, and hands them to `AccountEffects`.
///
/// It goes on after whatever interrupts it: auth is down or starts anew, its store was restored, the own store refuses.
/// What comes while a part is being handled is handled as one part after it.
public final class AccountFollower: Sendable {
    private struct State {
        var isFollowing = false
        /// The last one, also after it has passed.
        var problem = "auth was not reached yet"
        /// Whether events came and could not be handled, since the last that could.
        var isStuck = false
    }

    private let client: RPCClient
    private let effects: any AccountEffects
    private let logger: Logger
    private let state = Mutex(State())

    /// The longest pause between attempts to follow.
    private static let pauseMax = Duration.seconds(5)

    /// - Parameter client: of auth, with a service key for `auth.follow`. Closing it ends the follower's calls.
    public init(_ client: RPCClient, _ effects: any AccountEffects, logger: Logger) {
        self.client = client
        self.effects = effects
        self.logger = logger
    }

    /// Why it does not follow; nil while it does.
    public var problem: String? { state.withLock { $0.isFollowing && !$0.isStuck ? nil : $0.problem } }

    /// Follows until the task is cancelled.
    public func run() async {
        var pause = Duration.zero
        while !Task.isCancelled {
            do { try await followOnce() } catch {
                if Task.isCancelled { return }
                note(error)
            }
            let isStuck = state.withLock { state in
                defer { state.isFollowing = false }
                return state.isStuck || !state.isFollowing
            }
            pause = isStuck ? min(max(pause * 2, .milliseconds(50)), Self.pauseMax) : .milliseconds(50)
            try? await Task.sleep(for: pause)
        }
    }

    /// Logs a problem once, however often it comes again.
    private func note(_ error: any Error) {
        let text = Self.text(of: error)
        let isNew = state.withLock { state in
            defer { state.problem = text }
            return state.problem != text
        }
        if isNew { logger.warning("the changes of accounts are not followed", metadata: ["error": "\(text)"]) }
    }

    private static func text(of error: any Error) -> String {
        guard let error = (error as? any RPCErrorConvertible)?.rpcError else { return "\(error)" }
        guard [.unauthenticated, .permissionDenied].contains(error.code) else { return error.message }
        return "auth refuses the key of this service (outgoing-key-file): list it in the service-keys-file of auth"
    }

    private func followOnce() async throws {
        let subscription = try await subscribe()
        state.withLock { $0.isFollowing = true }
        let events = EventQueue()
        // A child, so that reading goes on while events are handled, and ends with this.
        async let reading: Void = events.read(subscription) { [effects] in effects.received($0) }
        do {
            while let part = try await events.next() {
                do { try await effects.handle(part) } catch {
                    state.withLock { $0.isStuck = true }
                    throw error
                }
                state.withLock { $0.isStuck = false }
            }
        } catch {
            subscription.cancel()
            events.end(with: error)
            await reading
            throw error
        }
        await reading
    }

    /// Opens the subscription behind the last event that was handled. What is no longer kept is made up for first.
    private func subscribe() async throws -> RPCSubscription {
        let last = try await effects.position()
        var request = Auth.Follow(after: last?.number, epoch: last?.epoch)
        if last == nil, effects.beginsAtOldest { request.after = 0 }
        do {
            let subscription = try await client.subscribe(request)
            if request.after == nil { try await missed(until: subscription) }
            return subscription
        } catch let error as RPCError where error.reason == "compacted" || error.reason == "unknown_version" {
            logger.warning(
                "changes of accounts were missed", metadata: ["reason": "\(error.reason ?? "")"])
            let subscription = try await client.subscribe(Auth.Follow())
            try await missed(until: subscription)
            return subscription
        }
    }

    private func missed(until subscription: RPCSubscription) async throws {
        let start = try Auth.Follow.decodeResult(.object(subscription.result))
        do {
            try await effects.missed(
                until: AccountStart(AccountPosition(start.position, epoch: start.epoch), time: Int64(start.time)))
        } catch {
            state.withLock { $0.isStuck = true }
            throw error
        }
        state.withLock { $0.isStuck = false }
    }
}

/// The events of a subscription between the task that reads them and the one that handles them.
private final class EventQueue: Sendable {
    private struct State {
        var events: [Auth.Event] = []
        var end: Result<Void, any Error>?
    }

    private let state = Mutex(State())
    private let rings: AsyncStream<Void>
    private let ring: AsyncStream<Void>.Continuation
    private let spaces: AsyncStream<Void>
    private let space: AsyncStream<Void>.Continuation

    private static let countMax = 1_000

    init() {
        (rings, ring) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (spaces, space) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Reads until the subscription ends.
    ///
    /// - Parameter received: called with each event as it comes.
    func read(_ subscription: RPCSubscription, received: (Auth.Event) -> Void) async {
        var spaces = spaces.makeAsyncIterator()
        do {
            for try await event in subscription {
                if event.method == Auth.Cancelled.method { throw try Ended(Auth.Cancelled.decode(event.params)) }
                // An event of a later version that this one does not know: nothing is to be done about it.
                guard let event = try? Auth.Event.decode(event.params) else { continue }
                received(event)
                let isFull = state.withLock { state in
                    state.events.append(event)
                    return state.events.count >= Self.countMax
                }
                ring.yield()
                if isFull, await spaces.next() == nil { return }
            }
            end(with: Ended(Auth.Cancelled(subscription: subscription.id, reason: "ended")))
        } catch {
            end(with: error)
        }
    }

    /// All that came, in order; waits for some. Throws what ended the subscription, after everything before; nil when
    /// the task is cancelled.
    func next() async throws -> [Auth.Event]? {
        var rings = rings.makeAsyncIterator()
        while true {
            let (events, end) = state.withLock { state in
                defer { state.events = [] }
                return (state.events, state.end)
            }
            if !events.isEmpty {
                space.yield()
                return events
            }
            if let end {
                try end.get()
                return nil
            }
            if await rings.next() == nil { return nil }
        }
    }

    /// The reader needs no space any more, and what came is all.
    func end(with error: any Error) {
        state.withLock { $0.end = $0.end ?? .failure(error) }
        ring.yield()
        space.finish()
    }

    /// Auth ended the subscription.
    private struct Ended: Error, CustomStringConvertible {
        let description: String

        init(_ notification: Auth.Cancelled) { description = "auth ended the subscription: \(notification.reason)" }
    }
}
