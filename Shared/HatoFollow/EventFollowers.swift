public import HatoModel
public import HatoRPC
public import HatoStorage
import Synchronization

/// The followers of a service's events. Each reads the records of the store's commits at its own pace: a slow one
/// delays no other, and keeps nothing in memory but one page of commits.
public final class EventFollowers<Event: RecordedEvent>: Sendable {
    private struct Key: Hashable {
        var connection: UInt64
        var subscription: String
    }

    private struct Follower {
        var task: Task<Void, Never>
        var watches: [RPCWatch] = []
    }

    private struct State {
        var followers: [Key: Follower] = [:]
        /// How many each connection has, with those that are being opened.
        var places: [UInt64: Int] = [:]

        var placeCount: Int { places.values.reduce(0, +) }
    }

    /// Why a follower lost its right, once it has.
    private final class Revocation: Sendable {
        private let state = Mutex<String?>(nil)

        var reason: String? { state.withLock { $0 } }

        func because(_ reason: String) { state.withLock { $0 = $0 ?? reason } }
    }

    private let store: any Store
    private let followersMax: Int
    private let now: @Sendable () -> Int64
    private let newestPosition: @Sendable (any StoreReading) throws -> Int?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - followersMax: the maximum number of followers of all connections; one has a quarter of it at most.
    ///   - now: milliseconds since 1970.
    ///   - newestPosition: the position of the newest event (`RecordedEvent.position`), if the store keeps it: a
    ///     follower that has it goes on, also when the commits after it, which have no events, are no longer kept.
    public init(
        _ store: any Store, followersMax: Int, now: @escaping @Sendable () -> Int64 = WallClock.milliseconds,
        newestPosition: @escaping @Sendable (any StoreReading) throws -> Int? = { _ in nil }
    ) {
        self.store = store
        self.followersMax = followersMax
        self.now = now
        self.newestPosition = newestPosition
    }

    /// The number of followers.
    public var count: Int { state.withLock { $0.followers.count } }

    /// Opens a follower on the connection of `context`, which must be an administrator's.
    ///
    /// - Parameters:
    ///   - after: The position of the last event that it has; 0: from the oldest kept one; nil: from now on.
    ///   - epoch: The epoch of `after`; nil: any.
    /// - Throws: `FollowRefusal`; the errors of the store.
    public func follow(
        after: Int?, epoch: String?, _ context: RPCContext
    ) async throws -> FollowResult {
        try takePlace(of: context.connection.id)
        let start: EventPosition
        do { start = try await self.start(after: after, epoch: epoch) } catch {
            state.withLock { Self.freePlace(of: context.connection.id, in: &$0) }
            throw error
        }
        return open(from: start, context)
    }

    private func open(from start: EventPosition, _ context: RPCContext) -> FollowResult {
        let epoch = store.epoch.description
        let subscription = context.openSubscription()
        let key = Key(connection: context.connection.id, subscription: subscription)
        let connection = context.connection
        // Nothing is sent before the follower is known.
        let (known, begin) = AsyncStream.makeStream(of: Void.self)
        let revocation = Revocation()
        // Unstructured: ends with the connection, `unfollow`, its identity, or `stop`.
        let task = Task { [store] in
            for await _ in known {}
            let failure = await Self.send(from: start, of: store, to: connection, subscription)
            if let reason = revocation.reason ?? failure { Self.sendEnd(subscription, connection, reason) }
            self.forget(key)
        }
        state.withLock { $0.followers[key] = Follower(task: task) }
        let identity = context.watchIdentity { change, _ in
            switch change {
            case .extended(.administrator), .replaced(.administrator): return
            case .expired: revocation.because("token_expired")
            case .revoked: revocation.because("token_revoked")
            case .extended, .replaced: revocation.because("permission_denied")
            }
            task.cancel()
        }
        let watches = [identity, connection.onClose { task.cancel() }]
        // One of them may have ended it already.
        let isThere = state.withLock { state in
            state.followers[key]?.watches = watches
            return state.followers[key] != nil
        }
        if !isThere { for watch in watches { watch.cancel() } }
        begin.finish()
        return FollowResult(subscription: subscription, epoch: epoch, position: start.number, time: Int(now()))
    }

    /// Takes a place for a follower that is being opened. Throws `FollowRefusal.tooManyFollowers`.
    private func takePlace(of connection: UInt64) throws(FollowRefusal) {
        let perConnectionMax = max(1, followersMax / 4)
        let refusal: FollowRefusal? = state.withLock { state in
            guard state.placeCount < followersMax else { return .tooManyFollowers(followersMax) }
            let own = state.places[connection, default: 0]
            guard own < perConnectionMax else { return .tooManyOfConnection(perConnectionMax) }
            state.places[connection] = own + 1
            return nil
        }
        if let refusal { throw refusal }
    }

    private static func freePlace(of connection: UInt64, in state: inout State) {
        let left = state.places[connection, default: 0] - 1
        state.places[connection] = left > 0 ? left : nil
    }

    /// Ends a follower of the connection. Throws `FollowRefusal.unknownSubscription` when it has none of that name.
    public func unfollow(_ subscription: String, on connection: RPCConnection) throws(FollowRefusal) {
        let key = Key(connection: connection.id, subscription: subscription)
        guard let follower = state.withLock({ $0.followers[key] }) else {
            throw .unknownSubscription(subscription)
        }
        follower.task.cancel()
        forget(key)
    }

    /// Ends all followers and waits for them.
    public func stop() async {
        let all = state.withLock { Array($0.followers.values) }
        for follower in all { follower.task.cancel() }
        for follower in all { await follower.task.value }
    }

    private func forget(_ key: Key) {
        let follower = state.withLock { state in
            let follower = state.followers.removeValue(forKey: key)
            if follower != nil { Self.freePlace(of: key.connection, in: &state) }
            return follower
        }
        for watch in follower?.watches ?? [] { watch.cancel() }
    }

    /// Sends the notification of the end. A peer whose socket is full gets it when it has taken what is on its way.
    static func sendEnd(_ subscription: String, _ connection: RPCConnection, _ reason: String) {
        let members = EncodedJSON { writer in
            writer.member("reason")
            writer.write(reason)
        }
        @Sendable func send() {
            let isSent = connection.notify(Event.endMethod, subscription: subscription, members: members)
            // Never called when the connection closes first.
            if !isSent, !connection.isClosed { connection.onDrain { send() } }
        }
        send()
    }

    /// The position a follower begins after. Throws `FollowRefusal` when it is not in this history or no longer kept.
    private func start(after: Int?, epoch: String?) async throws -> EventPosition {
        guard let after else { return EventPosition(endOf: store.version) }
        if let epoch, epoch != store.epoch.description { throw FollowRefusal.unknownPosition }
        guard after > 0 else {
            return EventPosition(endOf: (store.keptCommits.oldest ?? store.version + 1) - 1)
        }
        let position = EventPosition(number: after)
        guard position.version <= store.version else { throw FollowRefusal.unknownPosition }
        do {
            _ = try await store.read { [store] _ in try store.commits(after: position.before, limit: 1) }
        } catch StoreError.compacted(let oldest) {
            if let end = try await end(ifNewestIs: position) { return end }
            throw FollowRefusal.compacted(oldest: oldest)
        } catch StoreError.unknownVersion {
            throw FollowRefusal.unknownPosition
        }
        return position
    }

    /// The end of the store's history, if there is no event after `position`.
    private func end(ifNewestIs position: EventPosition) async throws -> EventPosition? {
        try await store.read { [newestPosition] snapshot in
            guard let newest = try newestPosition(snapshot), newest <= position.number else { return nil }
            return EventPosition(endOf: snapshot.version)
        }
    }

    /// Sends until cancelled; returns why it ended otherwise.
    private static func send(
        from start: EventPosition, of store: any Store, to connection: RPCConnection, _ subscription: String
    ) async -> String? {
        do {
            for try await commit in store.follow(after: start.before) where !commit.record.isEmpty {
                for (index, event) in Event.events(of: commit).enumerated() {
                    let position = EventPosition(version: commit.version, index: index)
                    guard position.number > start.number else { continue }
                    let members = event.members(at: position, epoch: store.epoch.description)
                    while !connection.notify(Event.method, subscription: subscription, members: members) {
                        if Task.isCancelled || connection.isClosed { return nil }
                        await drained(connection)
                    }
                }
            }
            return nil
        } catch StoreError.compacted {
            return "compacted"
        } catch {
            return Task.isCancelled ? nil : "stopping"
        }
    }

    /// Returns when the peer has taken enough, or the task is cancelled (as it is when the connection closes).
    private static func drained(_ connection: RPCConnection) async {
        let (rings, ring) = AsyncStream.makeStream(of: Void.self)
        connection.onDrain { ring.finish() }
        for await _ in rings {}
    }
}
