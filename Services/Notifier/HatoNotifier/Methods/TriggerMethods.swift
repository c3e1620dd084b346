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
            .init(triggers: try await methods.store.read { try $0.triggers().map(\.trigger) })
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
        let former = try await store.write { transaction in
            var writes = RecordWrites()
            let former = try transaction.record(TriggerRecord.self, TriggerRecord.key(trigger.id))
            if former == nil, try transaction.count(.trigger, upTo: triggersMax) >= triggersMax {
                throw NotifierError.tooManyTriggers(triggersMax)
            }
            var record = TriggerRecord(trigger: trigger, startsAfter: now.version, epoch: now.epoch)
            if let former, former.trigger.database == trigger.database, former.trigger.pattern == trigger.pattern {
                record.startsAfter = former.startsAfter
                record.epoch = former.epoch
            }
            let cursorKey = CursorRecord.key(trigger.database)
            let hasCursor = try transaction.contains(cursorKey)
            let isMoved = former.map { $0.trigger.database != trigger.database } ?? false
            let isDeserted = try isMoved && transaction.isLastTrigger(former)
            writes.put(TriggerRecord.key(trigger.id), record)
            if !hasCursor { writes.put(cursorKey, CursorRecord(version: now.version, epoch: now.epoch)) }
            if isDeserted, let former { writes.delete(CursorRecord.key(former.trigger.database)) }
            try writes.apply(to: transaction)
            return former
        }.outcome
        await feeds.triggersChanged(in: trigger.database)
        if let former, former.trigger.database != trigger.database {
            await feeds.triggersChanged(in: former.trigger.database)
        }
        return .init(created: former == nil)
    }

    func removeTrigger(_ id: String) async throws -> Empty {
        let database = try await store.write { transaction in
            guard let former = try transaction.record(TriggerRecord.self, TriggerRecord.key(id)) else {
                throw NotifierError.triggerNotFound(id)
            }
            let isLast = try transaction.isLastTrigger(former)
            var writes = RecordWrites()
            writes.delete(TriggerRecord.key(id))
            // The next trigger of this database starts at its own now, not here.
            if isLast { writes.delete(CursorRecord.key(former.trigger.database)) }
            try writes.apply(to: transaction)
            return former.trigger.database
        }.outcome
        await feeds?.triggersChanged(in: database)
        return Empty()
    }

    func testTrigger(_ request: Notifier.Triggers.Test) async throws -> Notifier.Triggers.Test.Result {
        let record = try await store.read { try $0.record(TriggerRecord.self, TriggerRecord.key(request.id)) }
        guard let trigger = record?.trigger else { throw NotifierError.triggerNotFound(request.id) }
        let compiled = try CompiledTrigger(trigger, limits: configuration.limits)
        guard case .exact(let parameters) = compiled.pattern.match(request.path), trigger.on.contains(request.type)
        else {
            return .init(matches: false)
        }
        var change = FeedChange(
            pattern: compiled.pattern.description, parameters: [:], path: request.path.text, type: request.type,
            before: request.before, after: request.after, uid: request.uid)
        for parameter in parameters { change.parameters[parameter.name] = parameter.key.text }
        guard compiled.holds(change) else { return .init(matches: false) }
        var keys: [String] = []
        if let path = compiled.recipientsPath(change) {
            guard let messages, let database = DatabaseName(rawValue: trigger.database) else {
                throw NotifierError.noFeed
            }
            keys = try await messages.keys(database, path, within: configuration.limits)
        }
        let now = configuration.time.now()
        let commit = FeedCommit(version: 0, epoch: "", time: now, changes: [change])
        let settings = CompiledTrigger.Settings(
            limits: configuration.limits, timeToLive: configuration.delivery.timeToLive, now: now)
        let uids = compiled.uids(change, keys: keys)
        let new = compiled.notification(for: change, in: commit, to: .uids(uids), settings: settings)
        var result = Notifier.Triggers.Test.Result(matches: true)
        result.params = change.parameters
        result.recipients = uids
        // Without a text nothing is sent.
        result.devices =
            new == nil
            ? 0
            : try await store.read { snapshot in
                try Set(uids).reduce(0) { try $0 + snapshot.devices(of: $1).count { $0.state == .active } }
            }
        result.notification = new?.text
        result.data = new?.data
        result.collapseKey = new?.collapseKey
        return result
    }
}

extension StoreReading {
    /// Whether its database has no other trigger.
    fileprivate func isLastTrigger(_ former: TriggerRecord?) throws -> Bool {
        guard let former else { return false }
        return try !triggers().contains {
            $0.trigger.database == former.trigger.database && $0.trigger.id != former.trigger.id
        }
    }
}
