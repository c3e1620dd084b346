import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// Brings listeners that are behind up to date, by one kind of job: authorise again, wait until the topic is ready,
/// then read on a reader's thread. Listeners of a topic that lack the same share one reading. Lives on the publisher's
/// thread.
///
/// Readings wait for their turns (`CatchUpQueue`). One begins with little memory and few rows; when it outgrows
/// these it is dropped, and begins again among the large ones, of which few run at a time. One that no listener waits
/// for any more is dropped, or stops.
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
    /// Those that wait or are under way.
    private var readings: [UInt64: TopicReading] = [:]
    private var queue: CatchUpQueue
    private var largeQueue: CatchUpQueue
    /// By full connection, the listeners that wait until it has drained.
    private var fullListeners: [UInt64: [UInt64]] = [:]
    /// By connection, the readings that wait, and keep the snapshot that they are of.
    private var waitingJobs: [UInt64: Set<UInt64>] = [:]

    /// The bytes that a reading takes at most unless it is a large one.
    private static let smallBytesMax = 64 << 10

    init(_ registry: ListenerRegistry) {
        self.registry = registry
        parts = registry.parts
        line = registry.line
        let limits = parts.limits
        queue = CatchUpQueue(
            .init(
                connection: limits.catchUpsPerConnectionMax, client: limits.catchUpsPerClientMax,
                all: limits.catchUpsMax))
        largeQueue = CatchUpQueue(.init(connection: 1, client: 1, all: limits.largeCatchUpsMax))
    }

    /// How many readings wait or are under way.
    var readingCount: Int { readings.count }

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
        // It takes its turn with the clients.
        parts.store.submitRead(of: "searches", isLong: true) {
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
        guard !listener.isOutdated else { return registry.authorisations.becameOutdated(listener) }
        var version = current.version
        switch topic.events {
        case .ready: break
        // A gathering listener is never sent events with the live ones.
        case .unread where listener.machine.gathers, .working where listener.machine.gathers: break
        case .unread:
            topic.wait(.load(listener.ticket))
            topic.windowRows = listener.watch.map { _ in RowCounter() }
            topic.windowClient = listener.client
            return registry.notifier.readWindow(of: topic)
        case .working(let sent):
            guard topic.sentState != nil, listener.machine.mayGoOn(at: sent) else {
                return topic.wait(.load(listener.ticket))
            }
            version = sent
        }
        let changes = topic.changes ?? ChangedPaths(of: topic.key.path, after: current.version)
        registry.carryOut(listener.machine.topicBecameReady(at: version, changes), for: listener)
    }

    /// Reads as of the newest group or a later one, or shares what is read or was read as of `oldest` or later. While
    /// events are being computed for the live ones: as of what those were sent up to.
    func read(_ wanted: ListenerReading.Wanted, from oldest: UInt64, for listener: Listener) {
        let topic = listener.topic
        let sentState = listener.machine.gathers ? nil : topic.sentState
        let oldest = max(topic.recent.lastChanged, oldest)
        if sentState == nil, let (members, version) = topic.finishedReadings.members(wanted, from: oldest) {
            return caughtUp(listener, members, at: version)
        }
        let isFirst = listener.completion != nil
        if let reading = topic.readings[wanted],
            sentState.map({ reading.isPrepared(at: $0.snapshot.version) })
                ?? reading.serves(from: oldest, isFirst: isFirst)
        {
            reading.add(listener)
            // It begins as soon as one of the connections may be read for.
            if !reading.hasBegun { enqueue(reading, for: listener.connection, of: listener.client) }
        } else {
            let rows = listener.watch.map { _ in RowCounter() }
            let reading = TopicReading(id: registry.nextID(), topic, wanted, rows: rows)
            if isFirst || sentState != nil { prepare(reading, at: sentState, for: listener.connection.id) }
            reading.add(listener)
            topic.readings[wanted] = reading
            readings[reading.id] = reading
            enqueue(reading, for: listener.connection, of: listener.client)
        }
        beginReadings()
    }

    private func enqueue(_ reading: TopicReading, for connection: any ListenerPeer, of client: String) {
        if reading.isLarge {
            largeQueue.add(reading.id, for: connection.id, of: client)
        } else {
            queue.add(reading.id, for: connection.id, of: client)
        }
    }

    /// Begins the readings whose turn it is.
    private func beginReadings() {
        while let next = queue.takeNext() {
            if !begin(next.reading, isLarge: false, next.connection, next.client) { queue.ended(next.connection) }
        }
        while let next = largeQueue.takeNext() {
            if !begin(next.reading, isLarge: true, next.connection, next.client) { largeQueue.ended(next.connection) }
        }
    }

    /// False when nothing is to be read any more.
    private func begin(_ id: UInt64, isLarge: Bool, _ connection: UInt64, _ client: String) -> Bool {
        guard let reading = readings[id], !reading.hasBegun, reading.isLarge == isLarge else { return false }
        if reading.job == nil { prepare(reading) }
        guard var job = reading.job else { return false }
        reading.hasBegun = true
        stopWaiting(reading)
        if isLarge {
            job.bytesMax = parts.limits.responseBytesMax
        } else {
            job.limit(to: Self.smallBytesMax, rowsMax: parts.limits.unreservedReadRowsMax)
        }
        let line = line
        parts.store.submitRead(of: client, isLong: isLarge) { [job] in
            let members = Result { try job.members()?.shared(from: job.limits.sharedEventBytesMin) }
            line.post { $0.catchUps.loaded(id, connection, members) }
        }
        return true
    }

    /// What it reads is the state after the newest group, or `sentState`.
    private func prepare(_ reading: TopicReading, at sentState: Topic.SentState? = nil) {
        guard let current = registry.current else { return }
        let topic = reading.topic
        let database = sentState?.database ?? topic.database
        var snapshot: any StoreSnapshot = OpenConnectionSnapshot(sentState?.snapshot ?? current, reading.waiters)
        if let rows = reading.rows { snapshot = CountedSnapshot(snapshot, rows) }
        reading.prepare(
            ListenerReading(
                limits: parts.limits, key: topic.key, database: database, snapshot: snapshot,
                waiters: reading.waiters, wanted: reading.wanted, missed: missed(reading.wanted, of: topic),
                window: window(of: topic, sentState, database), bytesMax: Self.smallBytesMax))
    }

    private func missed(_ wanted: ListenerReading.Wanted, of topic: Topic) -> MissedPaths {
        guard case .changedFrom(let version) = wanted, let changes = topic.changes else { return .everything }
        return changes.paths(from: version)
    }

    private func caughtUp(_ listener: Listener, _ members: EncodedJSON?, at version: UInt64) {
        let actions = listener.machine.caughtUp(
            members, at: version, lastChanged: listener.topic.recent.lastChanged,
            newestHeld: registry.delayedResponses.newest(of: listener.connection.id))
        registry.carryOut(actions, for: listener)
    }

    private func window(of topic: Topic, _ sentState: Topic.SentState?, _ database: Database) -> QueryWindow? {
        var window = sentState?.window
        if sentState == nil, case .ready(let known) = topic.events { window = known }
        // Indexes come and go.
        if let query = topic.key.query { window?.plan = QueryPlan(query, at: topic.key.path, in: database.indexes) }
        return window
    }

    /// - Parameter connection: for which it has begun.
    private func loaded(_ id: UInt64, _ connection: UInt64, _ loaded: Loaded) {
        guard let reading = readings[id], let version = reading.job?.snapshot.version else { return }
        if !reading.isLarge { queue.ended(connection) } else { largeQueue.ended(connection) }
        defer { beginReadings() }
        if case .failure(TreeError.tooBig) = loaded, !reading.isLarge, !reading.waiters.isClosed,
            parts.limits.responseBytesMax > Self.smallBytesMax
        {
            return outgrew(reading)
        }
        readings[id] = nil
        let topic = reading.topic
        if topic.readings[reading.wanted] === reading { topic.readings[reading.wanted] = nil }
        if case .success(let members?) = loaded { topic.finishedReadings.add(reading.wanted, members, at: version) }
        for ticket in reading.listeners {
            guard let listener = registry.holder(of: ticket) else { continue }
            listener.reading = nil
            listener.watch?.rows.count += reading.rows?.count ?? 0
            switch loaded {
            // Events first: the connection holds them until the response leaves, and lets them leave right after it,
            // before responses to later requests that are ready and wait their turn.
            case .success(let members):
                if members != nil { parts.metrics.caughtUp() }
                caughtUp(listener, members, at: version)
            case .failure(let error): registry.cancel(listener, .lost(error))
            }
        }
        reading.dropJob()
    }

    /// What is read for a listener is void.
    func leave(_ listener: Listener) {
        guard let reading = listener.reading else { return }
        reading.leave(listener)
        guard reading.waiters.isClosed, !reading.hasBegun else { return }
        readings[reading.id] = nil
        stopWaiting(reading)
        reading.dropJob()
    }

    /// It begins again when it is its turn among the large ones.
    private func outgrew(_ reading: TopicReading) {
        reading.hasBegun = false
        reading.isLarge = true
        var connections: Set<UInt64> = []
        for listener in reading.listeners.compactMap({ registry.holder(of: $0) })
        where connections.insert(listener.connection.id).inserted {
            enqueue(reading, for: listener.connection, of: listener.client)
        }
    }

    // MARK: Full connections

    /// A connection was too full for an event of a listener: it is read for when it has drained, in turn with others.
    func waitForDrain(_ listener: Listener) {
        parts.metrics.fellBehind()
        let (line, connection) = (line, listener.connection.id)
        guard fullListeners[connection]?.append(listener.id) == nil else { return }
        fullListeners[connection] = [listener.id]
        // A peer that does not read keeps no snapshots.
        for reading in (waitingJobs.removeValue(forKey: connection) ?? []).compactMap({ readings[$0] })
        where !reading.hasBegun && !reading.isShared { reading.dropJob() }
        queue.filled(connection)
        largeQueue.filled(connection)
        listener.connection.onDrain { line.post { $0.catchUps.drained(connection) } }
    }

    /// The first event of a listener is as of its request, unless its connection is full.
    private func prepare(_ reading: TopicReading, at sentState: Topic.SentState?, for connection: UInt64) {
        guard fullListeners[connection] == nil else { return }
        prepare(reading, at: sentState)
        reading.requester = connection
        waitingJobs[connection, default: []].insert(reading.id)
    }

    private func stopWaiting(_ reading: TopicReading) {
        guard let connection = reading.requester else { return }
        waitingJobs[connection]?.remove(reading.id)
        if waitingJobs[connection]?.isEmpty == true { waitingJobs[connection] = nil }
    }

    private func drained(_ connection: UInt64) {
        guard let ids = fullListeners.removeValue(forKey: connection) else { return }
        queue.drained(connection)
        largeQueue.drained(connection)
        for listener in ids.compactMap({ registry.listeners[$0] }) {
            registry.carryOut(listener.machine.drained(), for: listener)
        }
        beginReadings()
    }

    func connectionClosed(_ connection: UInt64) {
        fullListeners[connection] = nil
        waitingJobs[connection] = nil
        queue.closed(connection)
        largeQueue.closed(connection)
    }
}
