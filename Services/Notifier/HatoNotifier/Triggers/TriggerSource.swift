import HatoModel
import HatoRPC
import HatoRules
import HatoStorage
import Logging

/// What the triggers of one database read besides their changes, and what they say in the log.
struct TriggerSource: Sendable {
    let database: DatabaseName
    let messages: MessagesClient
    let outbox: Outbox
    let budget: TriggerBudget
    /// Notices that any user with write access can cause.
    let notices: ThrottledNotices

    // MARK: Recipients

    /// A list that was read since the change of the firing came.
    func list(_ wanted: RecipientLists.Source, for firing: Firing) -> RecipientList? {
        budget.lists.list(RecipientLists.Key(database: database, source: wanted), after: firing.time)
    }

    /// Reads the recipients and their devices.
    func read(_ wanted: RecipientLists.Source, _ firing: Firing) async throws -> RecipientList {
        let reservation = try await budget.reads.reserve(budget.recipientsRead)
        defer { withExtendedLifetime(reservation) {} }
        let time = budget.lists.tick()
        var list = RecipientList()
        switch wanted {
        case .keys(let path):
            var reading = KeyReading(messages, database, path, outbox.limits, textBytesMax: budget.keysTextMax)
            while let uids = try await next(&reading, path) { list = try await added(uids, to: list) }
        case .named: list = try await added(firing.trigger.namedUIDs, to: list)
        case .user(let uid): list = try await added([uid], to: list)
        }
        budget.lists.keep(list, RecipientLists.Key(database: database, source: wanted), readAt: time)
        return list
    }

    private func next(_ reading: inout KeyReading, _ path: TreePath) async throws -> [String]? {
        do { return try await reading.next() } catch let error as RPCError {
            try passOver(error, path)
            return nil
        }
    }

    private func added(_ uids: [String], to list: RecipientList) async throws -> RecipientList {
        let bounds = RecipientList.Bounds(
            countMax: outbox.limits.deliveriesPerNotificationMax, bytesMax: budget.listMax)
        return try await outbox.store.read { snapshot in
            var list = list
            try list.add(uids, in: snapshot, bounds)
            return list
        }
    }

    // MARK: Content

    /// What a firing sends.
    struct Content: Sendable {
        var recipients: RecipientLists.Source?
        /// Without recipients; nil when title and body come out empty.
        var notification: NewNotification?
    }

    /// What a firing sends; nil when the trigger's condition does not hold. Where the change holds too little, the
    /// whole node is read as it is now; it has gone again when this returns.
    func content(of firing: Firing) async throws -> Content? {
        guard firing.trigger.needsWholeNode(firing.change), let path = try? TreePath(firing.change.path) else {
            return decided(firing)
        }
        // Alone: it may take all.
        let reservation = try await budget.reads.reserve(budget.reads.bytes)
        defer { withExtendedLifetime(reservation) {} }
        var firing = firing
        do {
            let node = try await messages.node(database, path, within: budget.node)
            firing.change = firing.change.completed(by: node)
        } catch let error as RPCError {
            try passOver(error, path)
        }
        return decided(firing)
    }

    private func decided(_ firing: Firing) -> Content? {
        if firing.through == nil {
            let truth = firing.trigger.truth(firing.change)
            if truth == .tooMuchWork { reportUndecided(firing) }
            guard truth.fires else { return nil }
            reportIncomplete(firing, truth)
        }
        let settings = CompiledTrigger.Settings(
            limits: outbox.limits, timeToLive: outbox.policy.timeToLive, now: outbox.time.now())
        return Content(
            recipients: firing.trigger.source(firing.change, outbox.limits),
            notification: firing.trigger.notification(for: firing.change, in: firing.commit, settings: settings))
    }

    /// Throws the error of what may be read later; the trigger goes without what can never be read.
    private func passOver(_ error: RPCError, _ path: TreePath) throws {
        guard !error.isRetryable, error.code != .unavailable, error.code != .unauthenticated else { throw error }
        notices.notice(
            .trigger("unreadable"), "messages does not let a path be read; the trigger goes without it",
            ["path": "\(path)", "error": "\(error.message)"], level: .warning)
    }

    // MARK: Log

    func reportMany(_ commit: FeedCommit) {
        for change in commit.changes where change.isMany {
            outbox.metrics.changeSkipped()
            notices.notice(
                .trigger("many"), "a commit changed more nodes than are told one by one; triggers do not fire for them",
                ["path": "\(change.path)", "version": "\(commit.version)"], level: .warning)
        }
    }

    func reportLeftOut(_ notification: AcceptedNotification) {
        outbox.metrics.recipientsLeftOut(notification.leftOut)
        notices.notice(
            .trigger("recipients"), "a trigger has more recipients than one notification may",
            ["notification": "\(notification.notification ?? "")", "recipients": "\(notification.leftOut)"],
            level: .warning)
    }

    func reportEmpty(_ firing: Firing) {
        notices.notice(
            .trigger("empty"), "a trigger fires, but title and body come out empty: nothing is sent",
            [
                "trigger": "\(firing.trigger.trigger.id)", "database": "\(database)", "path": "\(firing.change.path)",
            ], level: .info)
    }

    private func reportUndecided(_ firing: Firing) {
        outbox.metrics.conditionUndecided()
        notices.notice(
            .trigger("undecided"), "the texts of a change are too long for a trigger's condition; it counts as not met",
            [
                "trigger": "\(firing.trigger.trigger.id)", "database": "\(database)", "path": "\(firing.change.path)",
                "bytes-max": "\(RulesLimits.predicateWorkBytesMax)",
            ], level: .warning)
    }

    private func reportIncomplete(_ firing: Firing, _ truth: RulesPredicate.Truth) {
        guard firing.trigger.goesWithout(firing.change, truth) else { return }
        outbox.metrics.changesIncomplete(1)
        notices.notice(
            .trigger("incomplete"),
            "a commit was too big to tell what its nodes were; triggers that ask for it fire without",
            [
                "database": "\(database)", "version": "\(firing.commit.version)", "path": "\(firing.change.path)",
                "trigger": "\(firing.trigger.trigger.id)",
            ], level: .warning)
    }
}
