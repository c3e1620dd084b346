import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Logging

/// Everything that listens or follows. Lives on the publisher's thread.
///
/// A listener starts by reading the snapshot it came with, which is that of the newest group that was handled here, and
/// is then told every group after it: no gap, no double. While it reads, its topic keeps what comes in between.
final class ListenerRegistry {
    let parts: ServiceParts
    let post: Publisher.Post
    let logger: Logger
    /// Says whether groups must come here.
    let setActive: @Sendable (Bool) -> Void
    /// The state after the newest group; nil as long as nobody listens or follows.
    var current: (any StoreSnapshot)?
    var topics: [UInt64: Topic] = [:]
    var topicIDs: [TopicKey: UInt64] = [:]
    var tries: [DatabaseID: ListenerTrie<UInt64>] = [:]
    var listeners: [UInt64: Listener] = [:]
    var followers: [UInt64: Follower] = [:]
    /// By connection and subscription.
    var names: [UInt64: [String: UInt64]] = [:]
    var lastID: UInt64 = 0

    init(
        _ parts: ServiceParts, logger: Logger, post: @escaping Publisher.Post,
        setActive: @escaping @Sendable (Bool) -> Void
    ) {
        self.parts = parts
        self.logger = logger
        self.post = post
        self.setActive = setActive
    }

    var listenerCount: Int { listeners.count }
    var followerCount: Int { followers.count }

    // MARK: Groups of commits

    func groupBecameDurable(_ group: CommitGroup) {
        // Nobody may be left although somebody was about to come.
        guard let before = current?.version else { return }
        var touched: [UInt64: [CommitNote]] = [:]
        for commit in group.commits {
            if let change = commit.note as? DatabaseChange {
                databaseChanged(change)
            } else if let note = commit.note as? CommitNote, let trie = tries[note.database] {
                for id in trie.matches(note.changes) { touched[id, default: []].append(note) }
            }
        }
        // A dropped database may have taken the last of them with it.
        guard !listeners.isEmpty || !followers.isEmpty else { return }
        current = group.snapshot
        for (id, notes) in touched.sorted(by: { $0.key < $1.key }) {
            if let topic = topics[id] { topicChanged(topic, notes, in: group, after: before) }
        }
        var shared = SharedChanges(of: group, parts.store.epoch)
        for follower in followers.values.sorted(by: { $0.id < $1.id }) {
            groupBecameDurable(group, &shared, for: follower)
        }
    }

    private func topicChanged(_ topic: Topic, _ notes: [CommitNote], in group: CommitGroup, after before: UInt64) {
        guard let version = notes.last?.version else { return }
        topic.changed(at: version)
        for listener in topic.others.values {
            for note in notes { listener.missed.add(note.changes) }
            if topic.key.query != nil { listener.missed.addWhole() }
            if listener.gathers, case .waiting = listener.state { scheduleGathered(listener) }
        }
        guard topic.needsEvents else {
            // A window nobody is told of is read anew by whoever comes next.
            if topic.key.query != nil { topic.window = .none }
            return
        }
        do {
            guard let sent = try sent(to: topic, notes, after: before) else { return }
            for listener in deliver(sent, to: topic) {
                listener.missed = MissedChanges(of: topic.key.path)
                for note in notes { listener.missed.add(note.changes) }
                waitForDrain(listener)
            }
        } catch {
            cancelAll(of: topic, for: error)
        }
    }

    /// One notification for all live listeners; nil when nobody can see a change, or a window is not read yet.
    private func sent(to topic: Topic, _ notes: [CommitNote], after before: UInt64) throws -> Topic.Sent? {
        guard let version = notes.last?.version, let current else { return nil }
        let reading = NodeReading(topic.database, in: current, bytesMax: parts.limits.responseBytesMax)
        var events: [ListenerEvent] = []
        var isFresh = false
        switch topic.window {
        case .none:
            // Of a query: nobody is live yet, and the reading under way will bring the window.
            if topic.key.query != nil { return nil }
            for note in notes {
                switch ListenerUpdate(of: note.changes, at: topic.key.path) {
                case .nothing: continue
                case .fresh: isFresh = true
                case .events(let more): events += more
                }
            }
        case .loading(let after, let pending):
            var changes = pending
            for note in notes { changes?.append(contentsOf: note.changes) }
            if let count = changes?.count, count > Self.pendingMax { changes = nil }
            topic.window = .loading(after: after, pending: changes)
            return nil
        case .ready(var window):
            switch try window.apply(notes.flatMap(\.changes), reading: reading.runner) {
            case .nothing: break
            case .fresh: isFresh = true
            case .events(let more): events = more
            }
            topic.window = .ready(window)
        }
        if isFresh {
            return Topic.Sent(after: before, version: version, members: try EventMembers.whole(topic.key, reading))
        }
        if events.isEmpty { return nil }
        return Topic.Sent(after: before, version: version, members: EventMembers.encode(version: version, events))
    }

    /// Changes that may wait for a window; beyond, it is read anew.
    private static let pendingMax = 10_000

    /// Hands a notification to the live listeners; returns those whose sockets are full.
    func deliver(_ sent: Topic.Sent, to topic: Topic) -> [Listener] {
        topic.keep(sent)
        var full: [Listener] = []
        for listener in topic.live where !notify(listener, sent.members) { full.append(listener) }
        parts.metrics.sentEvents(topic.live.count - full.count, bytes: sent.members.count)
        return full
    }

    func notify(_ listener: Listener, _ members: EncodedJSON) -> Bool {
        listener.connection.notify(
            Messages.Event.method, subscription: listener.opening.subscription, members: members)
    }
}
