import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// Sends the live listeners of topics what commits have changed: an event is written once, and its bytes are shared.
/// What takes long is computed on a reader's thread, from the same snapshot, and sent when it is ready; responses to
/// a connection that listens there wait for it. Lives on the publisher's thread.
final class TopicNotifier {
    private unowned let registry: ListenerRegistry
    private let parts: ServiceParts
    private let line: Publisher.Line
    /// Topics that are computed on readers' threads by short reads, as each is tried first.
    private var shortReadings: ReadingQueue
    /// Those that needed more.
    private var longReadings: ReadingQueue
    /// Topics whose events are short and wait for the next turn of the publisher's thread.
    private var short = TurnQueue<UInt64>()
    private var isTurnPosted = false

    /// Topics that are computed on readers' threads: those that wait for their turns, and those under way.
    private struct ReadingQueue {
        /// Whether they are computed by long reads.
        let isLong: Bool
        let runningMax: Int
        var queue = TurnQueue<UInt64>(runningMax: 1)
        /// How many are under way.
        var running = 0
    }

    init(_ registry: ListenerRegistry) {
        self.registry = registry
        parts = registry.parts
        line = registry.line
        shortReadings = ReadingQueue(isLong: false, runningMax: parts.limits.topicUpdatesMax)
        longReadings = ReadingQueue(isLong: true, runningMax: parts.limits.longTopicUpdatesMax)
    }

    /// - Parameters:
    ///   - before: the version of the group before.
    ///   - turn: what does not fit into it is computed on a reader's thread.
    func topicChanged(_ topic: Topic, _ notes: [TopicNote], after before: UInt64, in turn: inout PublisherTurn) {
        // One that has ended for another topic of the same commits keeps nothing.
        guard let version = notes.last?.version, !topic.isUnused else { return }
        topic.recent.changed(at: version)
        if topic.needsChanges {
            topic.keepChanges(after: before)
            topic.note(notes)
        } else {
            topic.forgetChanges()
        }
        for listener in topic.takeAwaiting() { registry.carryOut(listener.machine.topicChanged(), for: listener) }
        switch topic.events {
        case .unread: return
        case .working: topic.wait(notes)
        case .ready:
            guard topic.needsEvents else {
                // A window without listeners is read anew for the next one.
                if topic.key.query != nil { topic.events = .unread }
                return topic.recent.sent(through: version)
            }
            notify(topic, notes, after: before, in: &turn)
        }
    }

    /// Sends the live listeners the commits up to the newest group; they were sent everything up to `sent`.
    private func notify(_ topic: Topic, _ notes: [TopicNote], after sent: UInt64, in turn: inout PublisherTurn) {
        guard case .ready(let window) = topic.events, var update = update(topic, .changes(notes), window) else {
            return
        }
        guard !update.isLong else { return work(topic, update.queued, after: sent) }
        guard turn.takesOne() else { return work(topic, update.queued, after: sent, isShort: true) }
        do {
            topic.events = .unread  // so that the window is changed in place
            let members = try update.work(meter)?.shared(from: parts.limits.sharedEventBytesMin)
            topic.events = .ready(update.window)
            registry.windowChanged(of: topic)
            deliver(members, update, to: topic, after: sent)
        } catch is ReadingMeter.Exhausted {
            work(topic, update.queued, after: sent)
        } catch {
            topic.events = .ready(update.window)
            registry.cancelAll(of: topic, for: error)
        }
    }

    private func update(_ topic: Topic, _ wanted: TopicUpdate.Wanted, _ window: QueryWindow?) -> TopicUpdate? {
        guard let current = registry.current else { return nil }
        return TopicUpdate(
            key: topic.key, database: topic.database, snapshot: current, bytesMax: parts.limits.responseBytesMax,
            wanted: wanted, window: window)
    }

    /// Reads the window for the first listener of a topic.
    func readWindow(of topic: Topic) {
        guard let current = registry.current else { return }
        work(topic, Topic.Queued(wanted: .window), after: current.version)
        beginQueued()
    }

    // MARK: On readers' threads

    /// Works it out when it is its turn: on a reader's thread (`beginQueued`), or, what is short, on the publisher's in
    /// a later turn. `worked` goes on. Meanwhile responses to those who listen there wait.
    ///
    /// On a reader's thread it is tried as a short read first; when it has to read more it begins again as a long one.
    private func work(_ topic: Topic, _ queued: Topic.Queued, after sent: UInt64, isShort: Bool = false) {
        noteChanges(topic, queued.wanted, after: sent)
        topic.queue(queued, after: sent)
        for listener in topic.live { registry.waitForTopic(listener, after: sent) }
        let client = client(of: topic, queued.wanted)
        if isShort {
            short.append(topic.id, of: client)
            postTurn()
        } else {
            parts.metrics.workedElsewhere()
            if queued.isLong {
                longReadings.queue.append(topic.id, of: client)
            } else {
                shortReadings.queue.append(topic.id, of: client)
            }
        }
    }

    private func postTurn() {
        guard !isTurnPosted, short.count > 0 else { return }
        isTurnPosted = true
        // Behind everything that waits for the thread now.
        line.post { $0.notifier.takeTurn() }
    }

    /// Works out what is short, in turn by client.
    private func takeTurn() {
        isTurnPosted = false
        var turn = PublisherTurn(milliseconds: parts.limits.eventsTurnMs)
        while short.count > 0, turn.takesOne(), let (id, ofClient) = short.takeNext() {
            let start = monotonicNanoseconds()
            defer { short.ended(ofClient, after: nanoseconds(since: start)) }
            guard let topic = registry.topics[id], case .working(let sent) = topic.events,
                let queued = topic.takeQueued(), var update = update(topic, queued.wanted, queued.window)
            else { continue }
            // More may have come meanwhile.
            guard !update.isLong else {
                work(topic, update.queued, after: sent)
                continue
            }
            do {
                let members = try update.work(meter)?.shared(from: parts.limits.sharedEventBytesMin)
                worked(id, update, .success(members))
            } catch is ReadingMeter.Exhausted {
                work(topic, update.queued, after: sent)
            } catch { worked(id, update, .failure(error)) }
        }
        postTurn()
        beginQueued()
    }

    /// What the events of one topic may take on the publisher's thread.
    private var meter: ReadingMeter {
        ReadingMeter(rows: parts.limits.eventRowsMax, bytes: parts.limits.catchUpBytesMax)
    }

    /// Whose turn the work takes: of the clients that listen there, the one for which the least waits. So no client's
    /// events wait behind what only others listen to. A first window is read for the client that asks for it.
    private func client(of topic: Topic, _ wanted: TopicUpdate.Wanted) -> String {
        if case .window = wanted, let asking = topic.windowClient { return asking }
        var (client, least) = ("", Int.max)
        for listener in topic.live {
            let other = registry.totals.client(of: listener)
            let count =
                shortReadings.queue.count(of: other) + longReadings.queue.count(of: other) + short.count(of: other)
            if count < least { (client, least) = (other, count) }
            if least == 0 { break }
        }
        return client
    }

    /// Begins what may be under way, as of the newest group: when each topic knows of all its commits.
    func beginQueued() {
        begin(\.shortReadings)
        begin(\.longReadings)
    }

    private func begin(_ readings: ReferenceWritableKeyPath<TopicNotifier, ReadingQueue>) {
        while self[keyPath: readings].running < self[keyPath: readings].runningMax,
            let (id, turn) = self[keyPath: readings].queue.takeNext()
        {
            guard let topic = registry.topics[id], let queued = topic.takeQueued(),
                var update = update(topic, queued.wanted, queued.window)
            else {
                self[keyPath: readings].queue.ended(turn)
                continue
            }
            if update.hasManyChanges, !self[keyPath: readings].isLong {
                // More have come meanwhile.
                self[keyPath: readings].queue.ended(turn)
                work(topic, update.queued, after: topic.sentVersion)
                continue
            }
            self[keyPath: readings].running += 1
            if let rows = topic.windowRows { update.snapshot = CountedSnapshot(update.snapshot, rows) }
            let (line, limits, isLong) = (line, parts.limits, self[keyPath: readings].isLong)
            // Long ones wait for other long reads as if for one client: few run at a time, clients in turn.
            parts.store.submitRead(of: isLong ? nil : Self.readerName(of: turn.client), isLong: isLong) { [update] in
                var update = update
                let meter =
                    isLong
                    ? nil : ReadingMeter(rows: limits.unreservedReadRowsMax, bytes: limits.catchUpBytesMax)
                let start = monotonicNanoseconds()
                let members = Result { try update.work(meter)?.shared(from: limits.sharedEventBytesMin) }
                let time = nanoseconds(since: start)
                line.post { [update] registry in
                    registry.notifier.worked(id, update, members)
                    registry.notifier.ended(turn, after: time, isLong: isLong)
                }
            }
        }
    }

    /// The name under which the readings for a client's listeners take turns at the store: they delay neither the
    /// requests of the client nor the readings for others.
    private static func readerName(of client: String?) -> String { readerNamePrefix + (client ?? "") }

    /// The beginning of these names.
    static let readerNamePrefix = "topics of "

    private func ended(_ turn: TurnQueue<UInt64>.Turn, after time: Int, isLong: Bool) {
        let readings = isLong ? \TopicNotifier.longReadings : \TopicNotifier.shortReadings
        self[keyPath: readings].running -= 1
        self[keyPath: readings].queue.ended(turn, after: time)
        beginQueued()
    }

    private func worked(_ id: UInt64, _ update: TopicUpdate, _ result: Result<EncodedJSON?, any Error>) {
        guard let topic = registry.topics[id], case .working(let sent) = topic.events else { return }
        if case .failure(is ReadingMeter.Exhausted) = result {
            var queued = update.queued
            queued.isLong = true
            return work(topic, queued, after: sent)
        }
        topic.noteSent(nil)
        topic.events = topic.key.query != nil && update.window == nil ? .unread : .ready(update.window)
        switch result {
        case .failure(let error): return registry.cancelAll(of: topic, for: error)
        case .success(let members):
            registry.windowChanged(of: topic)
            guard !topic.isUnused else { return }
            deliver(members, update, to: topic, after: sent)
        }
        if let notes = topic.takePending() {
            var turn = PublisherTurn(milliseconds: parts.limits.eventsTurnMs)
            if !notes.isEmpty { notify(topic, notes, after: update.version, in: &turn) }
        } else {
            work(topic, Topic.Queued(wanted: .anew), after: update.version)
        }
        if case .working(let sent) = topic.events {
            for connection in topic.waitingConnections { registry.release(connection, by: id, through: sent) }
            stayedBusy(
                topic, Topic.SentState(snapshot: update.snapshot, database: update.database, window: update.window))
        } else {
            settled(topic)
        }
    }

    /// The live listeners were sent everything up to a state, and more is being computed: those that have waited
    /// through this once go on from that state.
    private func stayedBusy(_ topic: Topic, _ sentState: Topic.SentState) {
        topic.noteSent(sentState)
        guard topic.sentState != nil, let newest = registry.current?.version else { return }
        goOn(topic) { listener in
            if listener.machine.mayGoOn(at: sentState.snapshot.version) { return true }
            registry.carryOut(listener.machine.topicStayedBusy(newest: newest), for: listener)
            return false
        }
    }

    /// The live listeners of a topic were sent everything: what waited for that goes on.
    private func settled(_ topic: Topic) {
        goOn(topic) { _ in true }
        topic.windowRows = nil
        releaseAll(topic)
    }

    private func goOn(_ topic: Topic, _ mayGoOn: (Listener) -> Bool) {
        let rows = topic.windowRows?.count ?? 0
        for step in topic.takeWaiting(where: { registry.holder(of: $0.ticket).map(mayGoOn) ?? true }) {
            let listener = registry.holder(of: step.ticket)
            switch step {
            case .load:
                listener?.watch?.rows.count += rows
                if let listener { registry.catchUps.begin(listener) }
            case .join(_, let version):
                if let listener { registry.join(listener, after: version) }
                topic.recent.jobEnded()
            }
        }
    }

    func releaseAll(_ topic: Topic) {
        for connection in topic.waitingConnections { registry.release(connection, by: topic.id) }
        topic.waitingConnections = []
    }

    /// Hands a notification to the live listeners; those whose connections are full fall behind.
    private func deliver(_ members: EncodedJSON?, _ update: TopicUpdate, to topic: Topic, after sent: UInt64) {
        topic.recent.sent(through: update.version)
        guard let members else { return }
        topic.recent.keep(RecentEvents.Sent(after: sent, version: update.version, members: members))
        var full: [Listener] = []
        for listener in topic.live where !registry.notify(listener, members) { full.append(listener) }
        parts.metrics.sentEvents(topic.live.count - full.count, bytes: members.count)
        guard !full.isEmpty else { return }
        noteChanges(topic, update.wanted, after: sent)
        for listener in full { registry.carryOut(listener.machine.eventWasRefused(after: sent), for: listener) }
    }

    /// Keeps the changes of an update for listeners that will lack it, unless they are kept already.
    private func noteChanges(_ topic: Topic, _ wanted: TopicUpdate.Wanted, after sent: UInt64) {
        guard topic.changes == nil else { return }
        topic.keepChanges(after: sent)
        if case .changes(let notes) = wanted { topic.note(notes) }
    }
}
