import HatoModel
import HatoRPC
import HatoRules
import HatoStorage
import HatoTree
import Logging

extension ListenerRegistry {
    typealias Answer = @Sendable (Result<Messages.Listen.Result, any Error>) -> Void
    typealias Loaded = Result<ListenerReading.Outcome, any Error>

    // MARK: Beginning

    /// Opens a listener, which may read there. The answer goes out before its first event does.
    func open(
        _ opening: Listener.Opening, _ request: Messages.Listen, at view: ReadView, answer: @escaping Answer
    ) {
        do {
            let path = request.path
            guard listeners.count < parts.limits.listenersMax else {
                throw MessagesError.tooManyListeners(max: parts.limits.listenersMax)
            }
            guard names[opening.connection.id]?.count ?? 0 < parts.limits.listenersPerConnectionMax else {
                throw MessagesError.tooManyListeners(max: parts.limits.listenersPerConnectionMax)
            }
            begin(at: view.snapshot)
            let database = try view.database(request.database)
            let key = TopicKey(database: database.id, path: path, query: request.query)
            let listener = Listener(id: nextID(), opening, topic: topic(key, database, at: view.snapshot.version))
            listeners[listener.id] = listener
            remember(opening.connection, opening.subscription, listener.id)
            parts.metrics.listening(listeners.count)
            load(listener, wanted(by: request), answer: answer)
        } catch {
            opening.watch.cancel()
            endIfIdle()
            answer(.failure(error))
        }
    }

    private func wanted(by request: Messages.Listen) -> ListenerReading.Wanted {
        if let since = request.since, request.epoch == parts.store.epoch.description { return .since(since) }
        if let etag = request.etag { return .unlessEtag(etag) }
        return .whole
    }

    /// Groups go on coming here; what was durable before is in the snapshot.
    func begin(at snapshot: any StoreSnapshot) {
        guard current == nil else { return }
        setActive(true)
        current = snapshot
    }

    func endIfIdle() {
        guard listeners.isEmpty, followers.isEmpty else { return }
        setActive(false)
        current = nil
    }

    func nextID() -> UInt64 {
        lastID += 1
        return lastID
    }

    func remember(_ connection: RPCConnection, _ subscription: String, _ id: UInt64) {
        let isNew = names[connection.id] == nil
        names[connection.id, default: [:]][subscription] = id
        guard isNew else { return }
        let post = post
        let connectionID = connection.id
        connection.onClose { post { $0.connectionClosed(connectionID) } }
    }

    private func topic(_ key: TopicKey, _ database: Database, at version: UInt64) -> Topic {
        if let id = topicIDs[key], let topic = topics[id] { return topic }
        let topic = Topic(id: nextID(), key: key, database: database, version: version)
        topics[topic.id] = topic
        topicIDs[key] = topic.id
        tries[key.database, default: ListenerTrie()].insert(topic.id, at: key.path)
        return topic
    }

    // MARK: Bringing up to date

    /// Reads what `listener` lacks as of the newest group, on a reader's thread; `loaded` goes on.
    func load(_ listener: Listener, _ wanted: ListenerReading.Wanted, answer: Answer? = nil) {
        guard let current else { return }
        let topic = listener.topic
        topic.addOther(listener, .loading)
        topic.loadBegan()
        var readsWindow = false
        if topic.key.query != nil, case .none = topic.window {
            readsWindow = true
            topic.window = .loading(after: current.version, pending: [])
        }
        let reading = ListenerReading(
            store: parts.store, limits: parts.limits, topic: topic.id, key: topic.key, database: topic.database,
            snapshot: current,
            wanted: wanted, readsWindow: readsWindow)
        let (post, id) = (post, listener.id)
        parts.store.submitRead {
            let outcome = Result { try reading.read() }
            post { $0.loaded(id, reading, outcome, answer) }
        }
    }

    private func loaded(_ id: UInt64, _ reading: ListenerReading, _ outcome: Loaded, _ answer: Answer?) {
        guard let topic = topics[reading.topic] else {
            answer?(.failure(MessagesError.stopping))
            return
        }
        defer { topic.loadEnded() }
        if reading.readsWindow { windowLoaded(topic, try? outcome.get().window) }
        guard let listener = listeners[id], case .loading = listener.state else {
            answer?(.failure(MessagesError.stopping))
            return
        }
        switch outcome {
        case .success(let outcome):
            // Events first: the connection holds them until the answer leaves, and lets them leave right behind it, before
            // answers to later requests that are ready and wait their turn.
            broughtUpToDate(listener, outcome.members, to: reading.version)
            answer?(.success(result(of: listener, at: reading.version)))
        case .failure(let error):
            if let answer {
                end(listener)
                answer(.failure(error))
            } else {
                cancel(listener, reason: Self.reason(of: error))
            }
        }
    }

    private func result(of listener: Listener, at version: UInt64) -> Messages.Listen.Result {
        var result = Messages.Listen.Result(
            subscription: listener.opening.subscription, version: version, epoch: parts.store.epoch.description)
        let topic = listener.topic
        if let query = topic.key.query,
            !QueryPlan(query, at: topic.key.path, in: topic.database.indexes).isIndexed
        {
            result.warning = .noIndex
        }
        return result
    }

    /// Sends what was read as of `version`, then what the others were sent since; after that it is one of them.
    private func broughtUpToDate(_ listener: Listener, _ members: EncodedJSON?, to version: UInt64) {
        let topic = listener.topic
        if let members {
            guard notify(listener, members) else {
                // What was read is let go, and read again when there is room for it.
                listener.missed.addWhole()
                return waitForDrain(listener)
            }
            parts.metrics.sentEvents(1, bytes: members.count)
            parts.metrics.caughtUp()
        }
        if listener.gathers {
            topic.addOther(listener, .waiting)
            if topic.lastChanged > version {
                scheduleGathered(listener)
            } else {
                listener.missed = MissedChanges(of: topic.key.path)
            }
            return
        }
        // Who listens to a query is told by its window, so there must be one first.
        guard topic.isTold, let sent = topic.sent(after: version) else {
            return load(listener, .missed(listener.missed))
        }
        for next in sent {
            guard notify(listener, next.members) else { return waitForDrain(listener) }
            parts.metrics.sentEvents(1, bytes: next.members.count)
        }
        listener.missed = MissedChanges(of: topic.key.path)
        topic.addLive(listener)
    }

    private func windowLoaded(_ topic: Topic, _ window: QueryWindow?) {
        guard case .loading(let after, let pending) = topic.window else { return }
        guard var window, let pending, let current else {
            topic.window = .none
            return
        }
        do {
            guard !pending.isEmpty else {
                topic.window = .ready(window)
                return
            }
            let reading = NodeReading(topic.database, in: current, bytesMax: parts.limits.responseBytesMax)
            window.plan = QueryPlan(window.query, at: window.path, in: topic.database.indexes)
            let update = try window.apply(pending, reading: reading.runner)
            topic.window = .ready(window)
            let version = topic.lastChanged
            switch update {
            case .nothing: return
            case .fresh:
                topic.keep(
                    Topic.Sent(after: after, version: version, members: try EventMembers.whole(topic.key, reading)))
            case .events(let events):
                topic.keep(
                    Topic.Sent(
                        after: after, version: version, members: EventMembers.encode(version: version, events)))
            }
        } catch {
            topic.window = .none
            cancelAll(of: topic, for: error)
        }
    }

    /// Waits until the socket has room; then what it has missed is read.
    func waitForDrain(_ listener: Listener) {
        parts.metrics.fellBehind()
        listener.topic.addOther(listener, .waiting)
        let (post, id) = (post, listener.id)
        listener.connection.onDrain { post { $0.readMissed(of: id) } }
    }

    /// Gathers changes for a while, then reads what has changed.
    func scheduleGathered(_ listener: Listener) {
        guard !listener.isScheduled else { return }
        listener.isScheduled = true
        let (post, id, milliseconds) = (post, listener.id, listener.opening.coalesceMs)
        Task {
            try? await Task.sleep(for: .milliseconds(milliseconds))
            post { registry in
                registry.listeners[id]?.isScheduled = false
                registry.readMissed(of: id)
            }
        }
    }

    private func readMissed(of id: UInt64) {
        guard let listener = listeners[id], case .waiting = listener.state else { return }
        load(listener, .missed(listener.missed))
    }

    // MARK: Ending

    /// False when the connection has no such listener.
    func unlisten(_ connection: RPCConnection, _ subscription: String) -> Bool {
        guard let id = names[connection.id]?[subscription], let listener = listeners[id] else { return false }
        end(listener)
        return true
    }

    func end(_ listener: Listener) {
        let topic = listener.topic
        topic.remove(listener)
        listener.opening.watch.cancel()
        listeners[listener.id] = nil
        names[listener.connection.id]?[listener.opening.subscription] = nil
        removeIfUnused(topic)
        parts.metrics.listening(listeners.count)
        endIfIdle()
    }

    private func removeIfUnused(_ topic: Topic) {
        guard topic.isUnused else { return }
        topics[topic.id] = nil
        topicIDs[topic.key] = nil
        tries[topic.key.database]?.remove(topic.id, at: topic.key.path)
        if tries[topic.key.database]?.count == 0 { tries[topic.key.database] = nil }
    }

    /// Ends a listener that did not ask for it.
    func cancel(_ listener: Listener, reason: String) {
        end(listener)
        Self.sayFarewell(listener.connection, listener.opening.subscription, reason)
    }

    func cancelAll(of topic: Topic, for error: any Error) {
        logger.warning("listeners cancelled", metadata: ["path": "\(topic.key.path)", "error": "\(error)"])
        for listener in topic.live + Array(topic.others.values) { cancel(listener, reason: Self.reason(of: error)) }
    }

    /// The last word to a subscription: waits for room if there is none, so that it is not lost.
    static func sayFarewell(_ connection: RPCConnection, _ subscription: String, _ reason: String) {
        var writer = JSONWriter()
        writer.member("reason")
        writer.write(reason)
        let sent = connection.notify(
            Messages.Cancelled.method, subscription: subscription, members: EncodedJSON(writer))
        if !sent, !connection.isClosed {
            connection.onDrain { sayFarewell(connection, subscription, reason) }
        }
    }

    private static func reason(of error: any Error) -> String {
        switch error {
        case MessagesError.denied: "permission_denied"
        case TreeError.tooBig: "too_big"
        default: "unavailable"
        }
    }

    func connectionClosed(_ connection: UInt64) {
        for id in names.removeValue(forKey: connection)?.values.sorted() ?? [] {
            if let listener = listeners[id] { end(listener) }
            if let follower = followers[id] { end(follower) }
        }
    }

    // MARK: Rights

    func identityChanged(_ connection: UInt64, _ subscription: String, _ change: RPCIdentityChange) {
        guard let id = names[connection]?[subscription] else { return }
        if let follower = followers[id] { return followerIdentityChanged(follower, change) }
        guard let listener = listeners[id] else { return }
        switch change {
        case .expired: return cancel(listener, reason: "token_expired")
        case .extended(let caller), .replaced(let caller): listener.caller = caller
        }
        judge(listener)
    }

    private func judge(_ listener: Listener) {
        let topic = listener.topic
        guard let current else { return }
        do {
            let judge = RulesJudge(topic.database, reading: StoreTreeReader(current), now: parts.now())
            guard try !judge.mayRead(topic.key.path, topic.key.query, as: listener.caller) else { return }
            cancel(listener, reason: "permission_denied")
        } catch {
            cancel(listener, reason: Self.reason(of: error))
        }
    }

    /// Rules, indexes, or the end of a database: rights are judged again, windows read by the indexes there are now.
    func databaseChanged(_ change: DatabaseChange) {
        for topic in topics.values.filter({ $0.key.database == change.id }).sorted(by: { $0.id < $1.id }) {
            let all = topic.live + Array(topic.others.values)
            guard let database = change.database else {
                for listener in all { cancel(listener, reason: "database_dropped") }
                continue
            }
            topic.database = database
            if case .ready(var window) = topic.window {
                window.plan = QueryPlan(window.query, at: window.path, in: database.indexes)
                topic.window = .ready(window)
            }
            for listener in all { judge(listener) }
        }
        guard change.database == nil else { return }
        for follower in followers.values.filter({ $0.database.id == change.id }) {
            end(follower)
            Self.sayFarewell(follower.connection, follower.subscription, "database_dropped")
        }
    }
}
