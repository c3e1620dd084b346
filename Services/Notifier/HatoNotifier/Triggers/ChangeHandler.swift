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
    private let readings: FeedReadings
    /// Where the cursor is.
    private(set) var cursor: CursorRecord
    private var window: FeedWindow
    /// What was read and a trigger rests for.
    private var found: [FeedReadings.Need: FeedReadings.Found] = [:]
    /// By trigger, the recipients of firings in this pass that are not done.
    private var passedOver: [Int: [RecipientLists.Source: RecipientList]] = [:]
    /// By trigger, the recipients of the firing of which parts are to come: those that were there for its first part,
    /// by which later firings came before the others. Where they are too many to be kept, no later firing does, and
    /// they are read again.
    private var parted: [Int: (list: RecipientList, reservation: ByteBudget.Reservation)] = [:]

    /// Firings that are looked at to find out which lists will be needed.
    private static let upcomingMax = 64
    /// Devices of the recipients of a firing that comes before an earlier one.
    private static let overtakingMax = 32

    init(
        _ source: TriggerSource, _ readings: FeedReadings, _ triggers: [FeedTrigger], _ cursor: CursorRecord
    ) {
        self.source = source
        self.readings = readings
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

    /// What a turn came to.
    struct Turn: Sendable {
        /// How many places of the window are done with.
        var done: Int
        /// Whether nothing can be done before another commit comes or a reading ends.
        var isStuck = false
    }

    /// Handles as much as fits into one transaction, of what needs no reading that has not ended.
    mutating func turn() async throws -> Turn {
        found.merge(try readings.take()) { $1 }
        let reservation = try await budget.transactions.reserve(budget.transaction)
        defer { withExtendedLifetime(reservation) {} }
        var batch = Batch()
        while batch.bytes < budget.transaction {
            if let firing = window.nextFiring() {
                try await add(firing, to: &batch)
            } else {
                let there = Set(found.keys)
                if !window.beginPass({ there.contains($0) }) { break }
                passedOver = [:]
            }
        }
        beginReadings()
        outbox.metrics.changesCame(batch.firings)
        let (through, count) = window.dropDone()
        var next = cursor
        if let through {
            next.version = through.version
            next.epoch = through.epoch
            next.time = max(next.time, through.time)
        }
        guard next != cursor || !batch.notifications.isEmpty else {
            return Turn(done: count, isStuck: count == 0)
        }
        try await accept(
            batch.notifications, moving: CursorMove(database: source.database.rawValue, from: cursor, to: next))
        cursor = next
        outbox.metrics.handledChanges(after: max(0, outbox.time.now() - next.time))
        return Turn(done: count)
    }

    /// What one transaction is to accept.
    private struct Batch {
        var notifications: [NewNotification] = []
        /// About what it takes in memory and in the store.
        var bytes = 0
        /// That began in it.
        var firings = 0
    }

    /// Adds what a firing sends, or the next part of it, if what it needs is there.
    private mutating func add(_ firing: Firing, to batch: inout Batch) async throws {
        var firing = firing
        if firing.content == nil {
            guard complete(&firing) else { return }
            batch.firings += 1
            firing.content = source.content(of: firing)
        }
        guard let content = firing.content, let wanted = content.recipients else { return window.isDone(firing) }
        guard let list = try await list(wanted, for: firing) else { return }
        guard let part = part(of: list, wanted, firing, free: budget.transaction - batch.bytes) else { return }
        guard part.total > 0 else { return window.isDone(firing) }
        guard var new = content.notification else {
            source.reportEmpty(firing)
            return window.isDone(firing)
        }
        new.recipients = .part(part)
        let bytes = new.bytes + part.recipients.count * TriggerBudget.bytesPerDelivery
        batch.notifications.append(new)
        batch.bytes += bytes
        window.spent(
            bytes, on: firing, through: part.isLast ? nil : part.recipients.last?.uid, max: budget.turn)
        guard !firing.isAhead else { return }
        guard !part.isLast else {
            parted[firing.index] = nil
            return
        }
        passedOver[firing.index] = [wanted: list]
        if parted[firing.index] == nil, let reservation = budget.parted.reserveNow(list.bytes) {
            parted[firing.index] = (list, reservation)
        }
    }

    /// The next recipients of a firing; nil: it waits for earlier ones of its trigger.
    ///
    /// What does not fit into the turn leaves half of it to later firings, of which those for a few others come first.
    private mutating func part(
        of list: RecipientList, _ wanted: RecipientLists.Source, _ firing: Firing, free: Int
    ) -> RecipientPart? {
        let spent = window.spending(of: firing)
        func part(within bytes: Int) -> RecipientPart {
            list.part(
                after: firing.through, without: firing.change.uid, count: max(1, bytes / TriggerBudget.bytesPerDelivery)
            )
        }
        guard firing.isAhead else {
            let whole = part(within: min(budget.turn - spent, free))
            return whole.isLast ? whole : part(within: min(budget.turn / 2 - spent, free))
        }
        let earlier = passedOver[firing.index] ?? [:]
        if parted[firing.index] != nil, list.count <= Self.overtakingMax, earlier[wanted] == nil {
            let whole = part(within: min(budget.turn - spent, free))
            if whole.isLast, earlier.values.allSatisfy({ !$0.hasUsers(of: whole) }) { return whole }
        }
        passedOver[firing.index, default: [:]][wanted] = list
        let isLast = earlier.values.reduce(list.bytes) { $0 + $1.bytes } > budget.lists.bytesMax
        window.passOver(firing, firing.content, isLast: isLast)
        return nil
    }

    /// Adds the whole node where the change holds too little; false: that is not there.
    private mutating func complete(_ firing: inout Firing) -> Bool {
        guard firing.trigger.needsWholeNode(firing.change), let path = try? TreePath(firing.change.path) else {
            return true
        }
        guard case .node(let node)? = found(.node(path), for: firing) else { return false }
        if let node { firing.change = firing.change.completed(by: node) }
        return true
    }

    /// The recipients of a firing; nil: they are not there.
    private mutating func list(
        _ wanted: RecipientLists.Source, for firing: Firing
    ) async throws -> RecipientList? {
        if firing.through != nil, let parted = parted[firing.index] { return parted.list }
        if let known = source.list(wanted, for: firing) { return known }
        switch wanted {
        case .named: return try await source.read(firing.trigger.namedUIDs, as: wanted)
        case .user(let uid): return try await source.read([uid], as: wanted)
        case .keys(let path):
            guard case .recipients(let list)? = found(.recipients(path), for: firing) else { return nil }
            return list
        }
    }

    /// What was read since the change of the firing came; nil: its trigger rests.
    private mutating func found(_ need: FeedReadings.Need, for firing: Firing) -> FeedReadings.Found.Value? {
        if let found = found[need], found.time > firing.time { return found.value }
        guard !firing.isAhead else {
            window.passOver(firing, firing.content, isLast: true)
            return nil
        }
        found[need] = nil
        window.wait(for: need, firing)
        return nil
    }

    /// Begins to read what triggers wait for, and what firings behind will need; drops what none waits for.
    private mutating func beginReadings() {
        let needs = window.needs
        found = found.filter { needs.contains($0.key) }
        var ahead: [FeedReadings.Ahead] = []
        for next in window.upcoming(Self.upcomingMax) {
            guard next.content != nil || !next.trigger.needsWholeNode(next.change),
                case .keys(let path)? = next.content?.recipients ?? next.trigger.source(next.change, outbox.limits),
                source.list(.keys(of: path), for: next) == nil, found[.recipients(path)] == nil
            else { continue }
            ahead.append(.init(need: .recipients(path), time: next.time))
        }
        readings.begin(needs.filter { found[$0] == nil }, ahead: ahead)
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
