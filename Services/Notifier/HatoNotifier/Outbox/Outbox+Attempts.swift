import HatoModel
import HatoPush
import HatoStorage

extension Outbox {
    /// Writes down what became of an attempt. Without effect when the lease has lapsed and another attempt was begun.
    func record(_ outcome: DeliveryOutcome, of lease: Lease) async throws {
        let (policy, random) = (policy, randomFraction())
        let disabled = try await change { draft -> String? in
            guard var delivery = try draft.transaction.record(DeliveryRecord.self, lease.key),
                delivery.machine.state == .leased, delivery.machine.attempts == lease.attempt
            else { return nil }
            let dueKey = delivery.dueKey
            var action = delivery.machine.attemptEnded(outcome, at: draft.now, random: random, policy)
            let state = try draft.learn(outcome, about: delivery.device, policy)
            // The device has gone: it is not tried again.
            if state == nil, case .waitUntil = action { action = delivery.machine.deviceWentAway(nil, at: draft.now) }
            switch action {
            case .finish: try draft.finishHead(delivery, dueKey: dueKey)
            case .waitUntil: draft.moveHead(delivery, dueKey: dueKey)
            case .ignore, .send: break
            }
            return state == .disabled ? delivery.device : nil
        }
        // In pages, where each would cost a transaction when it is due.
        if let disabled { try await dropDeliveries(of: disabled) }
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
                // One that cannot be read is set aside when its lease ends.
                guard var delivery = try draft.transaction.readable(DeliveryRecord.self, key) else { continue }
                let dueKey = delivery.dueKey
                guard case .waitUntil = delivery.machine.leaseReclaimed(at: draft.now) else { continue }
                draft.moveHead(delivery, dueKey: dueKey)
            }
        }
    }
}

extension DeliveryStateMachine {
    /// The shortest wait, in milliseconds, after an attempt that did not reach its receiver.
    private static let postponement: Int64 = 15_000

    mutating func attemptEnded(
        _ outcome: DeliveryOutcome, at now: Int64, random: Double, _ policy: DeliveryPolicy
    ) -> Action {
        switch outcome {
        case .delivered(let answer): return attemptDelivered(answer.report(at: now), at: now)
        case .deviceGone(let answer, _): return deviceWentAway(answer.report(at: now), at: now)
        case .rejected(let answer), .tokenRefused(let answer): return attemptRejected(answer.report(at: now), at: now)
        case .providerRefused(let answer, let floor):
            let delay = max(Int64(Double(Self.postponement) * (1 + random)), floor?.milliseconds ?? 0)
            return attemptPostponed(answer.report(at: now), delay: delay, at: now)
        case .postponed(let answer):
            // Attempts that do not count make no wait longer: it is long from the first one.
            let delay = Int64(Double(Self.postponement) * (1 + random))
            return attemptPostponed(answer.report(at: now), delay: delay, at: now)
        case .failed(let answer, let floor):
            let delay = policy.backoff.delay(afterAttempt: attempts, random: random, floor: floor)
            return attemptFailed(answer.report(at: now), delay: delay, at: now, policy)
        }
    }
}

extension DeliveryResponse {
    fileprivate func report(at now: Int64) -> Notifier.AttemptReport {
        Notifier.AttemptReport(at: Int(now), status: status, error: error)
    }
}

extension OutboxDraft {
    /// Remembers whether the receiver works; one that is gone or has only failed for days is disabled. Returns its
    /// state; nil when there is no such device any more, or none that can be read.
    fileprivate mutating func learn(
        _ outcome: DeliveryOutcome, about name: String, _ policy: DeliveryPolicy
    ) throws -> Notifier.DeviceState? {
        guard var device = try transaction.readable(DeviceRecord.self, DeviceRecord.key(name)) else { return nil }
        switch outcome {
        case .postponed, .rejected, .tokenRefused, .providerRefused: return device.state
        case .delivered:
            guard device.failingSince != nil else { return device.state }
            device.failingSince = nil
        case .deviceGone:
            device.state = .disabled
            device.disabledReason = "gone"
        case .failed:
            if let since = device.failingSince {
                guard now - since >= policy.disableAfter.milliseconds, device.state == .active else {
                    return device.state
                }
                device.state = .disabled
                device.disabledReason = "failing"
            } else {
                device.failingSince = now
            }
        }
        writes.put(device.key, device)
        return device.state
    }
}
