import HatoModel
import HatoStorage

extension Outbox {
    /// Forgets what is older than it is kept; returns when to come again, nil when nothing is kept.
    func purge() async throws -> Int64? {
        let policy = policy
        var next: Int64?
        var isMore = true
        while isMore {
            (next, isMore) = try await change { draft in try draft.purge(policy, rowsMax: 100) }
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
                let events =
                    (try? RecordCodec.decode([OutboxEvent].self, commit.record, key: [])) ?? []
                // Commits without events that can be read have no time: they go with what follows them.
                if let time = events.first?.time, time >= oldest { break reading }
                version = commit.version
            }
        }
        // The newest one stays, so that the store always knows where it is.
        let through = min(version, store.version - 1)
        if through > start { try store.compactCommits(through: through) }
    }

    func status(of notification: String) async throws -> Notifier.Status.Result? {
        try await store.read { snapshot in
            guard let record = try snapshot.record(NotificationRecord.self, NotificationRecord.key(notification)) else {
                return nil
            }
            let prefix = DeliveryRecord.prefix(notification)
            let deliveries = try snapshot.rows(prefix).compactMap { row in
                try? RecordCodec.decode(DeliveryRecord.self, row.value, key: row.key.bytes).shown
            }
            var result = Notifier.Status.Result(
                notification: notification, createdAt: Int(record.createdAt), expiresAt: Int(record.expiresAt),
                deliveries: deliveries)
            result.title = record.text.title
            result.body = record.text.body
            result.trigger = record.trigger
            result.path = record.path
            return result
        }
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

extension OutboxDraft {
    fileprivate mutating func purge(_ policy: DeliveryPolicy, rowsMax: Int) throws -> (next: Int64?, isMore: Bool) {
        let cutoff = now - policy.keepFinished.milliseconds
        let due = try transaction.rows(
            RecordKey(.purge), before: RecordKey(.purge).with(time: max(0, cutoff)), limit: rowsMax)
        // A notification can have gone to thousands of devices: the rest is for the next transaction.
        for row in due where writes.count < rowsMax * 20 { try purge(row.key, policy) }
        // What was put off instead is seen by the next transaction only.
        if !due.isEmpty { return (nil, true) }
        let first = try transaction.rows(
            RecordKey(.purge), after: RecordKey(.purge).with(time: max(0, cutoff)), limit: 1
        ).first
        var reader = first.map { RecordKeyReader($0.key.bytes) }
        let finishedAt = reader?.number().map { Int64(clamping: min($0, UInt64(1) << 53)) }
        return (finishedAt.map { $0 + policy.keepFinished.milliseconds + 1 }, false)
    }

    /// A notification goes as a whole: not before its last delivery has ended, and its dead are old enough.
    private mutating func purge(_ key: RecordKey, _ policy: DeliveryPolicy) throws {
        writes.delete(key)
        var reader = RecordKeyReader(key.bytes)
        guard reader.number() != nil, let id = reader.text() else { return }
        let (deliveries, damaged) = try deliveries(of: id)
        let waits = deliveries.contains { !$0.machine.isFinished }
        let deadUntil = deliveries.filter { $0.machine.state == .dead }.map { $0.machine.time }.max()
            .map { $0 + policy.keepDead.milliseconds }
        if waits || (deadUntil ?? 0) > now {
            // Its row stands `keepFinished` before the time when it is looked at again.
            let again = waits ? now : (deadUntil ?? now) - policy.keepFinished.milliseconds
            writes.put(NotificationRecord.purgeKey(id, at: again))
            return
        }
        if let notification = try transaction.readable(NotificationRecord.self, NotificationRecord.key(id)),
            let bytes = notification.idempotencyKey
        {
            // A later notification may have taken the key since it expired.
            let key = RecordKey(bytes: bytes)
            if try transaction.readable(IdempotencyRecord.self, key)?.notification == id { writes.delete(key) }
        }
        for delivery in deliveries {
            if delivery.machine.state == .dead { leaveDead(delivery) }
            writes.delete(delivery.key)
        }
        for key in damaged + [NotificationRecord.key(id)] {
            try forgetSetAside(key)
            writes.delete(key)
        }
    }

    /// Those that can be read, and the keys of the others.
    private func deliveries(of notification: String) throws -> ([DeliveryRecord], damaged: [RecordKey]) {
        var (deliveries, damaged): ([DeliveryRecord], [RecordKey]) = ([], [])
        for row in try transaction.rows(DeliveryRecord.prefix(notification)) {
            if let delivery = try? RecordCodec.decode(DeliveryRecord.self, row.value, key: row.key.bytes) {
                deliveries.append(delivery)
            } else {
                damaged.append(row.key)
            }
        }
        return (deliveries, damaged)
    }
}
