import HatoModel
import HatoPush
import HatoStorage

/// The right to make one attempt, until the lease ends.
struct Lease: Sendable {
    var key: RecordKey
    /// Which attempt it is, from 1; a result of an earlier one comes too late.
    var attempt: Int
    var platform: Notifier.Platform
    var delivery: Delivery
}

/// What leasing found.
struct LeaseRound: Sendable {
    var leases: [Lease] = []
    /// Whether there may be more that is due now.
    var isFull = false
    /// When the next lane is due; nil when none waits.
    var nextDueAt: Int64?
}

extension Outbox {
    /// Leases up to `limit` deliveries that are due, the heads of as many lanes; what has expired or lost its device
    /// ends.
    func lease(limit: Int) async throws -> LeaseRound {
        let (policy, now) = (policy, time.now())
        return try await change { draft in
            var round = LeaseRound()
            let due = try draft.transaction.rows(
                RecordKey(.due), before: RecordKey(.due).with(time: now + 1), limit: limit)
            for row in due {
                guard let lease = try draft.lease(row, until: now + policy.lease.milliseconds, policy) else { continue }
                round.leases.append(lease)
            }
            round.isFull = due.count == limit
            round.nextDueAt = try draft.transaction.rows(
                RecordKey(.due), after: RecordKey(.due).with(time: now + 1), limit: 1
            ).first.flatMap { row in
                var reader = RecordKeyReader(row.key.bytes)
                return reader.number().map { Int64($0) }
            }
            return round
        }
    }

    /// Writes down what became of an attempt. Without effect when the lease has lapsed and another attempt was begun.
    func record(_ outcome: DeliveryOutcome, of lease: Lease) async throws {
        let (policy, random) = (policy, randomFraction())
        try await change { draft in
            guard var delivery = try draft.transaction.record(DeliveryRecord.self, lease.key),
                delivery.machine.state == .leased, delivery.machine.attempts == lease.attempt
            else { return }
            let dueKey = delivery.dueKey
            var action = delivery.machine.attemptEnded(outcome, at: draft.now, random: random, policy)
            let isKnown = try draft.learn(outcome, about: delivery.device, policy)
            // Nobody is there any more to try it again for.
            if !isKnown, case .waitUntil = action { action = delivery.machine.deviceWentAway(nil, at: draft.now) }
            switch action {
            case .finish: try draft.finishHead(delivery, dueKey: dueKey)
            case .waitUntil: try draft.moveHead(delivery, dueKey: dueKey)
            case .ignore, .send: break
            }
        }
    }

    /// Drops what waits for a device that is gone, in pages, each a transaction of its own. What is being attempted
    /// goes on, and is dropped if it fails.
    func dropDeliveries(of device: String) async throws {
        var end: RecordKey?
        repeat {
            end = try await change { [end] in try $0.dropDeliveries(of: device, before: end, limit: 500) }
        } while end != nil
    }

    /// Makes due what a process held that is no more.
    func reclaimLeases() async throws {
        try await change { draft in
            for row in try draft.transaction.rows(RecordKey(.leased)) {
                let key = RecordKey(.delivery).with(row.key.tail)
                draft.writes.delete(row.key)
                guard var delivery = try draft.transaction.record(DeliveryRecord.self, key) else { continue }
                let dueKey = delivery.dueKey
                guard case .waitUntil = delivery.machine.leaseReclaimed(at: draft.now) else { continue }
                try draft.moveHead(delivery, dueKey: dueKey)
            }
        }
    }
}

extension DeliveryStateMachine {
    mutating func attemptEnded(
        _ outcome: DeliveryOutcome, at now: Int64, random: Double, _ policy: DeliveryPolicy
    ) -> Action {
        switch outcome {
        case .delivered(let answer): return attemptDelivered(answer.report(at: now), at: now)
        case .deviceGone(let answer): return deviceWentAway(answer.report(at: now), at: now)
        case .failed(let answer, let floor):
            let delay = policy.backoff.delay(afterAttempt: attempts, random: random, floor: floor)
            return attemptFailed(answer.report(at: now), delay: delay, at: now, policy)
        }
    }
}

extension DeliveryAnswer {
    fileprivate func report(at now: Int64) -> Notifier.AttemptReport {
        Notifier.AttemptReport(at: Int(now), status: status, error: error)
    }
}

extension OutboxDraft {
    /// Nil when the head of this lane is not to be attempted now.
    fileprivate mutating func lease(
        _ row: (key: RecordKey, value: [UInt8]), until: Int64, _ policy: DeliveryPolicy
    ) throws -> Lease? {
        guard var delivery = try transaction.record(DeliveryRecord.self, RecordKey(bytes: row.value)) else {
            writes.delete(row.key)
            return nil
        }
        let device = try transaction.record(DeviceRecord.self, DeviceRecord.key(delivery.device))
        guard let device, device.state == .active else {
            _ = delivery.machine.deviceWentAway(nil, at: now)
            try finishHead(delivery, dueKey: row.key)
            return nil
        }
        switch delivery.machine.leaseRequested(at: now, until: until, policy) {
        case .finish:
            try finishHead(delivery, dueKey: row.key)
            return nil
        case .ignore, .waitUntil:
            return nil
        case .send:
            let key = NotificationRecord.key(delivery.notification)
            guard let notification = try transaction.record(NotificationRecord.self, key) else {
                throw UnreadableRecord(key: key.bytes)
            }
            try moveHead(delivery, dueKey: row.key)
            let address: DeviceAddress
            do { address = try device.address(at: now) } catch { throw UnreadableRecord(key: device.key.bytes) }
            return Lease(
                key: delivery.key, attempt: delivery.machine.attempts, platform: device.platform,
                delivery: Delivery(
                    id: delivery.id, address: address, content: notification.content(for: delivery),
                    createdAt: notification.createdAt))
        }
    }

    /// Remembers whether the receiver works; one that is gone or has only failed for days is disabled. False when there
    /// is no such device any more.
    fileprivate mutating func learn(
        _ outcome: DeliveryOutcome, about name: String, _ policy: DeliveryPolicy
    ) throws -> Bool {
        guard var device = try transaction.record(DeviceRecord.self, DeviceRecord.key(name)) else { return false }
        switch outcome {
        case .delivered:
            guard device.failingSince != nil else { return true }
            device.failingSince = nil
        case .deviceGone:
            device.state = .disabled
            device.disabledReason = "gone"
        case .failed:
            if let since = device.failingSince {
                guard now - since >= policy.disableAfter.milliseconds, device.state == .active else { return true }
                device.state = .disabled
                device.disabledReason = "failing"
            } else {
                device.failingSince = now
            }
        }
        writes.put(device.key, device)
        return true
    }
}

extension NotificationRecord {
    fileprivate func content(for delivery: DeliveryRecord) -> DeliveryContent {
        var content = DeliveryContent(notification: id, device: delivery.device, uid: delivery.uid, text: text)
        content.data = data
        content.trigger = trigger
        content.path = path
        content.collapseKey = collapseKey
        return content
    }
}
