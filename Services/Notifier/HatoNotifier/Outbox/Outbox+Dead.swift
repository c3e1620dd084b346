import HatoModel
import HatoStorage

extension Outbox {
    /// The dead, oldest first, after the page that ended with `after`.
    func deadLetters(after: String?, limit: Int) async throws -> Notifier.Dead.List.Result {
        let start = try after.flatMap { try DeadPage(text: $0).key }
        return try await store.read { snapshot in
            let rows = try snapshot.rows(RecordKey(.dead), after: start, limit: limit)
            let dead = try rows.compactMap { row -> Notifier.Dead.Letter? in
                let key = RecordKey(bytes: row.value)
                guard let delivery = try snapshot.readable(DeliveryRecord.self, key) else { return nil }
                return try delivery.letter(
                    snapshot.readable(NotificationRecord.self, NotificationRecord.key(delivery.notification)))
            }
            let isLast = rows.count < limit
            return Notifier.Dead.List.Result(dead: dead, after: isLast ? nil : dead.last.map { DeadPage($0).text })
        }
    }

    /// Puts dead deliveries at the end of their lanes again; returns how many. Throws `NotifierError.deliveryNotFound`
    /// when one that is named is not there, before anything is done; one that is not dead, or not any more, is passed
    /// over.
    func replay(_ choice: DeadChoice) async throws -> Int {
        let timeToLive = limits.timeToLive(policy.timeToLive.milliseconds)
        return try await forEachDead(choice) { draft, delivery in
            draft.leaveDead(delivery)
            _ = delivery.machine.replayed(at: draft.now, expiresAt: draft.now + timeToLive)
            delivery.pacing = delivery.pacing?.with(turnsOf: nil).with(isNext: false)
            if delivery.machine.isKept {
                delivery = try delivery.atReceiverOfAction(in: draft.transaction) ?? delivery
            }
            if let thread = delivery.digest {
                // Those of a mailbox go together, as they would have.
                delivery.digest = try draft.mails.lane(
                    for: thread, at: delivery.device, now: draft.now, draft.transaction)
                _ = delivery.machine.held(until: draft.now + draft.mails.pace.wait)
            }
            try draft.enqueue(delivery)
        }
    }

    /// Drops dead deliveries, chosen as for `replay`; returns how many.
    func drop(_ choice: DeadChoice) async throws -> Int {
        try await forEachDead(choice) { draft, delivery in
            let dead = delivery
            _ = delivery.machine.droppedByAdministrator(at: draft.now)
            draft.dropDead(dead, as: delivery)
        }
    }

    /// In pages, each a transaction of its own. Throws `StoreError.outcomeUnknown` when the store ends behind a page
    /// that was written.
    private func forEachDead(
        _ choice: DeadChoice, _ body: @escaping @Sendable (inout OutboxDraft, inout DeliveryRecord) throws -> Void
    ) async throws -> Int {
        var count = 0
        let visit = DeadVisit(body: body)
        do { try await forEachDead(choice, visit, &count) } catch StoreError.closed(let cause) where count > 0 {
            throw StoreError.outcomeUnknown(cause: cause ?? "the store has closed")
        }
        return count
    }

    private func forEachDead(_ choice: DeadChoice, _ visit: DeadVisit, _ count: inout Int) async throws {
        switch choice {
        case .these(let ids):
            try await requireAll(ids)
            for page in ids.pages(of: 500) {
                count += try await change { draft in
                    try visit.visit(page.compactMap { DeliveryRecord.key(id: $0) }, in: &draft)
                }
            }
        case .all:
            // What dies while this runs is not waited for, and what dies again is not met again.
            let until = RecordKey(.dead).with(time: time.now() + 1)
            var last: RecordKey?
            repeat {
                let page = try await change { [last] draft in
                    let rows = try draft.transaction.rows(RecordKey(.dead), after: last, before: until, limit: 500)
                    let visited = try visit.visit(rows.map { RecordKey(bytes: $0.value) }, in: &draft)
                    return (visited: visited, last: rows.last?.key)
                }
                count += page.visited
                last = page.last
            } while last != nil
        }
    }

    private func requireAll(_ ids: [String]) async throws {
        try await store.read { snapshot in
            for id in ids {
                guard let key = DeliveryRecord.key(id: id), try snapshot.contains(key) else {
                    throw NotifierError.deliveryNotFound(id)
                }
            }
        }
    }
}

/// What is done with each dead delivery.
private struct DeadVisit: Sendable {
    let body: @Sendable (inout OutboxDraft, inout DeliveryRecord) throws -> Void

    /// Visits those of the deliveries that are dead; returns how many there are.
    func visit(_ keys: [RecordKey], in draft: inout OutboxDraft) throws -> Int {
        var count = 0
        var seen: Set<RecordKey> = []
        for key in keys where seen.insert(key).inserted {
            guard var delivery = try draft.transaction.readable(DeliveryRecord.self, key),
                delivery.machine.state == .dead
            else { continue }
            try body(&draft, &delivery)
            count += 1
        }
        return count
    }
}

/// Which dead deliveries are meant.
enum DeadChoice: Sendable, Hashable {
    case these([String])
    case all
}

/// Where a page of dead letters ended: time of death and delivery.
struct DeadPage {
    var diedAt: Int64
    var delivery: String

    init(_ letter: Notifier.Dead.Letter) {
        diedAt = Int64(letter.diedAt)
        delivery = letter.delivery
    }

    init(text: String) throws(ArgumentError) {
        let parts = text.split(separator: ".", maxSplits: 1)
        guard parts.count == 2, let time = Int64(parts[0]), DeliveryRecord.key(id: String(parts[1])) != nil else {
            throw ArgumentError(reason: "invalid_page", "'after' must be the after of the previous page")
        }
        diedAt = time
        delivery = String(parts[1])
    }

    var text: String { "\(diedAt).\(delivery)" }

    var key: RecordKey? {
        DeliveryRecord.key(id: delivery).map { RecordKey(.dead).with(time: diedAt).with($0.tail) }
    }
}

extension DeliveryRecord {
    fileprivate func letter(_ notification: NotificationRecord?) -> Notifier.Dead.Letter {
        var letter = Notifier.Dead.Letter(
            delivery: id, notification: self.notification, device: device, uid: uid, diedAt: Int(machine.time),
            reason: machine.reason ?? "", attempts: machine.attempts)
        letter.title = notification?.text.title
        letter.lastAttempt = machine.lastAttempt
        return letter
    }
}

extension Array {
    func pages(of size: Int) -> [ArraySlice<Element>] {
        stride(from: 0, to: count, by: size).map { self[$0..<Swift.min($0 + size, count)] }
    }
}
