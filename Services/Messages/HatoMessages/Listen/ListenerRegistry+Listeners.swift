import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Logging

extension ListenerRegistry {
    typealias Loaded = Result<EncodedJSON?, any Error>

    // MARK: Beginning

    /// Opens a listener, if the rules let it. The answer goes out before its first event does.
    func open(
        _ opening: Listener.Opening, _ request: Messages.Listen, at view: ReadView, answer: @escaping Listener.Answer
    ) {
        do {
            try checkCounts(opening)
            begin(at: view.snapshot)
            let database = try view.database(request.database)
            let query = request.query.flatMap { $0.isDefault ? nil : $0 }
            let key = TopicKey(database: database.id, path: request.path, query: query)
            // By the data of the snapshot it begins with; what comes later finds the listener.
            let right = try right(to: key, in: database, for: opening.caller, explains: opening.explains)
            let listener = Listener(id: nextID(), opening, topic: topic(key, database, at: view.snapshot.version))
            listener.answer = answer
            listener.watch = view.watch
            listeners[listener.id] = listener
            if let client = opening.client { clients[client, default: 0] += 1 }
            give(right, to: listener)
            if listener.gathers { gathering[opening.connection.id, default: []].insert(listener.id) }
            remember(opening.connection, opening.subscription, listener.id)
            parts.metrics.listening(listeners.count)
            begin(listener, request)
        } catch {
            opening.endWatch()
            endIfIdle()
            answer(.failure(error))
        }
    }

    private func checkCounts(_ opening: Listener.Opening) throws(MessagesError) {
        let limits = parts.limits
        guard listeners.count < limits.listenersMax else {
            throw .tooManyListeners(max: limits.listenersMax, of: .service)
        }
        guard names[opening.connection.id]?.count ?? 0 < limits.listenersPerConnectionMax else {
            throw .tooManyListeners(max: limits.listenersPerConnectionMax, of: .connection)
        }
        if let client = opening.client, clients[client, default: 0] >= limits.listenersPerClientMax {
            throw .tooManyListeners(max: limits.listenersPerClientMax, of: .client)
        }
    }

    private func begin(_ listener: Listener, _ request: Messages.Listen) {
        let first = request.etag.map { ListenerReading.Wanted.unlessEtag($0) } ?? .whole
        guard let since = request.since, request.epoch == parts.store.epoch.description, let current,
            // Else it was a database before this one, of the same name, that the listener knows.
            since >= listener.topic.database.record.firstVersion
        else { return load(listener, first) }
        listener.since = min(since, current.version)
        guard !MissedScan.isTooFar(since, from: current.version, parts.limits) else { return load(listener, first) }
        listener.topic.addOther(listener, .loading)
        resuming.append(
            Resuming(
                listener: listener.ticket, request: MissedScan.Request(key: listener.topic.key, since: since),
                fallback: first))
        scan()
    }

    /// Groups go on coming here; what was durable before is in the snapshot.
    func begin(at snapshot: any StoreSnapshot) {
        guard current == nil else { return }
        line.setActive(true)
        current = snapshot
    }

    func endIfIdle() {
        guard listeners.isEmpty, followers.isEmpty else { return }
        line.setActive(false)
        current = nil
    }

    func nextID() -> UInt64 {
        lastID += 1
        return lastID
    }

    func remember(_ connection: any ListenerPeer, _ subscription: String, _ id: UInt64) {
        let isNew = names[connection.id] == nil
        names[connection.id, default: [:]][subscription] = id
        guard isNew else { return }
        let (line, connectionID) = (line, connection.id)
        connection.whenClosed { line.post { $0.connectionClosed(connectionID) } }
    }

    private func topic(_ key: TopicKey, _ database: Database, at version: UInt64) -> Topic {
        if let id = topicIDs[key], let topic = topics[id] { return topic }
        let topic = Topic(id: nextID(), key: key, database: database, version: version)
        topics[topic.id] = topic
        topicIDs[key] = topic.id
        tries[key.database, default: ListenerTrie()].insert(topic.id, at: key.path)
        return topic
    }

    // MARK: Listening again

    /// Searches the commits for what they have missed, for all that have come since the last search began.
    private func scan() {
        guard !isScanning, !resuming.isEmpty, let current else { return }
        isScanning = true
        let taken = resuming
        resuming = []
        let scan = MissedScan(
            store: parts.store, limits: parts.limits, requests: Set(taken.map(\.request)), until: current.version)
        let line = line
        parts.store.submitRead {
            let result = Result { try scan.missed() }
            line.post { $0.scanned(taken, result) }
        }
    }

    private func scanned(_ taken: [Resuming], _ result: Result<[MissedScan.Request: MissedChanges], any Error>) {
        isScanning = false
        for one in taken {
            guard let listener = holder(of: one.listener) else { continue }
            switch result {
            case .failure(let error): cancel(listener, .lost(error))
            case .success(let found):
                // What came since it began has been gathered as for everybody who is not live.
                if let missed = found[one.request] { listener.missed.formUnion(missed) }
                load(listener, listener.missed.isWhole ? one.fallback : .missed(listener.missed))
            }
        }
        scan()
    }

    // MARK: Bringing up to date

    /// The listener that something was done for, unless it has ended or was in doubt since.
    func holder(of ticket: Listener.Ticket) -> Listener? {
        guard let listener = listeners[ticket.id], listener.doubts == ticket.doubts else { return nil }
        return listener
    }

    /// Reads what `listener` lacks as of the newest group, on a reader's thread; `loaded` goes on.
    func load(_ listener: Listener, _ wanted: ListenerReading.Wanted) {
        // It may have ended while it was to be read for.
        guard let current, listeners[listener.id] === listener else { return }
        // Its socket has room again, and its right is in doubt since.
        guard !listener.isInDoubt else { return suspend(listener) }
        let topic = listener.topic
        topic.addOther(listener, .loading)
        var window: QueryWindow?
        switch topic.telling {
        case .ready(let known):
            window = known
            // Indexes come and go.
            if let query = topic.key.query {
                window?.plan = QueryPlan(query, at: topic.key.path, in: topic.database.indexes)
            }
        // Who gathers is never told with the others.
        case .unread where listener.gathers, .working where listener.gathers: break
        case .unread:
            topic.park(.load(listener.ticket, wanted))
            topic.windowRows = listener.watch.map { _ in RowCounter() }
            return readAnew(topic, .window, after: current.version)
        case .working: return topic.park(.load(listener.ticket, wanted))
        }
        var wanted = wanted
        if case .missed(var missed) = wanted {
            // More may have come while it was parked.
            missed.formUnion(listener.missed)
            wanted = .missed(missed)
            if missed.isEmpty { return arrived(listener, nil, at: current.version) }
            if missed.isWhole || topic.key.query != nil { wanted = .whole }
        }
        listener.forgetMissed()
        let oldest = max(topic.lastChanged, listener.since)
        if let reading = topic.readings[wanted], reading.version >= oldest {
            reading.listeners.append(listener.ticket)
            return
        }
        if let (members, version) = topic.doneReadings.members(wanted, from: oldest) {
            return arrived(listener, members, at: version)
        }
        let rows = listener.watch.map { _ in RowCounter() }
        let reading = TopicReading(id: nextID(), version: current.version, rows: rows)
        reading.listeners.append(listener.ticket)
        topic.readings[wanted] = reading
        topic.openReadings[reading.id] = reading
        topic.loadBegan()
        let snapshot: any StoreSnapshot = if let rows { CountedSnapshot(current, rows) } else { current }
        let job = ListenerReading(
            limits: parts.limits, key: topic.key, database: topic.database, snapshot: snapshot, wanted: wanted,
            window: window)
        let (line, topicID, id) = (line, topic.id, reading.id)
        let client = listener.connection.client(speakingAs: listener.caller)
        parts.store.submitRead(of: client) {
            let members = Result { try job.members()?.shared(from: job.limits.sharedEventBytesMin) }
            line.post { $0.loaded(topicID, id, job.wanted, members) }
        }
    }

    private func loaded(_ topicID: UInt64, _ id: UInt64, _ wanted: ListenerReading.Wanted, _ loaded: Loaded) {
        guard let topic = topics[topicID], let reading = topic.openReadings.removeValue(forKey: id) else { return }
        if topic.readings[wanted] === reading { topic.readings[wanted] = nil }
        if case .success(let members?) = loaded { topic.doneReadings.add(wanted, members, at: reading.version) }
        for ticket in reading.listeners {
            guard let listener = holder(of: ticket), case .loading = listener.state else { continue }
            listener.watch?.rows.count += reading.rows?.count ?? 0
            switch loaded {
            // Events first: the connection holds them until the answer leaves, and lets them leave right behind it,
            // before answers to later requests that are ready and wait their turn.
            case .success(let members): arrived(listener, members, at: reading.version)
            case .failure(let error): cancel(listener, .lost(error))
            }
        }
        topic.loadEnded()
    }

    /// Sends what was read as of `version`.
    private func arrived(_ listener: Listener, _ members: EncodedJSON?, at version: UInt64) {
        if let members {
            listener.hasNews = true
            guard notify(listener, members) else {
                // What was read is let go, and read again when there is room for it.
                listener.missed.addWhole()
                opened(listener, at: version)
                return waitForDrain(listener)
            }
            parts.metrics.sentEvents(1, bytes: members.count)
            parts.metrics.caughtUp()
        }
        if listener.gathers { gather(listener, from: version) } else { join(listener, from: version) }
    }

    /// Has been sent what was there at `version`, and gathers what comes.
    private func gather(_ listener: Listener, from version: UInt64) {
        let connection = listener.connection.id
        opened(listener, at: version)
        release(connection, by: listener.id, through: version)
        if heldAnswers.hasAnswers(to: connection), !listener.missed.isEmpty {
            // Answers wait for more that it wrote itself.
            return load(listener, .missed(listener.missed))
        }
        listener.topic.addOther(listener, .gathering)
        if !listener.missed.isEmpty { scheduleGathered(listener) }
        release(connection, by: listener.id)
    }

    /// Sends what the others were sent since `version`; after that it is one of them.
    func join(_ listener: Listener, from version: UInt64) {
        let topic = listener.topic
        guard case .ready = topic.telling else { return topic.park(.join(listener.ticket, version)) }
        if listener.mustReadAgain {
            listener.mustReadAgain = false
            return load(listener, .missed(listener.missed))
        }
        guard let sent = topic.sent(after: version) else { return load(listener, .missed(listener.missed)) }
        for next in sent {
            guard notify(listener, next.members) else {
                opened(listener, at: version)
                return waitForDrain(listener)
            }
            parts.metrics.sentEvents(1, bytes: next.members.count)
        }
        listener.forgetMissed()
        topic.addLive(listener)
        opened(listener, at: version)
        release(listener.connection.id, by: listener.id)
    }

    /// Answers the request that opened it, if that still waits.
    private func opened(_ listener: Listener, at version: UInt64) {
        guard let answer = listener.answer else { return }
        listener.answer = nil
        listener.watch = nil
        var result = Messages.Listen.Result(
            subscription: listener.opening.subscription, version: version, epoch: parts.store.epoch.description)
        if !listener.hasNews { result.unchanged = true }
        let topic = listener.topic
        if let query = topic.key.query,
            !QueryPlan(query, at: topic.key.path, in: topic.database.indexes).isIndexed
        {
            result.warning = .noIndex
        }
        answer(.success(result))
    }

    /// Waits until the socket has room; then what it has missed is read.
    func waitForDrain(_ listener: Listener) {
        listener.topic.addOther(listener, .waiting)
        release(listener.connection.id, by: listener.id)
        parts.metrics.fellBehind()
        let (line, id) = (line, listener.id)
        listener.connection.onDrain {
            line.post { registry in
                guard let listener = registry.listeners[id], case .waiting = listener.state else { return }
                registry.load(listener, .missed(listener.missed))
            }
        }
    }

    /// Gathers changes for a while, then reads what has changed.
    func scheduleGathered(_ listener: Listener) {
        guard !listener.isScheduled else { return }
        listener.isScheduled = true
        let id = listener.id
        line.postLater(listener.opening.coalesceMs) { registry in
            guard let listener = registry.listeners[id] else { return }
            listener.isScheduled = false
            guard case .gathering = listener.state, !listener.missed.isEmpty else { return }
            registry.load(listener, .missed(listener.missed))
        }
    }

    // MARK: Ending

    /// False when the connection has no such listener.
    func unlisten(_ connection: any ListenerPeer, _ subscription: String) -> Bool {
        guard let id = names[connection.id]?[subscription], let listener = listeners[id] else { return false }
        end(listener)
        return true
    }

    func end(_ listener: Listener) {
        let topic = listener.topic
        topic.remove(listener)
        takeRight(of: listener)
        listener.opening.endWatch()
        listeners[listener.id] = nil
        if let client = listener.opening.client, let count = clients[client] {
            clients[client] = count > 1 ? count - 1 : nil
        }
        let connection = listener.connection.id
        names[connection]?[listener.opening.subscription] = nil
        gathering[connection]?.remove(listener.id)
        leaveDoubt(listener)
        release(connection, by: listener.id)
        removeIfUnused(topic)
        parts.metrics.listening(listeners.count)
        endIfIdle()
        if let answer = listener.answer {
            listener.answer = nil
            answer(.failure(MessagesError.stopping))
        }
    }

    private func removeIfUnused(_ topic: Topic) {
        guard topic.isUnused else { return }
        releaseAll(topic)
        topics[topic.id] = nil
        topicIDs[topic.key] = nil
        tries[topic.key.database]?.remove(topic.id, at: topic.key.path)
        if tries[topic.key.database]?.count == 0 { tries[topic.key.database] = nil }
    }

    /// Ends a listener that did not ask for it.
    func cancel(_ listener: Listener, _ cancellation: Listener.Cancellation) {
        if let answer = listener.answer {
            // It never was there.
            listener.answer = nil
            answer(.failure(cancellation.error))
        } else {
            Self.sayFarewell(listener.connection, listener.opening.subscription, cancellation.reason)
        }
        end(listener)
    }

    func cancelAll(of topic: Topic, for error: any Error) {
        logger.warning("listeners cancelled", metadata: ["path": "\(topic.key.path)", "error": "\(error)"])
        for listener in topic.listeners { cancel(listener, .lost(error)) }
    }

    /// The last word to a subscription: waits for room if there is none, so that it is not lost.
    static func sayFarewell(_ connection: any ListenerPeer, _ subscription: String, _ reason: String) {
        var writer = JSONWriter()
        writer.member("reason")
        writer.write(reason)
        let sent = connection.notify(
            Messages.Cancelled.method, subscription: subscription, members: EncodedJSON(writer))
        if !sent, !connection.isClosed {
            connection.onDrain { sayFarewell(connection, subscription, reason) }
        }
    }

    func connectionClosed(_ connection: UInt64) {
        for id in names.removeValue(forKey: connection)?.values.sorted() ?? [] {
            if let listener = listeners[id] { end(listener) }
            if let follower = followers[id] { end(follower) }
        }
        gathering[connection] = nil
        for answer in heldAnswers.forget(connection) { answer() }
    }
}
