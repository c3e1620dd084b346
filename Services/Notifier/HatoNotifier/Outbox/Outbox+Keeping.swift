import HatoFollow
import HatoModel
import HatoStorage

extension Outbox {
    /// Forgets what is older than it is kept; returns when to come again, nil when nothing is kept.
    func purge() async throws -> Int64? {
        let policy = policy
        var next: Int64?
        var isMore = true
        let many = min(500, limits.deliveriesAtOnceMax)
        while isMore {
            let large: LargePurge?
            (next, isMore, large) = try await change { draft in
                var purge = Purge(policy, many: many)
                let (next, isMore) = try purge.run(on: &draft, rowsMax: 100)
                return (next, isMore, purge.large)
            }
            try await large?.run(on: self)
        }
        try await forgetEvents()
        return next
    }

    /// Forgets records of commits that followers can no longer resume from.
    private func forgetEvents() async throws {
        let oldest = time.now() - policy.keepEvents.milliseconds
        try await store.read { [store] _ in try Outbox.forgetEvents(of: store, before: oldest) }
    }

    /// On a reader thread: it may read much.
    private static func forgetEvents(of store: any Store, before oldest: Int64) throws {
        guard var version = store.keptCommits.oldest.map({ $0 - 1 }) else { return }
        let start = version
        reading: while true {
            let commits = try store.commits(after: version, limit: 256)
            guard !commits.isEmpty else { break }
            for commit in commits {
                // Commits without events that can be read have no time: they go with what follows them.
                if let time = OutboxEvent.events(of: commit).first?.time, time >= oldest { break reading }
                version = commit.version
            }
        }
        // The newest one stays, so that the store always knows where it is.
        let through = min(version, store.version - 1)
        if through > start { try store.compactCommits(through: through) }
    }

    struct Counts: Sendable {
        var pending: Int
        var leased: Int
        var dead: Int
        var nextDueAt: Int64?
    }

    func counts() async throws -> Counts {
        try await store.read { snapshot in
            let leased = try snapshot.rows(RecordKey(.leased)).map { RecordKey(.delivery).with($0.key.tail) }
            return Counts(
                pending: try snapshot.count(.lane), leased: leased.count, dead: try snapshot.count(.dead),
                nextDueAt: try snapshot.nextDueAt(besides: leased))
        }
    }
}

extension StoreReading {
    /// When the first delivery that waits is due: the heads of lanes, and what stands right behind one that is being
    /// attempted. A lane's row in `due` alone does not suffice, since it stands at the end of the lease meanwhile.
    fileprivate func nextDueAt(besides leased: [RecordKey]) throws -> Int64? {
        let attempted = Set(leased.map(\.bytes))
        var next: Int64?
        try scan(KeyRange(prefix: RecordKey(.due).bytes), reverse: false) { key, value in
            if attempted.contains(value.copied) { return .next }
            next = LaneRow(RecordKey(bytes: key.copied))?.time
            return .stop
        }
        for queue in try queueNames() {
            let prefix = RecordKey(.queued).with(queue)
            try scan(KeyRange(prefix: prefix.bytes), reverse: false) { key, value in
                if attempted.contains(value.copied) { return .next }
                if let time = LaneRow(RecordKey(bytes: key.copied))?.time { next = min(next ?? .max, time) }
                return .stop
            }
        }
        // A parked lane is due already.
        let parked = try rows(RecordKey(.parked), limit: 1).first.flatMap { LaneRow($0.key)?.time }
        if let parked { next = min(next ?? .max, parked) }
        for key in leased {
            guard let head = try readable(DeliveryRecord.self, key), let waiting = try delivery(behind: head) else {
                continue
            }
            next = min(next ?? .max, waiting.machine.time)
        }
        return next
    }
}

extension StoreReading {
    /// What stands next in the lane of a delivery, if it can be read.
    private func delivery(behind head: DeliveryRecord) throws -> DeliveryRecord? {
        try rows(head.lane.prefix, after: head.laneKey, limit: 1).first.flatMap { row in
            try readable(DeliveryRecord.self, RecordKey(bytes: row.value))
        }
    }
}

/// One transaction that forgets.
private struct Purge {
    private let policy: DeliveryPolicy
    /// A notification has several rows when deliveries of it were dropped because too many waited.
    private var visited: Set<String> = []
    /// So many deliveries are too many for one transaction.
    private let many: Int
    /// A notification with so many, which goes next, page by page.
    private(set) var large: LargePurge?

    /// Rows of reports that go in one transaction.
    private static let responsesMax = 4_096

    init(_ policy: DeliveryPolicy, many: Int) { (self.policy, self.many) = (policy, many) }

    mutating func run(on draft: inout OutboxDraft, rowsMax: Int) throws -> (next: Int64?, isMore: Bool) {
        let (transaction, cutoff) = (draft.transaction, cutoff(draft))
        let due = try transaction.rows(
            RecordKey(.purge), before: RecordKey(.purge).with(time: max(0, cutoff)), limit: rowsMax)
        // A notification can have gone to thousands of devices: the rest is for the next transaction.
        for row in due where draft.writes.count < rowsMax * 20 && large == nil { try forget(row, in: &draft) }
        // What was put off instead is seen by the next transaction only.
        if !due.isEmpty { return (nil, true) }
        let first = try transaction.rows(
            RecordKey(.purge), after: RecordKey(.purge).with(time: max(0, cutoff)), limit: 1
        ).first
        var reader = first.map { RecordKeyReader($0.key.bytes) }
        let finishedAt = reader?.number().map { Int64(clamping: min($0, UInt64(1) << 53)) }
        return (finishedAt.map { $0 + policy.keepFinished.milliseconds + 1 }, false)
    }

    private func cutoff(_ draft: OutboxDraft) -> Int64 { draft.now - policy.keepFinished.milliseconds }

    /// A notification goes as a whole: not before its last delivery has ended, and its dead are old enough.
    private mutating func forget(_ row: (key: RecordKey, value: [UInt8]), in draft: inout OutboxDraft) throws {
        let transaction = draft.transaction
        var reader = RecordKeyReader(row.key.bytes)
        let id = reader.number().flatMap { _ in reader.text() }
        if let id, row.value.isEmpty, !visited.contains(id),
            try transaction.keys(DeliveryRecord.prefix(id), limit: many).count == many
        {
            large = LargePurge(row: row.key, notification: id, rowsMax: many)
            return
        }
        draft.writes.delete(row.key)
        guard let id else { return }
        if row.value.first == RecordKey.Table.origin.rawValue {
            return try ThreadSteps.forgetDeletion(at: RecordKey(bytes: row.value), in: &draft)
        }
        if !row.value.isEmpty { return try IdempotencyRecord.forget(row.value, of: id, in: &draft) }
        guard visited.insert(id).inserted else { return }
        let notification = try transaction.readable(NotificationRecord.self, NotificationRecord.key(id))
        // Its row at its time stands.
        let isEarly = notification.map { $0.expiresAt >= cutoff(draft) } ?? false
        let (deliveries, damaged) = try transaction.deliveries(of: id)
        let waits =
            try deliveries.contains { !$0.machine.isFinished } || FanOutRecord.isUnderWay(id, transaction)
        let deadUntil = deliveries.filter { $0.machine.state == .dead }.map { $0.machine.time }.max()
            .map { $0 + policy.keepDead.milliseconds }
        if waits || (deadUntil ?? 0) > draft.now {
            if isEarly { return }
            // Its row stands `keepFinished` before the time when it is looked at again.
            let again = waits ? draft.now : (deadUntil ?? draft.now) - policy.keepFinished.milliseconds
            draft.writes.put(NotificationRecord.purgeKey(id, at: again))
            return
        }
        // Repetitions are known, and parts may come, for as long as otherwise.
        if let notification, isEarly, try !damaged.isEmpty || notification.isIncomplete(in: transaction) {
            return
        }
        guard try ResponseRecord.forgetAll(of: id, limit: Self.responsesMax, in: &draft) else {
            // The rest is for the next transaction.
            return draft.writes.put(row.key)
        }
        try IdempotencyRecord.forgetKey(of: notification, isEarly: isEarly, in: &draft)
        draft.texts.remove(id, &draft.writes)
        try FanOutRecord.remove(id, in: &draft)
        for delivery in deliveries {
            if delivery.machine.state == .dead { draft.leaveDead(delivery) }
            draft.writes.delete(delivery.key)
        }
        if let notification { try ThreadSteps.forget(notification, deliveries, in: &draft) }
        for key in damaged + [NotificationRecord.key(id)] {
            try draft.forgetSetAside(key)
            draft.writes.delete(key)
        }
    }
}

extension StoreReading {
    /// Those that can be read, and the keys of the others.
    fileprivate func deliveries(of notification: String) throws -> ([DeliveryRecord], damaged: [RecordKey]) {
        var (deliveries, damaged): ([DeliveryRecord], [RecordKey]) = ([], [])
        for row in try rows(DeliveryRecord.prefix(notification)) {
            if let delivery = try? RecordCodec.decode(DeliveryRecord.self, row.value, key: row.key.bytes) {
                deliveries.append(delivery)
            } else {
                damaged.append(row.key)
            }
        }
        return (deliveries, damaged)
    }
}
