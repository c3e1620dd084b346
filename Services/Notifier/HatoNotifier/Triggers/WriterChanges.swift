import HatoModel

/// What one transaction is to accept.
struct FiringBatch: Sendable {
    /// It is about changes that came through this commit of the store.
    let through: UInt64
    var notifications: [NewNotification] = []
    /// The changes that are done with it.
    var done: [ChangeRow] = []
    /// When the newest of them was committed.
    var newest: Int64?
    /// About what it takes in memory and in the store.
    var bytes = 0
    /// About what the changes took in memory that were loaded for it.
    var loadedBytes = 0
    /// That began in it.
    var firings = 0

    init(through: UInt64) { self.through = through }
}

/// The changes of one writer that were read from the store, and what their firings send next.
struct WriterChanges: Sendable {
    private let source: TriggerSource
    private(set) var window: FeedWindow
    /// The row that was read last.
    private(set) var last: ChangeRow?
    /// Whether there may be rows behind it.
    private(set) var hasMore = true
    /// About what it holds, of pages of which changes are not done.
    private(set) var heldBytes = 0
    /// The recipients of firings in this pass that are not done, by trigger.
    private var passedOver: [Int: [RecipientLists.Source: RecipientList]] = [:]
    /// By trigger, the recipients of the firing of which parts are to come: those that were there for its first part,
    /// by which later firings came before the others. Where they are too many to be kept, no later firing does, and
    /// they are read again.
    private var parted: [Int: (list: RecipientList, reservation: ByteBudget.Reservation)] = [:]

    /// Devices of the recipients of a firing that comes before an earlier one.
    private static let overtakingMax = 32

    init(_ source: TriggerSource, _ triggers: [FeedTrigger]) {
        self.source = source
        window = FeedWindow(triggers)
    }

    private var budget: TriggerBudget { source.budget }
    /// Whether all changes were read and are done.
    var isDone: Bool { window.isEmpty && !hasMore }

    /// Nothing more is loaded now.
    mutating func leavesRows() { hasMore = true }

    mutating func append(_ loaded: LoadedPage, holding reservation: ByteBudget.Reservation?) {
        heldBytes = (window.isEmpty ? 0 : heldBytes) + loaded.memoryBytes
        for change in loaded.changes {
            var change = change
            change.reservation = reservation
            window.append(change)
        }
        last = loaded.last ?? last
        hasMore = loaded.hasMore
    }

    /// Adds what comes next, up to the turn of a writer, if what it needs is there. Returns whether more of it could
    /// be added; false: it is done, or needs what is not there.
    mutating func takeTurn(_ batch: inout FiringBatch, _ found: inout FeedReadings.All) async throws -> Bool {
        let end = min(batch.bytes + budget.turn, budget.transaction)
        defer {
            let done = window.dropDone()
            batch.done += done.map(\.row)
            batch.newest = [batch.newest, done.last?.record.time].compactMap(\.self).max()
        }
        while batch.bytes < end {
            if let firing = window.nextFiring() {
                try await add(firing, to: &batch, &found)
            } else {
                let there = Set(found.keys)
                guard window.beginPass({ there.contains($0) }) else { return false }
                passedOver = [:]
            }
        }
        return true
    }

    /// Adds what a firing sends, or the next part of it, if what it needs is there.
    private mutating func add(
        _ firing: Firing, to batch: inout FiringBatch, _ found: inout FeedReadings.All
    ) async throws {
        var firing = firing
        if firing.content == nil {
            guard complete(&firing, &found) else { return }
            batch.firings += 1
            firing.content = source.content(of: firing)
        }
        guard let content = firing.content, let wanted = content.recipients else { return window.isDone(firing) }
        guard let list = try await list(wanted, for: firing, &found) else { return }
        guard let part = part(of: list, wanted, firing, free: budget.transaction - batch.bytes) else { return }
        guard part.total > 0 else { return window.isDone(firing) }
        guard var new = content.notification else {
            source.reportEmpty(firing)
            return window.isDone(firing)
        }
        (new.recipients, new.position) = (.part(part), firing.position)
        let bytes = new.bytes + part.recipients.count * TriggerBudget.bytesPerDelivery
        batch.notifications.append(new)
        batch.bytes += bytes
        window.spent(
            bytes, on: firing, through: part.isLast ? nil : part.recipients.last?.order, max: budget.turn)
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

    /// Adds the whole node where the change holds too little, and the author's name where a text has it; false: they
    /// are not there.
    private mutating func complete(_ firing: inout Firing, _ found: inout FeedReadings.All) -> Bool {
        if firing.trigger.needsWholeNode(firing.change), let path = try? TreePath(firing.change.path) {
            guard case .node(let node)? = value(of: .node(path), for: firing, &found) else { return false }
            if let node { firing.change = firing.change.completed(by: node) }
        }
        if firing.trigger.namesAuthor, let path = firing.change.authorNamePath {
            guard case .text(let name)? = value(of: .text(path), for: firing, &found) else { return false }
            firing.change.authorName = name
        }
        return true
    }

    /// The recipients of a firing; nil: they are not there.
    private mutating func list(
        _ wanted: RecipientLists.Source, for firing: Firing, _ found: inout FeedReadings.All
    ) async throws -> RecipientList? {
        if firing.through != nil, !firing.isAhead, let parted = parted[firing.index] { return parted.list }
        if let known = source.list(wanted, for: firing) { return known }
        switch wanted {
        case .named: return try await source.read(firing.trigger.recipients.namedUIDs, as: wanted)
        case .user(let uid): return try await source.read([uid], as: wanted)
        case .keys, .query:
            guard let need = wanted.need, case .recipients(let list)? = value(of: need, for: firing, &found) else {
                return nil
            }
            return list
        }
    }

    /// What was read since the change of the firing came; nil: its trigger rests.
    private mutating func value(
        of need: FeedReadings.Need, for firing: Firing, _ found: inout FeedReadings.All
    ) -> FeedReadings.Found.Value? {
        if let found = found[need], found.time > firing.time { return found.value }
        guard !firing.isAhead else {
            window.passOver(firing, firing.content, isLast: true)
            return nil
        }
        found[need] = nil
        let hasNode = firing.change.isCompleted || firing.trigger.needsWholeNode(firing.change)
        let node = hasNode ? (try? TreePath(firing.change.path)).map(FeedReadings.Need.node) : nil
        let name = firing.trigger.namesAuthor ? firing.change.authorNamePath.map(FeedReadings.Need.text) : nil
        window.wait(for: need, beside: [node, name].compactMap(\.self).filter { $0 != need }, firing)
        return nil
    }

    /// What firings that come next will need, at most `count`.
    func ahead(_ count: Int, beside found: FeedReadings.All) -> [FeedReadings.Ahead] {
        window.upcoming(count).compactMap { next in
            guard next.content != nil || !next.trigger.needsWholeNode(next.change),
                let wanted = next.content?.recipients ?? next.trigger.source(next.change), let need = wanted.need,
                source.list(wanted, for: next) == nil, found[need] == nil
            else { return nil }
            return .init(need: need, time: next.time)
        }
    }
}

extension NewNotification {
    /// About what its row takes, and the store makes of it.
    fileprivate var bytes: Int {
        let texts = ([text] + (localized.map { Array($0.values) } ?? [])).reduce(0) {
            $0 + ($1.title?.utf8.count ?? 0) + ($1.body?.utf8.count ?? 0)
        }
        return data.reduce(TriggerBudget.bytesPerDelivery + 4 * texts) {
            $0 + 4 * ($1.key.utf8.count + $1.value.utf8.count)
        }
    }
}
