import HatoModel
import HatoRPC
import HatoRules
import HatoStorage
import HatoTree

// Who may read: asked when a listener begins and when what the answer rests on has changed, once for all listeners of
// the same caller to the same topic.

extension ListenerRegistry {
    /// How often rights are judged that rest on the time.
    private static let timedEveryMs = 1_000

    /// The right of a caller to listen to a topic; nil for an administrator, who needs none.
    ///
    /// - Throws: `MessagesError.denied`.
    func right(to key: TopicKey, in database: Database, for caller: Caller, explains: Bool) throws -> ReadRight? {
        guard !caller.isAdministrator, let current else { return nil }
        let rightKey = ReadRight.Key(topic: key, caller: caller)
        let known = rights[rightKey]
        if let known, !known.isTimed, !known.isInDoubt { return known }
        parts.metrics.judgedRight()
        let judge = RulesJudge(
            database, reading: StoreTreeReader(current), now: parts.now(), explains: explains)
        let reads = try judge.reads(behind: key.path, key.query, by: caller)
        let right = known ?? ReadRight(id: nextID(), key: rightKey)
        rights.add(right)
        rights.set(reads, of: right)
        if right.isTimed { watchTime() }
        if right.isInDoubt { settle(right) }
        return right
    }

    func give(_ right: ReadRight?, to listener: Listener) {
        // Taking the right of the only one who lives by it ends it.
        guard listener.right !== right else { return }
        takeRight(of: listener)
        listener.right = right
        right?.listeners[listener.id] = listener
    }

    func takeRight(of listener: Listener) {
        guard let right = listener.right else { return }
        listener.right = nil
        right.listeners[listener.id] = nil
        if right.listeners.isEmpty { rights.remove(right) }
    }

    /// Cancels the listeners of a right that is lost; false then.
    @discardableResult
    func judge(_ right: ReadRight) -> Bool {
        guard let current, let database = topicIDs[right.key.topic].flatMap({ topics[$0] })?.database else {
            return false
        }
        parts.metrics.judgedRight()
        do {
            let judge = RulesJudge(database, reading: StoreTreeReader(current), now: parts.now())
            let reads = try judge.reads(behind: right.key.topic.path, right.key.topic.query, by: right.key.caller)
            rights.set(reads, of: right)
            if right.isTimed { watchTime() }
            return true
        } catch {
            for listener in right.listeners.values.sorted(by: { $0.id < $1.id }) { cancel(listener, .lost(error)) }
            return false
        }
    }

    // MARK: Time

    private func watchTime() {
        guard !isTiming else { return }
        isTiming = true
        line.postLater(Self.timedEveryMs) { registry in
            let rights = registry.rights.allTimed
            registry.judgeTimed(rights[...])
        }
    }

    private func judgeTimed(_ ids: ArraySlice<UInt64>) {
        var rest = ids
        var turn = JudgingTurn(parts.limits)
        while let id = rest.first, turn.takesOne() {
            rest.removeFirst()
            // One in doubt waits for its turn already.
            if let right = rights[id], right.isTimed, !right.isInDoubt { judge(right) }
        }
        if !rest.isEmpty { return line.post { [rest] in $0.judgeTimed(rest) } }
        isTiming = false
        if !rights.allTimed.isEmpty { watchTime() }
    }

    // MARK: Callers

    func identityChanged(_ connection: UInt64, _ subscription: String, _ change: RPCIdentityChange) {
        guard let id = names[connection]?[subscription] else { return }
        if let follower = followers[id] { return followerIdentityChanged(follower, change) }
        guard let listener = listeners[id] else { return }
        switch change {
        case .expired: return cancel(listener, .expired)
        case .extended(let caller), .replaced(let caller): listener.caller = caller
        }
        do {
            let topic = listener.topic
            give(
                try right(to: topic.key, in: topic.database, for: listener.caller, explains: false), to: listener)
            // The right it had may have been in doubt; this one is in none.
            resume(listener)
        } catch {
            cancel(listener, .lost(error))
        }
    }

    // MARK: Databases

    /// Whether rights must be judged by other rules; indexes change too.
    ///
    /// - Parameter last: as of the change before; nil: as the listeners know it.
    func hasOtherRules(_ change: DatabaseChange, than last: Database?) -> Bool {
        guard let new = change.database,
            let old = last ?? topics.values.first(where: { $0.key.database == change.id })?.database
        else { return false }
        return !old.record.rules.hasSameBytes(as: new.record.rules)
    }

    /// Rules, indexes, or the end of a database: windows are read by the indexes there are now.
    func databaseChanged(_ change: DatabaseChange) {
        for topic in topics.values.filter({ $0.key.database == change.id }).sorted(by: { $0.id < $1.id }) {
            guard let database = change.database else {
                let name = topic.database.name
                for listener in topic.listeners { cancel(listener, .dropped(name)) }
                continue
            }
            topic.database = database
        }
        guard change.database == nil else { return }
        for follower in followers.values.filter({ $0.database.id == change.id }) {
            end(follower)
            Self.sayFarewell(follower.connection, follower.subscription, "database_dropped")
        }
    }
}
