import HatoModel
import HatoRPC
import Logging

/// Turns the commits of one database's feed into notifications in the outbox, cursor included.
struct ChangeHandler: Sendable {
    let database: DatabaseName
    let triggers: [HeldTrigger]
    let messages: MessagesClient
    let outbox: Outbox
    /// What whoever may write can make the notifier log.
    let notices: ThrottledNotices

    /// Reads of messages at a time.
    private static let readsMax = 16

    /// A trigger and where it begins.
    struct HeldTrigger: Sendable {
        var compiled: CompiledTrigger
        var record: TriggerRecord

        func sees(_ commit: FeedCommit) -> Bool {
            commit.epoch != record.epoch || commit.version > record.startsAfter
        }
    }

    /// One trigger that one change fires.
    private struct Firing: Sendable {
        var trigger: CompiledTrigger
        var change: FeedChange
        var commit: FeedCommit
    }

    /// Accepts what the commits ask for; returns where the cursor is then.
    func handle(_ commits: [FeedCommit], _ cursor: CursorRecord) async throws -> CursorRecord {
        var next = cursor
        var firings: [Firing] = []
        for commit in commits where isNew(commit, to: next) {
            firings += self.firings(of: commit, cursor)
            next.version = commit.version
            next.epoch = commit.epoch
            next.time = max(next.time, commit.time)
        }
        guard next != cursor else { return cursor }
        outbox.metrics.changesCame(firings.count)
        var gathered = Gathered()
        while !firings.isEmpty {
            try await gather(takePart(of: &firings, knowing: gathered.keys), &gathered)
            // Those behind may need as much again. What is accepted before the cursor moves, and once more after a
            // crash, is known by its idempotency key.
            if gathered.recipients >= outbox.limits.recipientsPerBatchMax, !firings.isEmpty {
                try await accept(gathered.take(), moving: nil)
            }
        }
        try await accept(
            gathered.take(), moving: CursorMove(database: database.rawValue, from: cursor, to: next))
        outbox.metrics.handledChanges(after: max(0, outbox.time.now() - next.time))
        return next
    }

    /// What was made of the first changes of a batch.
    private struct Gathered {
        var notifications: [NewNotification] = []
        /// Uids of all notifications.
        var recipients = 0
        /// Children of nodes whose keys are recipients, and how many there are.
        var keys: [TreePath: [String]] = [:]
        var keyCount = 0

        mutating func take() -> [NewNotification] {
            defer { (notifications, recipients) = ([], 0) }
            return notifications
        }
    }

    /// Takes the first of them that may be looked at together: what is read for them is in memory at one time.
    private func takePart(of firings: inout [Firing], knowing keys: [TreePath: [String]]) -> [Firing] {
        var (wholeNodes, recipients): (Set<String>, Set<TreePath>) = ([], [])
        let end = firings.firstIndex { firing in
            if firing.trigger.needsWholeNode(firing.change) { wholeNodes.insert(firing.change.path) }
            if let path = firing.trigger.recipientsPath(firing.change), keys[path] == nil { recipients.insert(path) }
            return wholeNodes.count > outbox.limits.wholeNodesMax || recipients.count > Self.readsMax
        }
        defer { firings.removeFirst(end ?? firings.count) }
        return Array(firings[..<(end ?? firings.count)])
    }

    /// Turns firings into notifications.
    private func gather(_ firings: [Firing], _ gathered: inout Gathered) async throws {
        let firings = try await completed(firings).filter { $0.trigger.holds($0.change) }
        try await readRecipientKeys(of: firings, &gathered)
        let settings = CompiledTrigger.Settings(
            limits: outbox.limits, timeToLive: outbox.policy.timeToLive, now: outbox.time.now())
        for firing in firings {
            let path = firing.trigger.recipientsPath(firing.change)
            let uids = firing.trigger.uids(firing.change, keys: path.flatMap { gathered.keys[$0] } ?? [])
            guard !uids.isEmpty else { continue }
            let new = firing.trigger.notification(
                for: firing.change, in: firing.commit, uids: uids, settings: settings)
            guard let new else {
                tellOfEmpty(firing)
                continue
            }
            gathered.notifications.append(new)
            gathered.recipients += uids.count
        }
        tellOfIncomplete(firings)
    }

    private func accept(_ new: [NewNotification], moving move: CursorMove?) async throws {
        guard outbox.pending < outbox.limits.pendingMax else { throw OutboxRefusal.busy }
        for notification in try await outbox.accept(new, moving: move) where notification.leftOut > 0 {
            outbox.metrics.recipientsLeftOut(notification.leftOut)
            notices.notice(
                .trigger("recipients"), "a trigger has more recipients than one notification may",
                ["notification": "\(notification.notification ?? "")", "recipients": "\(notification.leftOut)"],
                level: .warning)
        }
    }

    private func tellOfEmpty(_ firing: Firing) {
        notices.notice(
            .trigger("empty"), "a trigger fires, but title and body come out empty: nothing is sent",
            [
                "trigger": "\(firing.trigger.trigger.id)", "database": "\(database)", "path": "\(firing.change.path)",
            ], level: .info)
    }

    /// Says once for each commit what was too big to be told.
    private func tellOfIncomplete(_ firings: [Firing]) {
        let incomplete = firings.filter { $0.trigger.goesWithout($0.change) }
        outbox.metrics.changesIncomplete(incomplete.count)
        for (version, ofCommit) in Dictionary(grouping: incomplete, by: \.commit.version) {
            let first = ofCommit[0]
            notices.notice(
                .trigger("incomplete"),
                "a commit was too big to tell what its nodes were; triggers that ask for it fire without",
                [
                    "database": "\(database)", "version": "\(version)", "path": "\(first.change.path)",
                    "trigger": "\(first.trigger.trigger.id)", "changes": "\(ofCommit.count)",
                ], level: .warning)
        }
    }

    /// Commits come in order, but again after a connection was lost; and in another history versions may begin anew.
    private func isNew(_ commit: FeedCommit, to cursor: CursorRecord) -> Bool {
        commit.epoch != cursor.epoch || commit.version > cursor.version
    }

    private func firings(of commit: FeedCommit, _ cursor: CursorRecord) -> [Firing] {
        // After another history took the place of the one that was followed, what had been handled there is told by its
        // time; commits of the very last millisecond are known by their idempotency keys.
        if let handled = cursor.handledThrough, commit.time < handled { return [] }
        return commit.changes.flatMap { change -> [Firing] in
            if change.isMany {
                outbox.metrics.changeSkipped()
                notices.notice(
                    .trigger("many"),
                    "a commit changed more nodes than are told one by one; triggers do not fire for them",
                    ["path": "\(change.path)", "version": "\(commit.version)"], level: .warning)
            }
            return triggers.filter { $0.sees(commit) && $0.compiled.matches(change) }
                .map { Firing(trigger: $0.compiled, change: change, commit: commit) }
        }
    }

    /// Reads the whole node where the change tells only a part of it, as it is now.
    private func completed(_ firings: [Firing]) async throws -> [Firing] {
        let paths = Set(
            firings.filter { $0.trigger.needsWholeNode($0.change) }.compactMap { try? TreePath($0.change.path) })
        guard !paths.isEmpty else { return firings }
        let nodes = try await read(paths) { try await messages.node(database, $0) }
        return firings.map { firing in
            guard firing.trigger.needsWholeNode(firing.change), let path = try? TreePath(firing.change.path),
                let node = nodes[path]
            else { return firing }
            var whole = firing
            whole.change = firing.change.completed(by: node)
            return whole
        }
    }

    /// Several firings mostly have the same recipients: what was read is kept, up to the keys of one node.
    private func readRecipientKeys(of firings: [Firing], _ gathered: inout Gathered) async throws {
        if gathered.keyCount >= outbox.limits.recipientKeysMax { (gathered.keys, gathered.keyCount) = ([:], 0) }
        let paths = Set(firings.compactMap { $0.trigger.recipientsPath($0.change) }).subtracting(gathered.keys.keys)
        let limits = outbox.limits
        for (path, keys) in try await read(paths, { try await messages.keys(database, $0, within: limits) }) {
            gathered.keys[path] = keys
            gathered.keyCount += keys.count
        }
    }

    /// Reads each path once, several at a time. What can never be read is left out; what may be read later throws.
    private func read<Value: Sendable>(
        _ paths: Set<TreePath>, _ get: @escaping @Sendable (TreePath) async throws -> Value
    ) async throws -> [TreePath: Value] {
        try await withThrowingTaskGroup(of: (TreePath, Value?).self) { group in
            var values: [TreePath: Value] = [:]
            var waiting = Array(paths)[...]
            for path in waiting.prefix(Self.readsMax) { group.addTask { (path, try await attempt(path, get)) } }
            waiting = waiting.dropFirst(Self.readsMax)
            while let (path, value) = try await group.next() {
                values[path] = value
                if let path = waiting.popFirst() { group.addTask { (path, try await attempt(path, get)) } }
            }
            return values
        }
    }

    private func attempt<Value: Sendable>(
        _ path: TreePath, _ get: @Sendable (TreePath) async throws -> Value
    ) async throws -> Value? {
        do { return try await get(path) } catch let error as RPCError
            where !error.isRetryable && error.code != .unavailable && error.code != .unauthenticated
        {
            notices.notice(
                .trigger("unreadable"), "messages does not let a path be read; the trigger goes without it",
                ["path": "\(path)", "error": "\(error.message)"], level: .warning)
            return nil
        }
    }
}
