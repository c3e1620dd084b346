import HatoModel
import HatoRPC
import Logging

/// Turns the changes of one database into notifications in the outbox, writer by writer.
///
/// Each turn is one transaction, of bounded size, in which writers have a part each: it accepts what some of their
/// changes ask for, or a part of that, and deletes the rows of those that are done. What is accepted of a change whose
/// row stays is known by its idempotency key when it is read again, and how far it had come by the record of that key.
struct ChangeHandler: Sendable {
    let source: TriggerSource
    private let readings: FeedReadings
    private let triggers: [FeedTrigger]
    private let backlog: ChangeBacklog
    /// What is held of the changes of writers, those with the last turns; more are read from their rows again.
    private var held: [UserDigest: (changes: WriterChanges, use: UInt64)] = [:]
    private var lastUse: UInt64 = 0
    /// What was read and a trigger rests for.
    private var found: FeedReadings.All = [:]
    /// What triggers rest for, by writer.
    private var needs: [UserDigest: Waiting] = [:]
    /// Writers that need a reading while as many wait for theirs as may, in the order in which they came here.
    private var later = IndexedHeap<UserDigest, UInt64>()
    /// Writers that were among these, for which a place is kept.
    private var admitted: Set<UserDigest> = []
    /// What older changes must not replace, and may be forgotten.
    private var overtaken = Overtaken()

    /// What a writer has a place for among those that wait for readings.
    private struct Waiting {
        var needs: [FeedReadings.Need]
        /// The turn in which it got its place.
        var since: UInt64
        /// What it got it for and has not ended: then another writer gets the place, if one waits.
        var open: Set<FeedReadings.Need>
    }

    /// Firings that are looked at to find out which lists will be needed.
    private static let upcomingMax = 64
    /// Writers whose changes are held between turns.
    private static let heldMax = 16
    /// Writers that wait for readings.
    private static let needsMax = 256
    /// Writers that have a part in one turn.
    private static let writersMax = 256
    private static let overtakenMax = 1_024

    private struct Overtaken {
        /// Whether there may be rows; those of the process before are not known.
        var mayHaveRows = true
        /// The row that was looked at last, and how many of those before it stayed.
        var last: RecordKey?
        var stayed = 0
        /// Whether more came since the pass began.
        var hasNew = false
        /// Turns since.
        var turns = 0
        static let turnsMax = 32
    }

    init(
        _ source: TriggerSource, _ readings: FeedReadings, _ triggers: [FeedTrigger], _ backlog: ChangeBacklog
    ) {
        self.source = source
        self.readings = readings
        self.triggers = triggers
        self.backlog = backlog
    }

    private var outbox: Outbox { source.outbox }
    private var budget: TriggerBudget { source.budget }

    /// Handles as much as fits into one transaction, of what needs no reading that has not ended. False: nothing can be
    /// done before changes come or a reading ends.
    mutating func turn() async throws -> Bool {
        try takeFound()
        let reservation = try await budget.transactions.reserve(budget.transaction)
        defer { withExtendedLifetime(reservation) {} }
        var (batch, visited): (FiringBatch, [UserDigest]) = (FiringBatch(through: backlog.beginTurn()), [])
        while batch.bytes < budget.transaction, batch.loadedBytes < budget.loadedPerTurn,
            batch.done.count < OutboxDraft.writesMax, visited.count < Self.writersMax, let writer = backlog.next()
        {
            visited.append(writer)
            if try await !visit(writer, &batch) { break }
        }
        beginReadings(beside: visited)
        outbox.metrics.changesCame(batch.firings)
        if !batch.done.isEmpty || !batch.notifications.isEmpty {
            try await accept(batch, finished: visited.filter { held[$0]?.changes.isDone ?? false })
        }
        try await forgetOvertaken()
        giveUp()
        admit()
        return backlog.endTurn()
    }

    /// A writer's part of a turn. False: it holds too much for others to have their parts beside it.
    private mutating func visit(_ writer: UserDigest, _ batch: inout FiringBatch) async throws -> Bool {
        lastUse += 1
        var changes = held.removeValue(forKey: writer)?.changes ?? WriterChanges(source, triggers)
        let (bytes, done) = (batch.bytes, batch.done.count)
        let (end, loadedEnd) = (bytes + budget.turn, batch.loadedBytes + budget.loadedPerTurn / 4)
        var (isOpen, isWithinBudget) = (true, true)
        repeat {
            isWithinBudget = try await load(&changes, of: writer, &batch)
            isOpen = try await changes.takeTurn(&batch, &found)
            if changes.window.isEmpty, changes.hasMore { isOpen = true } else { break }
        } while isWithinBudget && batch.bytes < end && batch.loadedBytes < loadedEnd
            && batch.done.count < OutboxDraft.writesMax
        waits(writer, for: changes.window.needs)
        if let oldest = changes.window.oldest { backlog.begins(writer, at: oldest.place) }
        // Also if all is done: the rows are there until the end of the turn.
        if isWithinBudget { held[writer] = (changes, lastUse) }
        if isOpen {
            backlog.isReady(writer)
        } else if batch.bytes == bytes, batch.done.count == done {
            backlog.keepsTurn(writer)
        }
        return isWithinBudget
    }

    /// Reads changes on, a page of them at most. False: they do not fit into the budget.
    private func load(
        _ changes: inout WriterChanges, of writer: UserDigest, _ batch: inout FiringBatch
    ) async throws -> Bool {
        let rowsMax = max(1, outbox.limits.changesPerBatchMax / Self.heldMax)
        guard changes.window.isEmpty || changes.window.count < rowsMax && changes.heldBytes < budget.loadedPerWriter
        else {
            changes.leavesRows()
            return true
        }
        let heldBytes = changes.window.isEmpty ? 0 : changes.heldBytes
        let page = ChangePage(
            through: batch.through, rowsMax: rowsMax - changes.window.count,
            bytesMax: (budget.loadedPerWriter - heldBytes) / TriggerBudget.bytesPerLineByte, triggers: triggers)
        let loaded = try await source.rows.load(of: writer, after: changes.last, page)
        batch.loadedBytes += loaded.memoryBytes
        let reservation = budget.loaded.reserveNow(min(loaded.memoryBytes, budget.loaded.bytes))
        // What is held is handled first.
        if reservation == nil, !changes.window.isEmpty {
            changes.leavesRows()
            return true
        }
        changes.append(loaded, holding: reservation)
        batch.done += loaded.damaged
        return reservation != nil
    }

    // MARK: Reading

    private mutating func waits(_ writer: UserDigest, for reading: [FeedReadings.Need]) {
        let (former, place) = (needs.removeValue(forKey: writer), later.priority(of: writer) ?? lastUse)
        later.remove(writer)
        let isAdmitted = admitted.remove(writer) != nil
        if reading.isEmpty { return }
        // It may have its turn because it wrote again: it keeps its place until what it has it for has ended.
        let open = former?.open.intersection(reading) ?? []
        if !open.isEmpty, let former {
            needs[writer] = Waiting(needs: reading, since: former.since, open: open)
        } else if isAdmitted || later.isEmpty && needs.count + admitted.count < Self.needsMax {
            needs[writer] = Waiting(needs: reading, since: lastUse, open: Set(reading.filter { found[$0] == nil }))
        } else {
            later.insert(writer, place)
        }
    }

    /// Gives places that became free to writers that wait for one.
    private mutating func admit() {
        if !later.isEmpty { admitted = admitted.filter(backlog.hasChanges) }
        while needs.count + admitted.count < Self.needsMax, let writer = later.first?.key {
            later.remove(writer)
            if backlog.isReady(writer) { admitted.insert(writer) }
        }
    }

    /// Takes what was read; the writers that it was read for have something to do.
    private mutating func takeFound() throws {
        let new = try readings.take()
        guard !new.isEmpty else { return }
        found.merge(new) { $1 }
        for (writer, waits) in needs where waits.needs.contains(where: { new[$0] != nil }) {
            needs[writer]?.open.subtract(new.keys)
            // Its changes were dropped.
            if !backlog.isReady(writer) { needs[writer] = nil }
        }
    }

    /// Begins to read what triggers wait for, the longest waiting first, and what the next firings of writers need;
    /// drops what none waits for.
    private mutating func beginReadings(beside visited: [UserDigest]) {
        var (wanted, order): (Set<FeedReadings.Need>, [FeedReadings.Need]) = ([], [])
        for entry in needs.values.sorted(by: { $0.since < $1.since }) {
            for need in entry.needs where wanted.insert(need).inserted { order.append(need) }
        }
        found = found.filter { wanted.contains($0.key) }
        var ahead: [FeedReadings.Ahead] = []
        for writer in visited where ahead.count < Self.upcomingMax {
            guard let changes = held[writer]?.changes else { continue }
            ahead += changes.ahead(Self.upcomingMax - ahead.count, beside: found)
        }
        readings.begin(order.filter { found[$0] == nil }, ahead: ahead)
    }

    /// Gives up what is held of the changes of too many writers, or is too much: of those that wait for no reading
    /// first, since these had more of their turns.
    private mutating func giveUp() {
        held = held.filter { !$0.value.changes.window.isEmpty }
        var (count, bytes) = (0, 0)
        for entry in held.sorted(by: { rank($1) < rank($0) }) {
            count += 1
            bytes += entry.value.changes.heldBytes
            if count > Self.heldMax || bytes > budget.loadedBetweenTurns { held[entry.key] = nil }
        }
    }

    private func rank(_ entry: (key: UserDigest, value: (changes: WriterChanges, use: UInt64))) -> (Int, UInt64) {
        (needs[entry.key] == nil ? 0 : 1, entry.value.use)
    }

    // MARK: Accepting

    /// - Parameter finished: writers of which it leaves no change.
    private mutating func accept(_ batch: FiringBatch, finished: [UserDigest]) async throws {
        // Those of one recipient are sent in the order in which they are accepted.
        let notifications = batch.notifications.enumerated().sorted { one, other in
            let (first, second) = (one.element.position, other.element.position)
            if let first, let second, first != second { return first < second }
            return one.offset < other.offset
        }.map(\.element)
        let accepted = try await source.rows.accept(
            notifications, of: batch.done, before: backlog.oldest(besides: finished))
        for notification in accepted.notifications where notification.leftOut > 0 {
            source.reportLeftOut(notification)
        }
        backlog.went(accepted.went, finished: finished)
        if accepted.hasOvertaken { (overtaken.mayHaveRows, overtaken.hasNew) = (true, true) }
        if let time = batch.newest { outbox.metrics.handledChanges(after: max(0, outbox.time.now() - time)) }
    }
    /// Looks, from time to time, for what no older change can replace any more.
    private mutating func forgetOvertaken() async throws {
        overtaken.turns += 1
        guard overtaken.mayHaveRows, overtaken.turns >= Overtaken.turnsMax || backlog.isEmpty else { return }
        overtaken.turns = 0
        repeat {
            let isFirst = overtaken.last == nil
            let page = try await source.rows.forgetNewest(
                after: overtaken.last, before: backlog.oldest(besides: []), limit: Self.overtakenMax)
            if isFirst { (overtaken.stayed, overtaken.hasNew) = (0, false) }
            overtaken.stayed += page.stayed
            overtaken.last = page.last
            overtaken.mayHaveRows = page.last != nil || overtaken.stayed > 0 || overtaken.hasNew
        } while overtaken.mayHaveRows && backlog.isEmpty
    }
}
