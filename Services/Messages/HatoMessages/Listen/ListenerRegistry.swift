import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Logging

/// Everything that listens or follows. Lives on the publisher's thread.
///
/// A listener starts by reading the snapshot it came with, which is that of the newest group that was handled here,
/// and is then told every group after it: no gap, no double. While it reads, its topic keeps what comes in between.
///
/// **Of one group.** First the rights are judged that its commits touch, in the state after it: who has lost his
/// right sees nothing of the group. Those that cannot be judged at once stay in doubt, and who lives by them is told
/// nothing until they are (`ListenerRegistry+Doubts`). Then each topic tells its live listeners. What takes long is
/// worked out on a reader's thread, from the same snapshot, and told when it is ready; the answers to a connection
/// that listens there wait for it.
final class ListenerRegistry {
    let parts: ServiceParts
    let line: Publisher.Line
    let logger: Logger
    /// The state after the newest group; nil as long as nobody listens or follows.
    var current: (any StoreSnapshot)?
    var topics: [UInt64: Topic] = [:]
    var topicIDs: [TopicKey: UInt64] = [:]
    var tries: [DatabaseID: ListenerTrie<UInt64>] = [:]
    var listeners: [UInt64: Listener] = [:]
    /// How many there are of each client (`Listener.Opening.client`).
    var clients: [String: Int] = [:]
    var followers: [UInt64: Follower] = [:]
    var rights = ReadRights()
    /// Whether a timer runs for the rights that end by time.
    var isTiming = false
    /// Rights in doubt.
    var waitingRights = WaitingRights()
    /// Whether a turn is on its way that judges them.
    var isJudging = false
    /// Listeners in doubt, by connection.
    var doubtful: [UInt64: Set<UInt64>] = [:]
    /// By connection and subscription.
    var names: [UInt64: [String: UInt64]] = [:]
    /// Listeners that gather their events, by connection.
    var gathering: [UInt64: Set<UInt64>] = [:]
    var heldAnswers = HeldAnswers()
    /// Who listens again from a version, while the commits since are not yet searched.
    var resuming: [Resuming] = []
    var isScanning = false
    var lastID: UInt64 = 0

    struct Resuming {
        var listener: Listener.Ticket
        var request: MissedScan.Request
        /// What to read when it is not known what was missed, or too much was.
        var fallback: ListenerReading.Wanted
    }

    init(_ parts: ServiceParts, logger: Logger, line: Publisher.Line) {
        self.parts = parts
        self.logger = logger
        self.line = line
    }

    var listenerCount: Int { listeners.count }
    var followerCount: Int { followers.count }

    /// Nothing comes any more.
    func close() {
        for answer in heldAnswers.forgetAll() { answer() }
    }

    // MARK: Groups of commits

    func groupBecameDurable(_ group: CommitGroup) {
        // Nobody may be left although somebody was about to come.
        guard let before = current?.version else { return }
        var touched: [UInt64: [CommitNote]] = [:]
        var doubts = RightDoubts()
        var changes: [DatabaseChange] = []
        for (index, commit) in group.commits.enumerated() {
            if let change = commit.note as? DatabaseChange {
                let last = changes.last { $0.id == change.id }?.database
                changes.append(change)
                guard hasOtherRules(change, than: last) else { continue }
                doubts.add(rights.all(of: change.id), at: index)
                doubts.noteRules(of: change.id, at: index)
            } else if let note = commit.note as? CommitNote, let trie = tries[note.database] {
                for id in trie.matches(note.changes) { touched[id, default: []].append(note) }
                doubts.add(rights.touched(by: note.changes, in: note.database), at: index)
            }
        }
        current = group.snapshot
        for change in changes { databaseChanged(change) }
        let passedOver = judge(doubts, of: group, after: before)
        // The last of them may have been cancelled.
        guard !listeners.isEmpty || !followers.isEmpty else { return }
        for (topic, notes) in inOrder(touched) { topicChanged(topic, notes, after: before) }
        for listener in passedOver { load(listener, .missed(listener.missed)) }
        var shared = SharedChanges(of: group, parts.store.epoch)
        for follower in followers.values.sorted(by: { $0.id < $1.id }) {
            groupBecameDurable(group, &shared, for: follower)
        }
    }

    /// Deeper nodes come before those above them, as apps know it from their own listeners (spec §8.5).
    private func inOrder(_ touched: [UInt64: [CommitNote]]) -> [(Topic, [CommitNote])] {
        let found = touched.compactMap { id, notes in topics[id].map { (id: id, topic: $0, notes: notes) } }
        return found.sorted { left, right in
            let (depth, other) = (left.topic.key.path.depth, right.topic.key.path.depth)
            return depth == other ? left.id < right.id : depth > other
        }.map { ($0.topic, $0.notes) }
    }

    /// - Parameter before: the version of the group before.
    private func topicChanged(_ topic: Topic, _ notes: [CommitNote], after before: UInt64) {
        guard let version = notes.last?.version else { return }
        topic.changed(at: version)
        for listener in topic.others.values {
            listener.miss(notes)
            if case .gathering = listener.state { scheduleGathered(listener) }
        }
        switch topic.telling {
        case .unread: return
        case .working: topic.wait(notes)
        case .ready:
            guard topic.needsEvents else {
                // A window nobody is told of is read anew by whoever comes next.
                if topic.key.query != nil { topic.telling = .unread }
                return topic.told(through: version)
            }
            tell(topic, notes, after: before)
        }
    }

    // MARK: Telling

    /// Tells the live listeners of commits up to the newest group; they have been told everything up to `told`.
    func tell(_ topic: Topic, _ notes: [CommitNote], after told: UInt64) {
        guard case .ready(let window) = topic.telling, var update = update(topic, .changes(notes), window) else {
            return
        }
        if update.isLong { return work(topic, update, after: told) }
        do {
            topic.telling = .unread  // so that the window is changed in place
            let members = try update.work(
                ReadingMeter(rows: parts.limits.eventRowsMax, bytes: parts.limits.catchUpBytesMax)
            )?.shared(from: parts.limits.sharedEventBytesMin)
            topic.telling = .ready(update.window)
            deliver(members, update, to: topic, after: told)
        } catch is ReadingMeter.Exhausted {
            work(topic, update, after: told)
        } catch {
            topic.telling = .ready(update.window)
            cancelAll(of: topic, for: error)
        }
    }

    private func update(_ topic: Topic, _ wanted: TopicUpdate.Wanted, _ window: QueryWindow?) -> TopicUpdate? {
        guard let current else { return nil }
        return TopicUpdate(
            key: topic.key, database: topic.database, snapshot: current, bytesMax: parts.limits.responseBytesMax,
            wanted: wanted, window: window)
    }

    /// Reads the window, or everything, as of the newest group.
    func readAnew(_ topic: Topic, _ wanted: TopicUpdate.Wanted, after told: UInt64) {
        guard var update = update(topic, wanted, nil) else { return }
        if let rows = topic.windowRows { update.snapshot = CountedSnapshot(update.snapshot, rows) }
        work(topic, update, after: told)
    }

    /// Works it out on a reader's thread; `worked` goes on. Meanwhile answers to those who listen there wait.
    private func work(_ topic: Topic, _ update: TopicUpdate, after told: UInt64) {
        topic.telling = .working(told: told)
        for listener in topic.live {
            heldAnswers.wait(listener.connection.id, for: topic.id, after: told)
            topic.waitingConnections.insert(listener.connection.id)
        }
        parts.metrics.workedElsewhere()
        let (line, id, sharedMin) = (line, topic.id, parts.limits.sharedEventBytesMin)
        parts.store.submitRead {
            var update = update
            let members = Result { try update.work()?.shared(from: sharedMin) }
            line.post { [update] in $0.worked(id, update, members) }
        }
    }

    private func worked(_ id: UInt64, _ update: TopicUpdate, _ result: Result<EncodedJSON?, any Error>) {
        guard let topic = topics[id], case .working(let told) = topic.telling else { return }
        topic.telling = topic.key.query != nil && update.window == nil ? .unread : .ready(update.window)
        switch result {
        case .failure(let error): return cancelAll(of: topic, for: error)
        case .success(let members): deliver(members, update, to: topic, after: told)
        }
        if let notes = topic.takePending() {
            if !notes.isEmpty { tell(topic, notes, after: update.version) }
        } else {
            readAnew(topic, .anew, after: update.version)
        }
        if case .working(let told) = topic.telling {
            for connection in topic.waitingConnections { release(connection, by: id, through: told) }
        } else {
            settled(topic)
        }
    }

    /// The live listeners of a topic have been told everything: who waited for that goes on.
    private func settled(_ topic: Topic) {
        let rows = topic.windowRows?.count ?? 0
        topic.windowRows = nil
        for step in topic.takeParked() {
            switch step {
            case .load(let ticket, let wanted):
                guard let listener = holder(of: ticket) else { continue }
                listener.watch?.rows.count += rows
                load(listener, wanted)
            case .join(let ticket, let version):
                if let listener = holder(of: ticket) { join(listener, from: version) }
                topic.loadEnded()
            }
        }
        releaseAll(topic)
    }

    func releaseAll(_ topic: Topic) {
        for connection in topic.waitingConnections { release(connection, by: topic.id) }
        topic.waitingConnections = []
    }

    func release(_ connection: UInt64, by id: UInt64, through version: UInt64? = nil) {
        for answer in heldAnswers.told(connection, by: id, through: version) { answer() }
    }

    /// Hands a notification to the live listeners; those whose sockets are full wait.
    private func deliver(_ members: EncodedJSON?, _ update: TopicUpdate, to topic: Topic, after told: UInt64) {
        topic.told(through: update.version)
        guard let members else { return }
        topic.keep(Topic.Sent(after: told, version: update.version, members: members))
        var full: [Listener] = []
        for listener in topic.live where !notify(listener, members) { full.append(listener) }
        parts.metrics.sentEvents(topic.live.count - full.count, bytes: members.count)
        for listener in full {
            listener.forgetMissed()
            if case .changes(let notes) = update.wanted { listener.miss(notes) } else { listener.missed.addWhole() }
            // What waits is told to the live ones only.
            if let notes = topic.pending { listener.miss(notes) } else { listener.missed.addWhole() }
            waitForDrain(listener)
        }
    }

    func notify(_ listener: Listener, _ members: EncodedJSON) -> Bool {
        listener.connection.notify(
            Messages.Event.method, subscription: listener.opening.subscription, members: members)
    }

    // MARK: Answers

    /// An answer of a write leaves when the events of its connection up to its version are on their way. (Version 0: of
    /// one that was refused.)
    func answer(_ connection: UInt64, _ version: UInt64, _ answer: @escaping @Sendable () -> Void) {
        holdForDoubts(connection, version)
        for id in gathering[connection]?.sorted() ?? [] where version > 0 {
            // Its own writes end its gathering.
            guard let listener = listeners[id], listener.topic.lastChanged >= version else { continue }
            switch listener.state {
            case .gathering:
                guard !listener.missed.isEmpty else { continue }
                heldAnswers.wait(connection, for: id, after: 0)
                load(listener, .missed(listener.missed))
            // What it lacks may be on its way already.
            case .loading: heldAnswers.wait(connection, for: id, after: 0)
            case .live, .waiting, .inDoubt, .ended: break
            }
        }
        if !heldAnswers.keep(answer, of: version, to: connection) { answer() }
    }
}
