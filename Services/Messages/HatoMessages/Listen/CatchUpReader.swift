import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// Brings listeners that are behind up to date, by one kind of job: authorise again, wait until the topic is ready,
/// then read on a reader's thread. Listeners of a topic that lack the same share one reading. Lives on the publisher's
/// thread.
final class CatchUpReader {
    typealias Loaded = Result<EncodedJSON?, any Error>

    private struct Search {
        var listener: Listener.Ticket
        var topic: TopicKey
        /// The last version it has.
        var since: UInt64
        var peer: any ListenerPeer
    }

    private unowned let registry: ListenerRegistry
    private let parts: ServiceParts
    private let line: Publisher.Line
    /// Those that listen again from a version, while the commits since are not yet searched.
    private var searches: [Search] = []
    private var isSearching = false

    init(_ registry: ListenerRegistry) {
        self.registry = registry
        parts = registry.parts
        line = registry.line
    }

    // MARK: Listening again

    func search(_ listener: Listener, after version: UInt64) {
        searches.append(
            Search(
                listener: listener.ticket, topic: listener.topic.key, since: version, peer: listener.connection))
        search()
    }

    /// Searches the commits for what changed in their topics, for all that have come since the last search began.
    private func search() {
        guard !isSearching, let current = registry.current else { return }
        let taken = searches.filter { !$0.peer.isClosed }
        searches = []
        guard !taken.isEmpty else { return }
        isSearching = true
        let scan = MissedScan(
            store: parts.store, limits: parts.limits,
            positions: Dictionary(taken.map { ($0.topic, $0.since) }) { min($0, $1) }, end: current.version,
            peers: taken.map(\.peer))
        let line = line
        parts.store.submitRead {
            let result = Result { try scan.changes() }
            line.post { $0.catchUps.searched(taken, result, through: scan.end) }
        }
    }

    private func searched(
        _ taken: [Search], _ result: Result<[TopicKey: ChangedPaths], any Error>, through end: UInt64
    ) {
        isSearching = false
        for (key, changes) in (try? result.get()) ?? [:] { registry.topic(of: key)?.learn(changes, through: end) }
        for one in taken {
            guard let listener = registry.holder(of: one.listener) else { continue }
            switch result {
            case .failure(let error): registry.cancel(listener, .lost(error))
            case .success: registry.carryOut(listener.machine.searched(), for: listener)
            }
        }
        search()
    }

    // MARK: Reading

    /// Begins a catch-up job.
    func begin(_ listener: Listener) {
        guard let current = registry.current else { return }
        let topic = listener.topic
        guard !listener.isInDoubt else { return registry.rights.wereDoubted(listener) }
        switch topic.telling {
        case .ready: break
        // One that gathers is never told with the others.
        case .unread where listener.machine.gathers, .working where listener.machine.gathers: break
        case .unread:
            topic.park(.load(listener.ticket))
            topic.windowRows = listener.watch.map { _ in RowCounter() }
            return registry.notifier.readAnew(topic, .window, after: current.version)
        case .working: return topic.park(.load(listener.ticket))
        }
        let changes = topic.changes ?? ChangedPaths(of: topic.key.path, after: current.version)
        registry.carryOut(listener.machine.topicBecameReady(at: current.version, changes), for: listener)
    }

    /// Reads as of the newest group, or shares what was read as of `oldest` or later; `loaded` goes on.
    func read(_ wanted: ListenerReading.Wanted, from oldest: UInt64, for listener: Listener) {
        guard let current = registry.current else { return }
        let topic = listener.topic
        let oldest = max(topic.recent.lastChanged, oldest)
        if let reading = topic.readings[wanted], reading.version >= oldest {
            reading.listeners.append(listener.ticket)
            return
        }
        if let (members, version) = topic.doneReadings.members(wanted, from: oldest) {
            return caughtUp(listener, members, at: version)
        }
        let rows = listener.watch.map { _ in RowCounter() }
        let reading = TopicReading(id: registry.nextID(), version: current.version, rows: rows)
        reading.listeners.append(listener.ticket)
        topic.readings[wanted] = reading
        topic.openReadings[reading.id] = reading
        topic.recent.jobBegan()
        let snapshot: any StoreSnapshot = if let rows { CountedSnapshot(current, rows) } else { current }
        let job = ListenerReading(
            limits: parts.limits, key: topic.key, database: topic.database, snapshot: snapshot, wanted: wanted,
            missed: missed(wanted, of: topic), window: window(of: topic))
        let (line, topicID, id) = (line, topic.id, reading.id)
        let client = listener.connection.client(speakingAs: listener.caller)
        parts.store.submitRead(of: client) {
            let members = Result { try job.members()?.shared(from: job.limits.sharedEventBytesMin) }
            line.post { $0.catchUps.loaded(topicID, id, job.wanted, members) }
        }
    }

    private func missed(_ wanted: ListenerReading.Wanted, of topic: Topic) -> MissedPaths {
        guard case .changedFrom(let version) = wanted, let changes = topic.changes else { return .everything }
        return changes.paths(from: version)
    }

    private func caughtUp(_ listener: Listener, _ members: EncodedJSON?, at version: UInt64) {
        let actions = listener.machine.caughtUp(
            members, at: version, lastChanged: listener.topic.recent.lastChanged,
            newestHeld: registry.heldAnswers.newest(of: listener.connection.id))
        registry.carryOut(actions, for: listener)
    }

    private func window(of topic: Topic) -> QueryWindow? {
        guard case .ready(var window) = topic.telling else { return nil }
        // Indexes come and go.
        if let query = topic.key.query {
            window?.plan = QueryPlan(query, at: topic.key.path, in: topic.database.indexes)
        }
        return window
    }

    private func loaded(_ topicID: UInt64, _ id: UInt64, _ wanted: ListenerReading.Wanted, _ loaded: Loaded) {
        guard let topic = registry.topics[topicID], let reading = topic.openReadings.removeValue(forKey: id) else {
            return
        }
        if topic.readings[wanted] === reading { topic.readings[wanted] = nil }
        if case .success(let members?) = loaded { topic.doneReadings.add(wanted, members, at: reading.version) }
        for ticket in reading.listeners {
            guard let listener = registry.holder(of: ticket) else { continue }
            listener.watch?.rows.count += reading.rows?.count ?? 0
            switch loaded {
            // Events first: the connection holds them until the answer leaves, and lets them leave right behind it,
            // before answers to later requests that are ready and wait their turn.
            case .success(let members):
                if members != nil { parts.metrics.caughtUp() }
                caughtUp(listener, members, at: reading.version)
            case .failure(let error): registry.cancel(listener, .lost(error))
            }
        }
        topic.recent.jobEnded()
    }
}
