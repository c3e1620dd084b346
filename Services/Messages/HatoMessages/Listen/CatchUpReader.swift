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
        var request: MissedScan.Request
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
        let request = MissedScan.Request(key: listener.topic.key, since: version)
        searches.append(Search(listener: listener.ticket, request: request))
        search()
    }

    /// Searches the commits for what they have missed, for all that have come since the last search began.
    private func search() {
        guard !isSearching, !searches.isEmpty, let current = registry.current else { return }
        isSearching = true
        let taken = searches
        searches = []
        let scan = MissedScan(
            store: parts.store, limits: parts.limits, requests: Set(taken.map(\.request)), until: current.version)
        let line = line
        parts.store.submitRead {
            let result = Result { try scan.missed() }
            line.post { $0.catchUps.searched(taken, result) }
        }
    }

    private func searched(_ taken: [Search], _ result: Result<[MissedScan.Request: MissedChanges], any Error>) {
        isSearching = false
        for one in taken {
            guard let listener = registry.holder(of: one.listener) else { continue }
            switch result {
            case .failure(let error): registry.cancel(listener, .lost(error))
            case .success(let found):
                // What came since it began has been noted as for all that are behind.
                let missed = found[one.request] ?? MissedChanges(of: one.request.key.path)
                registry.carryOut(listener.machine.searched(missed), for: listener)
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
        registry.carryOut(listener.machine.topicBecameReady(at: current.version), for: listener)
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
            return registry.carryOut(listener.machine.caughtUp(members, at: version), for: listener)
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
            window: window(of: topic))
        let (line, topicID, id) = (line, topic.id, reading.id)
        let client = listener.connection.client(speakingAs: listener.caller)
        parts.store.submitRead(of: client) {
            let members = Result { try job.members()?.shared(from: job.limits.sharedEventBytesMin) }
            line.post { $0.catchUps.loaded(topicID, id, job.wanted, members) }
        }
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
                registry.carryOut(listener.machine.caughtUp(members, at: reading.version), for: listener)
            case .failure(let error): registry.cancel(listener, .lost(error))
            }
        }
        topic.recent.jobEnded()
    }
}
