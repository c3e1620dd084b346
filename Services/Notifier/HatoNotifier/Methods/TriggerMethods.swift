import HatoModel
import HatoRPC
import HatoStorage

/// `notifier.triggers.…`: what writes to the tree notify of.
struct TriggerMethods: NotifierMethods {
    let service: NotifierService

    func add(to router: inout RPCRouter) {
        handle(Notifier.Triggers.Set.self, in: &router) { methods, request, _ in
            try await methods.setTrigger(request.trigger)
        }
        handle(Notifier.Triggers.List.self, in: &router) { methods, _, _ in
            .init(triggers: try await methods.outbox.triggers().map(\.trigger))
        }
        handle(Notifier.Triggers.Remove.self, in: &router) { methods, request, _ in
            try await methods.removeTrigger(request.id)
        }
        handle(Notifier.Triggers.Test.self, in: &router) { methods, request, _ in
            try await methods.testTrigger(request)
        }
    }

    func setTrigger(_ trigger: Notifier.Trigger) async throws -> Notifier.Triggers.Set.Result {
        try checks.trigger(trigger)
        let database: DatabaseName
        do { database = try DatabaseName(trigger.database) } catch {
            throw RPCError.invalidArgument("database", reason: error.reason, error.message)
        }
        let compiled = try CompiledTrigger(trigger, limits: configuration.limits)
        guard let feeds, let messages else { throw NotifierError.noFeed }
        // Asked before the write: what is committed after this is seen by the trigger.
        let now = try await messages.position(of: database, compiled.pattern)
        let triggersMax = configuration.limits.triggersMax
        let (isNew, changed) = try await outbox.change { draft in
            let (rows, key) = (draft.transaction, TriggerRecord.key(trigger.id))
            let isNew = try !rows.contains(key)
            if isNew, try rows.count(.trigger, upTo: triggersMax) >= triggersMax {
                throw NotifierError.tooManyTriggers(triggersMax)
            }
            try rows.checkType(of: trigger)
            try rows.checkCategory(trigger.category)
            var record = TriggerRecord(trigger: trigger, startsAfter: now.version, epoch: now.epoch)
            let former = try rows.readable(TriggerRecord.self, key)
            if let former, former.trigger.database == trigger.database, former.trigger.pattern == trigger.pattern {
                record.startsAfter = former.startsAfter
                record.epoch = former.epoch
            }
            let cursorKey = CursorRecord.key(trigger.database)
            if try !rows.contains(cursorKey) {
                draft.writes.put(cursorKey, CursorRecord(version: now.version, epoch: now.epoch))
            }
            let deserted = try Self.forget(trigger.id, for: trigger.database, in: &draft)
            draft.writes.put(key, record)
            return (isNew, Set(deserted + [trigger.database, former?.trigger.database].compactMap(\.self)))
        }
        for database in changed.sorted() { await feeds.triggersChanged(in: database) }
        return .init(created: isNew)
    }

    func removeTrigger(_ id: String) async throws -> Empty {
        let changed = try await outbox.change { draft in
            let key = TriggerRecord.key(id)
            guard try draft.transaction.contains(key) else { throw NotifierError.triggerNotFound(id) }
            let database = try draft.transaction.readable(TriggerRecord.self, key)?.trigger.database
            let deserted = try Self.forget(id, in: &draft)
            draft.writes.delete(key)
            return Set(deserted + [database].compactMap(\.self))
        }
        for database in changed.sorted() { await feeds?.triggersChanged(in: database) }
        return Empty()
    }

    func testTrigger(_ request: Notifier.Triggers.Test) async throws -> Notifier.Triggers.Test.Result {
        let record = try await store.read { try $0.record(TriggerRecord.self, TriggerRecord.key(request.id)) }
        guard let trigger = record?.trigger else { throw NotifierError.triggerNotFound(request.id) }
        var compiled = try CompiledTrigger(trigger, limits: configuration.limits)
        if let type = trigger.type { compiled.typed = try await store.read { try $0.typedContent(type) } }
        guard case .exact(let parameters) = compiled.pattern.match(request.path),
            trigger.on.contains(where: { $0.includes(request.type) })
        else {
            return .init(matches: false)
        }
        var change = FeedChange(
            pattern: compiled.pattern.description, parameters: [:], path: request.path.text, type: request.type,
            before: request.before, after: request.after, uid: request.uid)
        for parameter in parameters { change.parameters[parameter.name] = parameter.key.text }
        guard compiled.truth(change).fires else { return .init(matches: false) }
        if compiled.namesAuthor, let path = change.authorNamePath {
            change.authorName = try await source(of: trigger).text(path)
        }
        let found = try await recipients(of: compiled, change)
        let now = configuration.time.now()
        let commit = FeedCommit(version: 0, epoch: "", time: now, changes: [change])
        let settings = CompiledTrigger.Settings(
            limits: configuration.limits, timeToLive: configuration.delivery.timeToLive, now: now)
        let filled = compiled.notification(for: change, in: commit, settings: settings)
        let new: NewNotification?
        do { new = try compiled.completed(filled, configuration.limits) } catch {
            throw error.rpcError(compiled.typed?.type ?? Notifier.PayloadType(type: trigger.type ?? ""))
        }
        var result = Notifier.Triggers.Test.Result(matches: true)
        result.params = change.parameters
        result.recipients = found.uids
        // Without a text nothing is sent.
        result.devices = new == nil ? 0 : found.devices
        result.notification = new?.text
        result.data = new?.data
        result.collapseKey = new?.collapseKey
        return result
    }

    /// What the triggers of a database read.
    private func source(of trigger: Notifier.Trigger) throws -> TriggerSource {
        guard let messages, let database = DatabaseName(rawValue: trigger.database) else { throw NotifierError.noFeed }
        return TriggerSource(
            database: database, messages: messages, outbox: outbox, budget: budget, notices: notices)
    }

    /// The users that a trigger notifies of a change, and how many devices; writes nothing.
    private func recipients(
        of trigger: CompiledTrigger, _ change: FeedChange
    ) async throws -> (uids: [String], devices: Int) {
        guard let query = trigger.recipients.query(change) else { return ([], 0) }
        guard query.keys != nil || query.values != nil || query.tokenPath != nil || query.token != nil else {
            return try await devices(of: query.uids, [], without: change.uid)
        }
        let source = try source(of: trigger.trigger)
        var uids: [String] = []
        if let path = query.keys {
            let reservation = try await budget.reads.reserve(budget.recipientsRead)
            defer { withExtendedLifetime(reservation) {} }
            var reading = KeyReading(
                source.messages, source.database, path, configuration.limits, textBytesMax: budget.keysTextMax)
            while let part = try await reading.next() { uids += part }
        }
        uids += try await source.uids(query)
        return try await devices(of: uids, try await source.tokens(query, of: uids), without: change.uid)
    }

    private func devices(
        of uids: [String], _ tokens: [FoundToken], without author: String?
    ) async throws -> (uids: [String], devices: Int) {
        var seen: Set<String> = []
        let uids = uids.filter { !$0.isEmpty && $0 != author && seen.insert($0).inserted }
        let devices = try await store.read { snapshot in
            var devices: Set<String> = []
            for uid in uids {
                for device in try snapshot.devices(of: uid) where device.state == .active {
                    devices.insert(device.device)
                }
            }
            for token in tokens {
                let device = try snapshot.device(at: token.form.addressKey) ?? token.form
                if token.reaches(device), author == nil || device.uid != author { devices.insert(device.device) }
            }
            return devices.count
        }
        return (uids, devices)
    }

    /// A trigger goes, or another one for `database` takes its place: so do the cursors that no trigger needs any more,
    /// since the next trigger of such a database starts at its own now. Returns their databases.
    private static func forget(
        _ id: String, for database: String? = nil, in draft: inout OutboxDraft
    ) throws -> [String] {
        try draft.forgetSetAside(TriggerRecord.key(id))
        let deserted = try draft.transaction.desertedDatabases(besides: id, adding: database)
        for database in deserted {
            try draft.forgetSetAside(CursorRecord.key(database))
            draft.writes.delete(CursorRecord.key(database))
        }
        return deserted
    }
}
