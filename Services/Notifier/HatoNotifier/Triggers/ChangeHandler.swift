import HatoModel
import HatoRPC
import Logging

/// Turns the commits of one database's feed into notifications in the outbox, cursor included.
///
/// Each turn is one transaction, of bounded size: it accepts what some of the changes ask for, or a part of that, and
/// moves the cursor behind the commits that are done as a whole. What is accepted ahead of the cursor is known by its
/// idempotency key when it comes again after a crash, and how far it had come by the record of that key.
struct ChangeHandler: Sendable {
    let source: TriggerSource
    /// Where the cursor is.
    private(set) var cursor: CursorRecord
    private var window: FeedWindow

    /// Lists of recipients that are read at a time.
    private static let readsMax = 16
    /// Firings that are looked at to find out which lists are needed.
    private static let upcomingMax = 64

    init(_ source: TriggerSource, _ triggers: [FeedTrigger], _ cursor: CursorRecord) {
        self.source = source
        self.cursor = cursor
        window = FeedWindow(triggers)
    }

    private var outbox: Outbox { source.outbox }
    private var budget: TriggerBudget { source.budget }

    /// Whether there is nothing to do before another commit comes.
    var isIdle: Bool { window.isEmpty }

    /// Takes commits up, in order; returns how many places they would take if they were new, of those that are not.
    mutating func take(_ commits: [BufferedCommit]) -> Int {
        var skipped = 0
        for held in commits {
            guard isNew(held.commit) else {
                skipped += held.slotCount
                continue
            }
            newest = (held.commit.version, held.commit.epoch)
            // After another history took the place of the one that was followed, what had been handled there is known
            // by its time; commits of the very last millisecond are known by their idempotency keys.
            let isHandled = cursor.handledThrough.map { held.commit.time < $0 } ?? false
            if !isHandled { source.reportMany(held.commit) }
            window.append(held, isHandled: isHandled, at: budget.lists.tick())
        }
        return skipped
    }

    /// The commit that was taken up last.
    private var newest: (version: UInt64, epoch: String)?

    /// Commits come in order, but again after a connection was lost; and in another history versions may begin anew.
    private func isNew(_ commit: FeedCommit) -> Bool {
        let newest = newest ?? (cursor.version, cursor.epoch)
        return commit.epoch != newest.epoch || commit.version > newest.version
    }

    /// Handles as much as fits into one transaction; returns how many places of the window are done with.
    mutating func turn() async throws -> Int {
        let reservation = try await budget.transactions.reserve(budget.transaction)
        defer { withExtendedLifetime(reservation) {} }
        var batch = Batch()
        while batch.bytes < budget.transaction {
            if let firing = window.nextFiring() {
                try await add(firing, to: &batch)
            } else if !window.beginPass() {
                break
            }
        }
        let (through, count) = window.dropDone()
        var next = cursor
        if let through {
            next.version = through.version
            next.epoch = through.epoch
            next.time = max(next.time, through.time)
        }
        guard next != cursor || !batch.notifications.isEmpty else { return count }
        outbox.metrics.changesCame(batch.firings)
        try await accept(
            batch.notifications, moving: CursorMove(database: source.database.rawValue, from: cursor, to: next))
        cursor = next
        outbox.metrics.handledChanges(after: max(0, outbox.time.now() - next.time))
        return count
    }

    /// What one transaction is to accept.
    private struct Batch {
        var notifications: [NewNotification] = []
        /// About what it takes in memory and in the store.
        var bytes = 0
        /// That began in it.
        var firings = 0
    }

    /// Adds what a firing sends, or the next part of it.
    private mutating func add(_ firing: Firing, to batch: inout Batch) async throws {
        if firing.through == nil { batch.firings += 1 }
        guard let content = try await source.content(of: firing) else { return }
        let free = min(budget.turn - window.spending(of: firing), budget.transaction - batch.bytes)
        let part = try await list(content.recipients, for: firing).part(
            after: firing.through, without: firing.change.uid, count: max(1, free / TriggerBudget.bytesPerDelivery))
        guard part.total > 0 else { return }
        guard var new = content.notification else { return source.reportEmpty(firing) }
        new.recipients = .part(part)
        let bytes = new.bytes + part.recipients.count * TriggerBudget.bytesPerDelivery
        batch.notifications.append(new)
        batch.bytes += bytes
        window.spent(
            bytes, on: firing, through: part.isLast ? nil : part.recipients.last?.uid, max: budget.turn)
    }

    /// The recipients of a firing; reads those of the firings behind it too.
    private func list(_ wanted: RecipientLists.Source?, for firing: Firing) async throws -> RecipientList {
        guard let wanted else { return RecipientList() }
        if let known = source.list(wanted, for: firing) { return known }
        var missing = [wanted: firing]
        var ahead = window
        for _ in 0..<Self.upcomingMax where missing.count < Self.readsMax {
            guard let next = ahead.nextFiring() else { break }
            guard !next.trigger.needsWholeNode(next.change),
                let wanted = next.trigger.source(next.change, outbox.limits), source.list(wanted, for: next) == nil
            else { continue }
            missing[wanted] = next
        }
        let source = source
        return try await withThrowingTaskGroup(of: (RecipientLists.Source, RecipientList).self) { group in
            for (wanted, firing) in missing { group.addTask { (wanted, try await source.read(wanted, firing)) } }
            var list = RecipientList()
            while let (found, read) = try await group.next() { if found == wanted { list = read } }
            return list
        }
    }

    private func accept(_ new: [NewNotification], moving move: CursorMove) async throws {
        for notification in try await outbox.accept(new, moving: move) where notification.leftOut > 0 {
            source.reportLeftOut(notification)
        }
    }
}

extension NewNotification {
    /// About what its row takes, and the store makes of it.
    fileprivate var bytes: Int {
        let texts = (text.title?.utf8.count ?? 0) + (text.body?.utf8.count ?? 0)
        return data.reduce(TriggerBudget.bytesPerDelivery + 4 * texts) {
            $0 + 4 * ($1.key.utf8.count + $1.value.utf8.count)
        }
    }
}
