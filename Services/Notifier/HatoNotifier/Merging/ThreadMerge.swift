import HatoModel
import HatoStorage

/// Makes the deliveries of one thread that wait at one device one delivery, when one of them has its turn.
///
/// The newest stays and counts all; it keeps its place in its lane, and gets the turn. So no lane loses its order, and
/// those of several lanes (collapse keys) merge. Others end as `coalesced`. One transaction merges a page, oldest
/// first; what is left of it goes on in the next one.
struct ThreadMerge {
    /// The head of a lane, which has its turn.
    let head: DeliveryRecord
    /// Why it waited.
    let hold: DeliveryStateMachine.Hold

    /// Deliveries of one page.
    private static let pageMax = 512
    /// Rows that one of them writes at most, with those of its lane's next head.
    private static let writesEach = 8

    /// What waits, and whether more does.
    private struct Page {
        var waiting: [DeliveryRecord] = []
        var isLast: Bool

        /// Takes the turns away from the delivery that goes first.
        mutating func takeFirstTurns() -> Pacing? {
            func time(_ delivery: DeliveryRecord) -> (Int64, Int64) {
                (delivery.pacing?.goesAt ?? .max, delivery.pacing?.turn ?? .max)
            }
            guard let first = waiting.indices.min(by: { time(waiting[$0]) < time(waiting[$1]) }) else { return nil }
            defer { waiting[first].pacing = waiting[first].pacing?.with(turnsOf: nil) }
            return waiting[first].pacing
        }
    }

    /// Returns the head when it goes now, with all that it shows; nil: another one has its turn, or the next page is
    /// to come.
    func run(_ draft: inout OutboxDraft, _ pace: SendPace) throws -> DeliveryRecord? {
        guard let prefix = head.threadPrefix else { return head }
        let count = min(Self.pageMax, (OutboxDraft.writesMax - draft.writes.count) / Self.writesEach)
        guard count > 1 else {
            // The next transaction has more space.
            draft.moveHead(head, dueKey: head.dueKey)
            return nil
        }
        var page = try page(of: prefix, count: count, &draft)
        guard let newest = page.waiting.last else {
            draft.moveHead(head, dueKey: head.dueKey)
            return nil
        }
        let turns = page.takeFirstTurns()
        for other in page.waiting.dropLast().reversed() {
            var ended = other
            guard case .finish = ended.machine.coalesced(at: draft.now) else { continue }
            try draft.leaveLane(ended, from: other.dueKey)
        }
        // Those that ended gave theirs back when they left their lanes.
        if let pacing = page.waiting.last?.pacing {
            pace.giveBack(pacing, at: head.device, of: head.uid, now: draft.now)
        }
        let survivor = survivor(newest, of: page, with: turns, at: draft.now)
        guard newest.key != head.key || !page.isLast else { return survivor }
        try put(survivor, in: &draft, from: newest.dueKey)
        let hasEnded = newest.key != head.key && page.waiting.contains { $0.key == head.key }
        if newest.key != head.key, !hasEnded { draft.moveHead(head, dueKey: head.dueKey) }
        return nil
    }

    /// The first that wait, as far as this transaction has done nothing with them; what has expired ends.
    private func page(of prefix: RecordKey, count: Int, _ draft: inout OutboxDraft) throws -> Page {
        let rows = try draft.transaction.rows(prefix, limit: count + 1)
        var page = Page(isLast: rows.count <= count)
        for row in rows.prefix(count) {
            let key = RecordKey(bytes: row.value)
            guard let delivery = try draft.transaction.readable(DeliveryRecord.self, key), delivery.threadKey == row.key
            else {
                draft.writes.delete(row.key)
                continue
            }
            if draft.hasLeft(delivery.laneKey) || draft.hasMoved(key) { continue }
            // Rows of others would be read again and again.
            guard delivery.isHeldBack else {
                draft.writes.delete(row.key)
                continue
            }
            var ended = delivery
            if case .finish = ended.machine.timePassed(at: draft.now) {
                try draft.leaveLane(ended, from: delivery.dueKey)
            } else {
                page.waiting.append(key == head.key ? head : delivery)
            }
        }
        return page
    }

    /// The newest one with what the others had: their counts, and the first turns.
    private func survivor(
        _ newest: DeliveryRecord, of page: Page, with turns: Pacing?, at now: Int64
    ) -> DeliveryRecord {
        let count = page.waiting.dropLast().reduce(0) { $0 + ($1.pacing?.count ?? 1) }
        var survivor = newest
        survivor.pacing = survivor.pacing?.merging(count).with(turnsOf: turns)
            .with(isNext: page.isLast && turns?.turn.map { $0 <= now } == true)
        _ = survivor.machine.waited(because: hold)
        return survivor
    }

    /// Writes the survivor down where it stands in its lane; as a head it is due at once.
    private func put(_ survivor: DeliveryRecord, in draft: inout OutboxDraft, from dueKey: RecordKey) throws {
        var survivor = survivor
        guard try draft.isHead(survivor, at: dueKey) else { return draft.replaceBehindHead(survivor) }
        _ = survivor.machine.turnCame(at: draft.now)
        draft.moveHead(survivor, dueKey: dueKey)
    }
}
