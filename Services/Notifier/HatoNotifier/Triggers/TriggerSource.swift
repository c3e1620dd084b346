import HatoModel
import HatoRPC
import HatoStorage
import Logging

/// What the triggers of one database read besides their changes, and what they say in the log.
struct TriggerSource: Sendable {
    let database: DatabaseName
    let messages: MessagesClient
    let outbox: Outbox
    let budget: TriggerBudget
    /// What whoever may write can make the notifier log.
    let notices: ThrottledNotices

    // MARK: Recipients

    /// A list that was read since the change of the firing came.
    func list(_ wanted: RecipientLists.Source, for firing: Firing) -> RecipientList? {
        budget.lists.list(RecipientLists.Key(database: database, source: wanted), after: firing.time)
    }

    /// Reads the recipients and their devices.
    func read(_ wanted: RecipientLists.Source, _ firing: Firing) async throws -> RecipientList {
        let reservation = try await budget.reads.reserve(budget.keysRead)
        defer { withExtendedLifetime(reservation) {} }
        let time = budget.lists.tick()
        let uids: [String]
        switch wanted {
        case .keys(let path):
            uids = try await attempt(path) { try await messages.keys(database, path, within: outbox.limits) } ?? []
        case .named: uids = firing.trigger.namedUIDs
        case .user(let uid): uids = [uid]
        }
        let countMax = outbox.limits.deliveriesPerNotificationMax
        let list = try await outbox.store.read { try RecipientList(of: uids, in: $0, countMax: countMax) }
        budget.lists.keep(list, RecipientLists.Key(database: database, source: wanted), readAt: time)
        return list
    }

    /// Reads the whole node where the change tells only a part of it, as it is now.
    func completed(_ change: FeedChange) async throws -> FeedChange {
        guard let path = try? TreePath(change.path) else { return change }
        // Alone: nobody knows how large it is.
        let reservation = try await budget.reads.reserve(budget.reads.bytes)
        defer { withExtendedLifetime(reservation) {} }
        guard let node = try await attempt(path, { try await messages.node(database, path) }) else { return change }
        return change.completed(by: node)
    }

    /// Nil for what can never be read; what may be read later throws.
    private func attempt<Value>(_ path: TreePath, _ get: () async throws -> Value) async throws -> Value? {
        do { return try await get() } catch let error as RPCError
            where !error.isRetryable && error.code != .unavailable && error.code != .unauthenticated
        {
            notices.notice(
                .trigger("unreadable"), "messages does not let a path be read; the trigger goes without it",
                ["path": "\(path)", "error": "\(error.message)"], level: .warning)
            return nil
        }
    }

    // MARK: Log

    func tellOfMany(_ commit: FeedCommit) {
        for change in commit.changes where change.isMany {
            outbox.metrics.changeSkipped()
            notices.notice(
                .trigger("many"), "a commit changed more nodes than are told one by one; triggers do not fire for them",
                ["path": "\(change.path)", "version": "\(commit.version)"], level: .warning)
        }
    }

    func tellOfLeftOut(_ notification: AcceptedNotification) {
        outbox.metrics.recipientsLeftOut(notification.leftOut)
        notices.notice(
            .trigger("recipients"), "a trigger has more recipients than one notification may",
            ["notification": "\(notification.notification ?? "")", "recipients": "\(notification.leftOut)"],
            level: .warning)
    }

    func tellOfEmpty(_ firing: Firing) {
        notices.notice(
            .trigger("empty"), "a trigger fires, but title and body come out empty: nothing is sent",
            [
                "trigger": "\(firing.trigger.trigger.id)", "database": "\(database)", "path": "\(firing.change.path)",
            ], level: .info)
    }

    func tellOfIncomplete(_ firing: Firing) {
        guard firing.trigger.goesWithout(firing.change) else { return }
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
