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
            try await TriggerTrial(methods.service).result(of: request)
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
