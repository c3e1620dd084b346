import HatoModel
import HatoStorage

/// Makes the deliveries of one thread that wait at one device one delivery, when one of them has its turn; those of all
/// threads when many threads wait.
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
    /// Threads that wait at a device and go each by itself. Of more, all go as one: what comes then would wait for
    /// minutes behind them, and any user that may begin chats could make it wait.
    private static let threadsMax = 20
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
        guard let thread = head.threadPrefix else { return head }
        let count = min(Self.pageMax, (OutboxDraft.writesMax - draft.writes.count) / Self.writesEach)
        guard count > 1 else {
            // The next transaction has more space.
            draft.moveHead(head, dueKey: head.dueKey)
            return nil
        }
        var page = try page(of: thread, count: count, &draft)
        guard let newest = page.waiting.last else {
            draft.moveHead(head, dueKey: head.dueKey)
            return nil
        }
        let turns = page.takeFirstTurns()
        for other in page.waiting.dropLast().reversed() {
            var ended = other
            guard case .finish = ended.machine.coalesced(at: draft.now) else { continue }
            ended.pacing = ended.pacing?.gone(into: newest.id)
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

    /// The first that wait of the head's thread, or of all when many threads do.
    private func page(of thread: RecordKey, count: Int, _ draft: inout OutboxDraft) throws -> Page {
        if hold == .rate, try isCrowded(draft.transaction) {
            var page = try rows(RecordKey(.thread).with(head.device), count: count, &draft)
            // Others of its lane are in later pages: it keeps its turn for them.
            if !page.isLast { page.waiting.removeAll { $0.key == head.key } }
            // Rows of those that interrupt in another way would be read again and again.
            if page.waiting.count > (page.isLast ? 1 : count / 4) { return page }
        }
        return try rows(thread, count: count, &draft)
    }

    /// Whether more threads wait at the device than go each by itself.
    private func isCrowded(_ rows: any StoreTransaction) throws -> Bool {
        var range = KeyRange(prefix: RecordKey(.thread).with(head.device).bytes)
        for _ in 0...Self.threadsMax {
            var end: [UInt8]?
            if range.isEmpty { return false }
            try rows.scan(range, reverse: false) { key, _ in
                var reader = RecordKeyReader(key.copied)
                if let device = reader.text(), let thread = reader.text() {
                    end = RecordKey(.thread).with(device).with(thread).end
                }
                return .stop
            }
            guard let end else { return false }
            range.lower = end
        }
        return true
    }

    /// The first that wait, as far as this transaction has done nothing with them, oldest first; what has expired ends.
    private func rows(_ prefix: RecordKey, count: Int, _ draft: inout OutboxDraft) throws -> Page {
        let rows = try draft.transaction.rows(prefix, limit: count + 1)
        var page = Page(isLast: rows.count <= count)
        var mutes: [String: Bool] = [:]
        for row in rows.prefix(count) {
            let key = RecordKey(bytes: row.value)
            guard let delivery = try draft.transaction.readable(DeliveryRecord.self, key), delivery.threadKey == row.key
            else {
                draft.writes.delete(row.key)
                continue
            }
            if draft.hasLeft(delivery.laneKey) || draft.hasMoved(key) { continue }
            guard delivery.pacing?.passing == head.pacing?.passing else { continue }
            // Rows of others would be read again and again.
            guard delivery.isHeldBack else {
                draft.writes.delete(row.key)
                continue
            }
            var (ended, waiting) = (delivery, key == head.key ? head : delivery)
            if case .finish = ended.machine.timePassed(at: draft.now) {
                try draft.leaveLane(ended, from: delivery.dueKey)
            } else if key != head.key, try isMuted(delivery, &mutes, &draft) {
                guard let others = delivery.pacing?.ofOthersAlone else {
                    // As the newest, it would take all others with it.
                    _ = ended.machine.ended(because: .muted, at: draft.now)
                    try draft.leaveLane(ended, from: delivery.dueKey)
                    continue
                }
                waiting.pacing = others
                page.waiting.append(waiting)
            } else {
                page.waiting.append(waiting)
            }
        }
        page.waiting.sort { ($0.sequenceVersion, $0.sequenceIndex) < ($1.sequenceVersion, $1.sequenceIndex) }
        return page
    }

    /// Whether the user has muted the thread of a delivery. `mutes`: what is known.
    private func isMuted(
        _ delivery: DeliveryRecord, _ mutes: inout [String: Bool], _ draft: inout OutboxDraft
    ) throws -> Bool {
        guard let thread = delivery.pacing?.thread else { return false }
        if let known = mutes[thread] { return known }
        let preferences = try draft.known.record(of: delivery.uid, in: draft.transaction)
        let isMuted =
            try preferences?.hasMutes == true
            && PreferenceReading(draft.transaction).isMuted(thread, for: delivery.uid, at: draft.now)
        mutes[thread] = isMuted
        return isMuted
    }

    /// The newest one with what the others had: their counts, the first turns, and the latest end.
    private func survivor(
        _ newest: DeliveryRecord, of page: Page, with turns: Pacing?, at now: Int64
    ) -> DeliveryRecord {
        var survivor = newest
        for other in page.waiting.dropLast() {
            survivor.pacing = survivor.pacing?.merging(other.pacing?.count ?? 1, of: other.pacing)
        }
        survivor.pacing = survivor.pacing?.with(turnsOf: turns)
            .with(isNext: page.isLast && turns?.turn.map { $0 <= now } == true)
        _ = survivor.machine.waited(because: hold)
        for other in page.waiting { survivor.machine.lasts(until: other.machine.expiresAt) }
        return survivor
    }

    /// Writes the survivor down where it stands in its lane; as a head it is due when it has its turn.
    private func put(_ survivor: DeliveryRecord, in draft: inout OutboxDraft, from dueKey: RecordKey) throws {
        var survivor = survivor
        guard try draft.isHead(survivor, at: dueKey) else { return draft.replaceBehindHead(survivor) }
        if let turn = survivor.pacing?.turn, turn > draft.now {
            _ = survivor.machine.held(until: turn, by: hold)
        } else {
            _ = survivor.machine.turnCame(at: draft.now)
        }
        draft.moveHead(survivor, dueKey: dueKey)
    }
}
