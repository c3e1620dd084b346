import HatoModel
import HatoStorage

/// What leasing found.
struct LeaseRound: Sendable {
    var leases: [Lease] = []
    /// What is under way with these leases.
    var slots: AttemptSlots
    /// Whether there may be more that is due now.
    var isFull = false
    /// Whether the round stopped because it had skipped as many groups as it may: behind `slots.position.turn` there
    /// may be lanes that may be attempted now.
    var hasSkippedMany = false
    /// When the next round is to follow: when the next lane is due, or soon after one that skipped many groups. Nil
    /// when no lane waits for a time, or when that was not asked for.
    var nextDueAt: Int64?
    /// Before this time, there is no lane but those that came since.
    var front: Int64 = 0
    /// Whether lanes may be parked.
    var hasParked = false
}

extension Outbox {
    /// Rows that are looked at in one transaction.
    private static let rowsMax = 512
    /// Milliseconds until the next round after one that has skipped as many groups as it may.
    private static let skippingPause: Int64 = 50

    /// Leases up to `limit` deliveries that are due, the heads of as many lanes; what has expired or lost its device
    /// ends. Lanes whose attempts may not begin now (`AttemptSlots`) are parked; groups of parked lanes take turns.
    func lease(
        limit: Int, beside slots: AttemptSlots? = nil, _ search: QueueSearch = QueueSearch()
    ) async throws -> LeaseRound {
        let (policy, now, rowsMax, skippingPause) = (policy, time.now(), Self.rowsMax, Self.skippingPause)
        let began = LeaseRound(slots: slots ?? AttemptSlots(policy))
        var leased = try await change { draft in
            var leasing = Leasing(began, until: now + policy.lease.milliseconds)
            let hasParked =
                try search.looksForParked && !draft.transaction.rows(RecordKey(.parked), limit: 1).isEmpty
            leasing.round.hasParked = hasParked
            // The clock may have been set back.
            leasing.round.front = min(search.front, now)
            // What comes now leaves half of what is free to those that wait.
            if hasParked { try leasing.takeTurns(&draft, upTo: (limit + 1) / 2, rowsMax: rowsMax) }
            try leasing.takeDue(&draft, upTo: limit, rowsMax: rowsMax)
            if hasParked { try leasing.takeTurns(&draft, upTo: limit, rowsMax: rowsMax) }
            var round = leasing.round
            round.isFull = round.isFull || round.leases.count == limit
            if search.looksAhead {
                round.nextDueAt = try draft.transaction.rows(
                    RecordKey(.due), after: RecordKey(.due).with(time: now + 1), limit: 1
                ).first.flatMap { LaneRow($0.key)?.time }
            }
            if round.hasSkippedMany {
                round.nextDueAt = min(round.nextDueAt ?? .max, now + skippingPause)
            }
            return round
        }
        leased.leases = ReplyTokens(self).add(to: leased.leases)
        return leased
    }
}

/// One transaction that leases.
private struct Leasing {
    /// Groups that `takeTurns` skips: each costs a search, and many thousands may wait.
    private static let skippedMax = 128
    /// The same at one host, so that its groups keep those of other hosts waiting for one round at most.
    private static let skippedAtHostMax = skippedMax / 2

    var round: LeaseRound
    private let end: Int64
    /// Where each group of parked lanes goes on: a transaction does not see its own writes.
    private var visited: [AttemptGroup: RecordKey] = [:]
    /// How many groups of a host were skipped.
    private var skipped: [String: Int] = [:]

    init(_ round: LeaseRound, until end: Int64) {
        self.round = round
        self.end = end
    }

    /// Visits lanes that are due, the longest waiting first, until `limit` deliveries are leased.
    mutating func takeDue(_ draft: inout OutboxDraft, upTo limit: Int, rowsMax: Int) throws {
        let end = RecordKey(.due).with(time: draft.now + 1)
        var (last, visits) = (RecordKey(.due).with(time: round.front), 0)
        // The earliest row that may stand where it stood.
        var left = Int64.max
        defer { round.front = min(round.front, left) }
        while round.leases.count < limit {
            guard visits < rowsMax else {
                round.isFull = true
                return
            }
            // Most rows are leased: few are read that are not needed.
            let count = min(rowsMax, max(16, limit - round.leases.count))
            let rows = try draft.transaction.rows(RecordKey(.due), after: last, before: end, limit: count)
            for row in rows where round.leases.count < limit {
                let time = LaneRow(row.key)?.time ?? round.front
                if try !visit(row, &draft) { left = min(left, time) }
                (last, visits) = (row.key, visits + 1)
                round.front = max(round.front, time)
            }
            guard rows.count == count else {
                if round.leases.count < limit { round.front = draft.now }
                return
            }
        }
    }

    /// Visits one parked lane of each group, then another, until `limit` deliveries are leased or no group has one that
    /// may be attempted.
    mutating func takeTurns(_ draft: inout OutboxDraft, upTo limit: Int, rowsMax: Int) throws {
        var position = round.slots.position.turn.flatMap { $0.key.end } ?? RecordKey(.parked).bytes
        // The first pass begins in the middle: a whole one must find nothing.
        var (visits, visitsOfPass, emptyPasses, skippedCount) = (0, 0, 0, 0)
        while round.leases.count < limit, emptyPasses < 2 {
            guard visits < rowsMax else {
                round.isFull = true
                return
            }
            guard let row = try draft.transaction.firstRow(.parked, from: position),
                let group = LaneRow(row.key)?.group
            else {
                emptyPasses = visitsOfPass == 0 ? emptyPasses + 1 : 0
                (position, visitsOfPass) = (RecordKey(.parked).bytes, 0)
                continue
            }
            position = group.key.end ?? position
            if round.slots.admitsHost(group.host), let last = round.slots.position.takeLastSkipped(at: group.host),
                !last.key.bytes.lexicographicallyPrecedes(group.key.bytes)
            {
                position = last.key.end ?? position
                continue
            }
            guard round.slots.admits(group) else {
                if skips(group) { position = AttemptGroup.hostKey(group.host).end ?? position }
                skippedCount += 1
                guard skippedCount < Self.skippedMax else {
                    round.slots.position.turn = group
                    round.hasSkippedMany = true
                    return
                }
                continue
            }
            let next = try visited[group].map { last in
                try draft.transaction.rows(group.key, after: last, limit: 1).first
            }
            guard let lane = next ?? (visited[group] == nil ? row : nil) else { continue }
            visited[group] = lane.key
            visits += 1
            visitsOfPass += 1
            round.slots.position.turn = group
            try visit(lane, &draft)
        }
    }

    /// Returns whether the other groups of its host are skipped, too.
    private mutating func skips(_ group: AttemptGroup) -> Bool {
        guard round.slots.admitsHost(group.host) else { return true }
        skipped[group.host, default: 0] += 1
        guard skipped[group.host, default: 0] >= Self.skippedAtHostMax else { return false }
        round.slots.position.skipped(from: group)
        round.hasSkippedMany = true
        return true
    }

    /// Leases or parks the head of the lane of a row, or ends it, or sets aside what cannot be read. Returns whether
    /// the lane stands elsewhere for sure.
    @discardableResult
    mutating func visit(_ row: (key: RecordKey, value: [UInt8]), _ draft: inout OutboxDraft) throws -> Bool {
        do { return try lease(row, &draft) } catch let error as UnreadableRecord {
            try draft.setAside(head: row, because: error)
            return false
        }
    }

    private mutating func lease(_ row: (key: RecordKey, value: [UInt8]), _ draft: inout OutboxDraft) throws -> Bool {
        guard let head = try LaneHead(row, &draft) else { return false }
        guard round.slots.admits(head.group) else {
            draft.park(head.delivery, head.group, from: row.key)
            round.hasParked = true
            return true
        }
        guard let lease = try head.lease(until: end, &draft) else { return false }
        round.slots.began(head.group, at: draft.now)
        round.leases.append(lease)
        return true
    }
}

extension OutboxDraft {
    /// The lane waits until attempts of its group have ended. `dueKey` is where it stood.
    fileprivate mutating func park(_ delivery: DeliveryRecord, _ group: AttemptGroup, from dueKey: RecordKey) {
        var parked = delivery
        parked.parkedAt = group.host
        guard parked.dueKey != dueKey else { return }
        move(parked, to: group.host, from: dueKey)
    }
}

extension StoreReading {
    /// The first row of a table at or after a key.
    fileprivate func firstRow(_ table: RecordKey.Table, from lower: [UInt8]) throws -> (key: RecordKey, value: [UInt8])?
    {
        var range = KeyRange(prefix: RecordKey(table).bytes)
        range.lower = lower
        guard !range.isEmpty else { return nil }
        var row: (key: RecordKey, value: [UInt8])?
        try scan(range, reverse: false) { key, value in
            row = (RecordKey(bytes: key.copied), value.copied)
            return .stop
        }
        return row
    }
}
