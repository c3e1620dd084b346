import HatoModel
import HatoRPC
import HatoStorage
import Synchronization

/// The followers of `notifier.follow`. Each reads the records of the store's commits at its own pace: a slow one delays
/// no other, and keeps nothing in memory but one page of commits.
final class EventFollowers: Sendable {
    private struct Key: Hashable {
        var connection: UInt64
        var subscription: String
    }

    private struct Follower {
        var task: Task<Void, Never>
        var watches: [RPCWatch]
    }

    /// Why a follower lost its right, once it has.
    private final class Revocation: Sendable {
        private let state = Mutex<String?>(nil)

        var reason: String? { state.withLock { $0 } }

        func because(_ reason: String) { state.withLock { $0 = $0 ?? reason } }
    }

    private let store: any Store
    private let followersMax: Int
    private let followers: Mutex<[Key: Follower]> = Mutex([:])

    init(_ store: any Store, followersMax: Int) {
        self.store = store
        self.followersMax = followersMax
    }

    var count: Int { followers.withLock { $0.count } }

    func follow(_ request: Notifier.Follow, _ context: RPCContext) async throws -> Notifier.Follow.Result {
        guard followers.withLock({ $0.count }) < followersMax else {
            throw NotifierError.tooManyFollowers(followersMax)
        }
        let start = try await start(of: request)
        let epoch = store.epoch.description
        let subscription = context.openSubscription()
        let key = Key(connection: context.connection.id, subscription: subscription)
        let connection = context.connection
        // Nothing is sent, and nothing ends by itself, before the follower is known.
        let (known, begin) = AsyncStream.makeStream(of: Void.self)
        let revocation = Revocation()
        // Unstructured: ends with the connection, `unfollow`, its identity, or `stop`.
        let task = Task { [store] in
            for await _ in known {}
            let failure = await EventFollowers.send(from: start, of: store, to: connection, subscription)
            if let reason = revocation.reason ?? failure { EventFollowers.sendEnd(subscription, connection, reason) }
            self.forget(key)
        }
        let identity = context.watchIdentity { change, _ in
            switch change {
            case .extended(.administrator), .replaced(.administrator): return
            case .expired: revocation.because("token_expired")
            case .extended, .replaced: revocation.because("permission_denied")
            }
            task.cancel()
        }
        let closing = connection.onClose { task.cancel() }
        followers.withLock { $0[key] = Follower(task: task, watches: [identity, closing]) }
        begin.finish()
        return Notifier.Follow.Result(subscription: subscription, epoch: epoch)
    }

    func unfollow(_ subscription: String, on connection: RPCConnection) throws {
        let key = Key(connection: connection.id, subscription: subscription)
        guard let follower = followers.withLock({ $0[key] }) else {
            throw NotifierError.unknownSubscription(subscription)
        }
        follower.task.cancel()
        forget(key)
    }

    func stop() async {
        let all = followers.withLock { Array($0.values) }
        for follower in all { follower.task.cancel() }
        for follower in all { await follower.task.value }
    }

    private func forget(_ key: Key) {
        let follower = followers.withLock { $0.removeValue(forKey: key) }
        for watch in follower?.watches ?? [] { watch.cancel() }
    }

    /// Sends `notifier.cancelled`. A peer whose socket is full gets it when it has taken what is on its way.
    static func sendEnd(_ subscription: String, _ connection: RPCConnection, _ reason: String) {
        let members = EncodedJSON { writer in
            writer.member("reason")
            writer.write(reason)
        }
        @Sendable func send() {
            let isSent = connection.notify(Notifier.Cancelled.method, subscription: subscription, members: members)
            // Never called when the connection closes first.
            if !isSent, !connection.isClosed { connection.onDrain { send() } }
        }
        send()
    }

    /// The position a follower begins after; refused when it is not in this history or no longer kept.
    private func start(of request: Notifier.Follow) async throws -> EventPosition {
        guard let after = request.after else { return EventPosition(endOf: store.version) }
        if let epoch = request.epoch, epoch != store.epoch.description {
            throw NotifierError.unknownPosition
        }
        guard after > 0 else {
            return EventPosition(endOf: (store.keptCommits.oldest ?? store.version + 1) - 1)
        }
        let position = EventPosition(number: after)
        guard position.version <= store.version else { throw NotifierError.unknownPosition }
        _ = try await store.read { [store] _ in try store.commits(after: position.before, limit: 1) }
        return position
    }

    /// Sends until cancelled; returns why it ended otherwise.
    private static func send(
        from start: EventPosition, of store: any Store, to connection: RPCConnection, _ subscription: String
    ) async -> String? {
        do {
            for try await commit in store.follow(after: start.before) where !commit.record.isEmpty {
                // A record that cannot be read stops no follower.
                let events = (try? RecordCodec.decode([OutboxEvent].self, commit.record, key: [])) ?? []
                for (index, event) in events.enumerated() {
                    let position = EventPosition(version: commit.version, index: index)
                    guard position.number > start.number else { continue }
                    let members = event.members(at: position, epoch: store.epoch.description)
                    while !connection.notify(Notifier.Event.method, subscription: subscription, members: members) {
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

/// The position of an event: its commit, and its number there. As one number it has place for a million events a commit
/// and stays exact in JSON for 8 billion commits.
struct EventPosition: Hashable, Sendable {
    private static let indexBits = 20
    var number: Int

    var version: UInt64 { UInt64(number >> EventPosition.indexBits) }
    /// The version whose followers are sent the commit of this position.
    var before: UInt64 {
        number & (1 << EventPosition.indexBits - 1) == (1 << EventPosition.indexBits) - 1
            ? version : version - min(version, 1)
    }

    init(number: Int) { self.number = max(0, number) }

    init(version: UInt64, index: Int) { number = Int(clamping: version) << EventPosition.indexBits + index }

    /// Behind everything of a commit.
    init(endOf version: UInt64) { self.init(version: version, index: 1 << EventPosition.indexBits - 1) }
}

extension OutboxEvent {
    /// The members of a `notifier.event` besides its subscription.
    fileprivate func members(at position: EventPosition, epoch: String) -> EncodedJSON {
        EncodedJSON { writer in
            writer.member("position")
            writer.write(position.number)
            writer.write("epoch", epoch)
            writer.member("time")
            writer.write(time)
            writer.write("type", type.rawValue)
            writer.write("notification", notification)
            if let recipients {
                writer.member("recipients")
                writer.write(recipients)
            }
            writer.write("trigger", trigger)
            writer.write("path", path)
            writer.write("delivery", delivery)
            writer.write("device", device)
            writer.write("uid", uid)
            writer.write("reason", reason)
        }
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ name: String, _ value: String?) {
        guard let value else { return }
        member(name)
        write(value)
    }
}
