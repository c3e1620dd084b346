import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Logging

/// Routes commits, responses and the events of connections to everything that listens or follows. Lives on the
/// publisher's thread.
///
/// What a listener is sent is decided by its `ListenerStateMachine`; this carries out what that returns. The parts:
/// `TopicNotifier` sends events to live listeners, `CatchUpReader` reads for those that are behind,
/// `ListenerAuthorisation` authorises them, `FollowerRegistry` has the followers.
///
/// **Of one group.** First the listeners are authorised again whose authorisations its commits touch, in the state
/// after it: a listener that has lost its authorisation sees nothing of the group. Those without a verdict yet wait for
/// it. Then the live listeners of each topic are sent its events, deeper topics first, as long as that is short
/// (`PublisherTurn`); the rest is computed later, in turn by client.
final class ListenerRegistry {
    let parts: ServiceParts
    let line: Publisher.Line
    let notices: ThrottledNotices
    private(set) lazy var notifier = TopicNotifier(self)
    private(set) lazy var catchUps = CatchUpReader(self)
    private(set) lazy var authorisations = ListenerAuthorisation(self)
    private(set) lazy var follows = FollowerRegistry(self)
    /// The state after the newest group; nil as long as there are no listeners and no followers.
    private(set) var current: (any StoreSnapshot)?
    private(set) var topics: [UInt64: Topic] = [:]
    private var topicIDs: [TopicKey: UInt64] = [:]
    private var tries: [DatabaseID: ListenerTrie<UInt64>] = [:]
    private(set) var listeners: [UInt64: Listener] = [:]
    var totals: ListenerTotals
    /// Listeners and followers by connection and subscription.
    private(set) var names: [UInt64: [String: UInt64]] = [:]
    /// Of those that gather or wait for a verdict, and lack something.
    private var responseReports = ResponseReports()
    let budgets: TopicBudgets
    var delayedResponses = DelayedResponses()
    private var lastID: UInt64 = 0

    init(_ parts: ServiceParts, logger: Logger, line: Publisher.Line) {
        self.parts = parts
        notices = ThrottledNotices(logger)
        self.line = line
        totals = ListenerTotals(parts.limits)
        budgets = TopicBudgets(parts.limits)
    }

    var listenerCount: Int { listeners.count }
    var followerCount: Int { follows.count }
    /// What all listeners take in memory.
    var listenerBytes: Int { totals.bytes + authorisations.byteCount }

    func nextID() -> UInt64 {
        lastID += 1
        return lastID
    }

    func topic(of key: TopicKey) -> Topic? { topicIDs[key].flatMap { topics[$0] } }

    /// The listener that something was done for, unless it has ended or another catch-up job of it has begun.
    func holder(of ticket: Listener.Ticket) -> Listener? {
        guard let listener = listeners[ticket.id], listener.machine.job == ticket.job else { return nil }
        return listener
    }

    /// Nothing comes any more.
    func close() {
        for completion in delayedResponses.forgetAll() { completion() }
    }

    /// Records what is not counted as it happens. Looks at every topic and follower: for scrapers.
    func showFigures() {
        let behind = topics.values.reduce(0) { count, topic in
            count + topic.others.values.count { !$0.machine.gathers }
        }
        parts.metrics.listening(
            behind: behind, windows: topics.values.count { $0.key.query != nil }, bytes: listenerBytes)
        follows.showFigures(newest: current?.version ?? 0)
    }

    // MARK: Groups of commits

    func groupBecameDurable(_ group: CommitGroup) {
        // The last listener may have ended before the group came.
        guard let before = current?.version else { return }
        var touched: [UInt64: [TopicNote]] = [:]
        var outdated = OutdatedAuthorisations()
        var changes: [DatabaseChange] = []
        for (index, commit) in group.commits.enumerated() {
            if let change = commit.note as? DatabaseChange {
                let last = changes.last { $0.id == change.id }?.database
                changes.append(change)
                guard hasOtherRules(change, than: last) else { continue }
                outdated.add(authorisations.all(of: change.id), at: index)
                outdated.noteRules(of: change.id, at: index)
            } else if let note = commit.note as? CommitNote, let trie = tries[note.database] {
                for (ids, part) in note.parts(for: trie) { for id in ids { touched[id, default: []].append(part) } }
                outdated.add(authorisations.touched(by: note.changes, in: note.database), at: index)
            }
        }
        current = group.snapshot
        for change in changes { databaseChanged(change) }
        let unsure = authorisations.authorise(outdated, of: group)
        // The last of them may have been cancelled.
        guard !listeners.isEmpty || follows.count > 0 else { return }
        var turn = PublisherTurn(milliseconds: parts.limits.eventsTurnMs)
        for (topic, notes) in inOrder(touched) { notifier.topicChanged(topic, notes, after: before, in: &turn) }
        notifier.beginQueued()
        for authorisation in unsure { authorisations.settle(authorisation) }
        follows.groupBecameDurable(group)
    }

    /// Deeper nodes come before those above them, as apps know it from their own listeners (spec §8.5).
    private func inOrder(_ touched: [UInt64: [TopicNote]]) -> [(Topic, [TopicNote])] {
        let found = touched.compactMap { id, notes in topics[id].map { (id: id, topic: $0, notes: notes) } }
        return found.sorted { left, right in
            let (depth, other) = (left.topic.key.path.depth, right.topic.key.path.depth)
            return depth == other ? left.id < right.id : depth > other
        }.map { ($0.topic, $0.notes) }
    }

    /// Whether listeners must be authorised by other rules; indexes change too.
    ///
    /// - Parameter last: as of the change before; nil: as the listeners know it.
    private func hasOtherRules(_ change: DatabaseChange, than last: Database?) -> Bool {
        guard let new = change.database,
            let old = last ?? topics.values.first(where: { $0.key.database == change.id })?.database
        else { return false }
        return !old.record.rules.hasSameBytes(as: new.record.rules)
    }

    /// Rules, indexes, or the end of a database: windows are read by the indexes there are now.
    private func databaseChanged(_ change: DatabaseChange) {
        for topic in topics.values.filter({ $0.key.database == change.id }).sorted(by: { $0.id < $1.id }) {
            guard let database = change.database else {
                let name = topic.database.name
                for listener in topic.listeners { cancel(listener, .dropped(name)) }
                continue
            }
            topic.database = database
        }
        if change.database == nil { follows.databaseDropped(change.id) }
    }

    // MARK: Beginning

    /// Opens a listener, if the rules let it. The response goes out before its first event does.
    func open(
        _ opening: Listener.Opening, _ request: Messages.Listen, at view: ReadView,
        completion: @escaping Listener.Completion
    ) {
        do {
            try totals.check(opening, siblings: names[opening.connection.id]?.count ?? 0)
            begin(at: view.snapshot)
            let database = try view.database(request.database)
            let query = request.query.flatMap { $0.isDefault ? nil : $0 }
            let wanted = TopicKey(database: database.id, path: request.path, query: query)
            let known = topic(of: wanted)
            try totals.check(opening, to: wanted, known, authorisationBytes: authorisations.byteCount)
            // As the topic has it: a path that many listen to is kept once.
            let key = known?.key ?? wanted
            // By the data of the snapshot it begins with; what comes later finds the listener.
            let authorisation = try authorisations.authorisation(
                to: key, in: database, for: opening.caller, explains: opening.explains)
            let topic = topic(key, database, at: view.snapshot.version)
            let listener = Listener(id: nextID(), opening, topic: topic, etag: request.etag)
            listener.completion = completion
            listener.watch = view.watch
            topic.add(listener)
            listeners[listener.id] = listener
            authorisations.give(authorisation, to: listener)
            totals.add(listener)
            remember(opening.connection, opening.subscription, listener.id)
            parts.metrics.listening(listeners.count)
            begin(listener, request)
        } catch {
            opening.endWatch()
            endIfIdle()
            completion(.failure(error))
        }
    }

    private func begin(_ listener: Listener, _ request: Messages.Listen) {
        guard let current else { return }
        let topic = listener.topic
        topic.keepChanges(after: current.version)
        var since = request.epoch == parts.store.epoch.description ? request.since : nil
        // A version that never was, or of a database before this one, of the same name.
        if let known = since, known > current.version || known < topic.database.record.firstVersion { since = nil }
        let searches =
            since.map {
                $0 < topic.changes?.start ?? 0 && !MissedScan.isTooFar($0, from: current.version, parts.limits)
            } ?? false
        carryOut(
            listener.machine.subscribed(since: since, searches: searches), for: listener)
    }

    /// Groups go on coming here; what was durable before is in the snapshot.
    func begin(at snapshot: any StoreSnapshot) {
        guard current == nil else { return }
        line.setActive(true)
        current = snapshot
    }

    func endIfIdle() {
        guard listeners.isEmpty, follows.count == 0 else { return }
        line.setActive(false)
        current = nil
    }

    func remember(_ connection: any ListenerPeer, _ subscription: String, _ id: UInt64) {
        let isNew = names[connection.id] == nil
        names[connection.id, default: [:]][subscription] = id
        guard isNew else { return }
        let (line, connectionID) = (line, connection.id)
        connection.whenClosed { line.post { $0.connectionClosed(connectionID) } }
    }

    func forget(_ connection: any ListenerPeer, _ subscription: String) {
        names[connection.id]?[subscription] = nil
    }

    private func topic(_ key: TopicKey, _ database: Database, at version: UInt64) -> Topic {
        if let topic = topic(of: key) { return topic }
        let topic = Topic(id: nextID(), key: key, database: database, version: version, budgets)
        topics[topic.id] = topic
        totals.add(topic)
        topicIDs[key] = topic.id
        tries[key.database, default: ListenerTrie()].insert(topic.id, at: key.path)
        return topic
    }

    // MARK: Responses

    /// A response of a write leaves when the events of its connection before it are on their way.
    func respond(_ connection: UInt64, after earlier: EarlierEvents, _ completion: @escaping @Sendable () -> Void) {
        for listener in responseReports.take(connection, for: earlier).compactMap({ listeners[$0] }) {
            let lastChanged = listener.topic.recent.lastChanged
            // What refused the condition is a change of others: the newest that the listener may lack.
            let version = earlier.isRefused ? min(earlier.version, lastChanged) : earlier.version
            let actions = listener.machine.ownResponseBecameDue(
                version, lastChanged: lastChanged, outdatedThrough: listener.authorisation?.outdatedThrough)
            carryOut(actions, for: listener)
        }
        if !delayedResponses.keep(completion, of: earlier.version, to: connection) { completion() }
    }

    func release(_ connection: UInt64, by id: UInt64, through version: UInt64? = nil) {
        for completion in delayedResponses.sent(connection, by: id, through: version) { completion() }
    }

    /// The next response to the listener's connection is reported to it.
    func reportResponses(to listener: Listener) {
        listener.topic.stopAwaiting(listener)
        responseReports.awaitAny(listener.id, of: listener.connection.id)
    }

    /// The next commit that changes its topic is reported to it, and before only a response that refuses a condition.
    func reportRefused(to listener: Listener) {
        responseReports.awaitRefused(listener.id, of: listener.connection.id)
        listener.topic.await(listener)
    }

    /// The next commit that changes its topic is reported to it, and no response before.
    func reportChange(to listener: Listener) {
        responseReports.end(listener.id, of: listener.connection.id)
        listener.topic.await(listener)
    }

    /// How many listeners the next response is reported to, when it refuses no condition.
    func responseReportCount(of connection: UInt64) -> Int { responseReports.count(of: connection) }

    // MARK: Callers

    /// - Parameter work: kept until its listener is authorised as another caller.
    func identityChanged(
        _ connection: UInt64, _ subscription: String, _ change: RPCIdentityChange, _ work: RPCIdentityWork? = nil
    ) {
        guard let id = names[connection]?[subscription] else { return }
        guard let listener = listeners[id] else { return follows.identityChanged(id, change) }
        switch change {
        case .expired: cancel(listener, .expired)
        case .revoked: cancel(listener, .revoked)
        case .extended(let caller), .replaced(let caller):
            listener.caller = caller
            authorisations.callerChanged(of: listener, work)
        }
    }

    // MARK: Ending

    /// False when the connection has no such listener.
    func unlisten(_ connection: any ListenerPeer, _ subscription: String) -> Bool {
        guard let id = names[connection.id]?[subscription], let listener = listeners[id] else { return false }
        carryOut(listener.machine.unlistened(), for: listener)
        return true
    }

    /// False when the connection has no such follower.
    func unfollow(_ connection: any ListenerPeer, _ subscription: String) -> Bool {
        guard let id = names[connection.id]?[subscription] else { return false }
        return follows.unfollow(id)
    }

    func connectionClosed(_ connection: UInt64) {
        for id in names.removeValue(forKey: connection)?.values.sorted() ?? [] {
            if let listener = listeners[id] { carryOut(listener.machine.unlistened(), for: listener) }
            _ = follows.unfollow(id)
        }
        responseReports.forget(connection)
        catchUps.connectionClosed(connection)
        for completion in delayedResponses.forget(connection) { completion() }
    }

    /// Takes a listener out of every table.
    func remove(_ listener: Listener) {
        let topic = listener.topic
        topic.remove(listener)
        catchUps.leave(listener)
        authorisations.take(from: listener)
        listener.opening.endWatch()
        listeners[listener.id] = nil
        totals.remove(listener)
        forget(listener.connection, listener.opening.subscription)
        responseReports.end(listener.id, of: listener.connection.id)
        release(listener.connection.id, by: listener.id)
        removeIfUnused(topic)
        parts.metrics.listening(listeners.count)
        endIfIdle()
    }

    private func removeIfUnused(_ topic: Topic) {
        guard topic.isUnused else { return }
        notifier.releaseAll(topic)
        topic.end()
        topics[topic.id] = nil
        totals.remove(topic)
        topicIDs[topic.key] = nil
        tries[topic.key.database]?.remove(topic.id, at: topic.key.path)
        if tries[topic.key.database]?.count == 0 { tries[topic.key.database] = nil }
    }
}
