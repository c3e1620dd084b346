import HatoModel
import HatoStorage

/// Forgets a notification with many deliveries: those that are old enough go page by page, the notification last.
struct LargePurge: Sendable {
    /// Its row among those that are due.
    let row: RecordKey
    let notification: String
    /// Deliveries of one transaction.
    let rowsMax: Int

    /// How far it is.
    private struct Progress: Sendable {
        var last: RecordKey?
        var waits = false
        /// Until when a dead delivery is kept.
        var deadUntil: Int64?
        var isDone = false
    }

    /// Each page is a transaction. After a crash it begins again, with what is left.
    func run(on outbox: Outbox) async throws {
        let policy = outbox.policy
        var progress = Progress()
        repeat {
            progress = try await outbox.change { [progress] draft in
                try forgetPage(from: progress, policy, in: &draft)
            }
        } while !progress.isDone
    }

    private func forgetPage(
        from former: Progress, _ policy: DeliveryPolicy, in draft: inout OutboxDraft
    ) throws -> Progress {
        var progress = former
        let transaction = draft.transaction
        let key = NotificationRecord.key(notification)
        let record = try transaction.readable(NotificationRecord.self, key)
        let isEarly = record.map { $0.expiresAt >= draft.now - policy.keepFinished.milliseconds } ?? false
        // Its row at its time stands. While a delivery needs the texts, one is to come, waits or is dead.
        // An earlier version wrote no number of them.
        if let record, isEarly,
            try record.hasTexts || transaction.contains(TextUses.key(notification))
                || record.isIncomplete(in: transaction)
        {
            draft.writes.delete(row)
            progress.isDone = true
            return progress
        }
        let rows = try transaction.rows(DeliveryRecord.prefix(notification), after: progress.last, limit: rowsMax)
        var gone: [DeliveryRecord] = []
        for row in rows {
            let delivery = try? RecordCodec.decode(DeliveryRecord.self, row.value, key: row.key.bytes)
            if let machine = delivery?.machine, !machine.isFinished {
                progress.waits = true
                continue
            }
            if let delivery, delivery.machine.state == .dead {
                let end = delivery.machine.time + policy.keepDead.milliseconds
                if end > draft.now {
                    progress.deadUntil = max(progress.deadUntil ?? 0, end)
                    continue
                }
                draft.leaveDead(delivery)
            }
            if let delivery { gone.append(delivery) } else { try draft.forgetSetAside(row.key) }
            draft.writes.delete(row.key)
        }
        if let record { ThreadSteps.forgetShown(record, gone, in: &draft) }
        progress.last = rows.last?.key ?? progress.last
        guard rows.count < rowsMax else { return progress }
        if try FanOutRecord.isUnderWay(notification, transaction) { progress.waits = true }
        if progress.waits || progress.deadUntil != nil {
            // Its row stands `keepFinished` before the time when it is looked at again.
            let again =
                progress.waits ? draft.now : (progress.deadUntil ?? draft.now) - policy.keepFinished.milliseconds
            draft.writes.delete(row)
            draft.writes.put(NotificationRecord.purgeKey(notification, at: again))
            progress.isDone = true
            return progress
        }
        // There may be one of each user.
        guard try ResponseRecord.forgetAll(of: notification, limit: rowsMax, in: &draft) else { return progress }
        progress.isDone = true
        draft.writes.delete(row)
        if let record { try ThreadSteps.forget(record, [], in: &draft) }
        try IdempotencyRecord.forgetKey(of: record, isEarly: isEarly, in: &draft)
        draft.texts.remove(notification, &draft.writes)
        try FanOutRecord.remove(notification, in: &draft)
        try draft.forgetSetAside(key)
        draft.writes.delete(key)
        return progress
    }
}

extension IdempotencyRecord {
    /// The notification goes. One that goes early leaves the key that makes repetitions known for as long as otherwise.
    static func forgetKey(
        of notification: NotificationRecord?, isEarly: Bool, in draft: inout OutboxDraft
    ) throws {
        guard let notification else { return }
        if !isEarly {
            if let key = notification.idempotencyKey { try forget(key, of: notification.id, in: &draft) }
        } else if let key = notification.idempotencyKey {
            draft.writes.put(notification.purgeKey, bytes: key)
        } else {
            draft.writes.delete(notification.purgeKey)
        }
    }

    /// A later notification may have taken the key since it expired.
    static func forget(_ key: [UInt8], of notification: String, in draft: inout OutboxDraft) throws {
        let key = RecordKey(bytes: key)
        let record = try draft.transaction.readable(IdempotencyRecord.self, key)
        if record?.notification == notification { draft.writes.delete(key) }
    }
}
