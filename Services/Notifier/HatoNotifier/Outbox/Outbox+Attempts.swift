import HatoModel
import HatoPush
import HatoStorage

/// An attempt that has ended.
struct EndedAttempt: Sendable {
    var outcome: DeliveryOutcome
    var lease: Lease
}

extension Outbox {
    /// Writes down what became of attempts, in one transaction. Without effect for one whose lease has lapsed while
    /// another attempt was begun.
    func record(_ ended: [EndedAttempt]) async throws {
        let policy = policy
        let attempts = ended.map { ($0, randomFraction()) }
        let gone = try await change { draft -> [String] in
            var devices = AttemptedDevices()
            return try attempts.compactMap { try draft.record($0, random: $1, &devices, policy) }
        }
        // In pages, where each would cost a transaction when it is due.
        for device in gone { try await dropDeliveries(of: device) }
    }

    /// The same for one attempt.
    func record(_ outcome: DeliveryOutcome, of lease: Lease) async throws {
        try await record([EndedAttempt(outcome: outcome, lease: lease)])
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

/// The devices that attempts of one transaction went to, as it leaves them: it does not see its own writes.
struct AttemptedDevices {
    /// Nil: there is none, or none any more.
    private var known: [String: DeviceRecord?] = [:]

    fileprivate func device(_ name: String, _ reading: any StoreReading) throws -> DeviceRecord? {
        if let known = known[name] { return known }
        return try reading.readable(DeviceRecord.self, DeviceRecord.key(name))
    }

    fileprivate mutating func remember(_ device: DeviceRecord?, _ name: String) {
        known.updateValue(device, forKey: name)
    }
}

extension OutboxDraft {
    /// Returns the device when it is gone now.
    fileprivate mutating func record(
        _ ended: EndedAttempt, random: Double, _ devices: inout AttemptedDevices, _ policy: DeliveryPolicy
    ) throws -> String? {
        let lease = ended.lease
        // One that cannot be read is set aside when its lease ends.
        guard var delivery = try transaction.readable(DeliveryRecord.self, lease.key),
            delivery.machine.state == .leased, delivery.machine.attempts == lease.attempt
        else { return nil }
        let dueKey = delivery.dueKey
        let former = try devices.device(delivery.device, transaction)
        var device = former
        let isStopped = try former?.queue.map { try transaction.contains(StoppedQueueRecord.key($0)) } ?? false
        let verdict = device?.attemptEnded(
            ended.outcome, DeviceVerdict.Circumstances(now: now, began: lease.began, isStopped: isStopped), policy)
        let action = delivery.machine.attemptEnded(
            ended.outcome, verdict ?? .ends("gone"), at: now, random: random, policy)
        switch action {
        case .finish: try finishHead(delivery, dueKey: dueKey)
        case .waitUntil: moveHead(delivery, dueKey: dueKey)
        case .ignore, .send: break
        }
        guard let device, let former, let verdict else { return nil }
        let isGone = if case .ends = verdict { former.state == .active } else { false }
        if isGone, device.platform != .webhook {
            device.delete(in: &writes)
            devices.remember(nil, device.device)
        } else if device != former {
            writes.put(device.key, device)
            devices.remember(device, device.device)
        }
        return isGone ? device.device : nil
    }
}

extension DeliveryStateMachine {
    /// The shortest wait, in milliseconds, after an attempt that did not reach its receiver.
    private static let postponement: Int64 = 15_000

    fileprivate mutating func attemptEnded(
        _ outcome: DeliveryOutcome, _ verdict: DeviceVerdict, at now: Int64, random: Double, _ policy: DeliveryPolicy
    ) -> Action {
        let report = outcome.response.report(at: now)
        switch outcome {
        case .delivered: return attemptDelivered(report, at: now)
        case .rejected: return attemptRejected(report, at: now)
        // Attempts that do not count make no wait longer: it is long from the first one.
        case .postponed:
            return attemptPostponed(report, delay: Int64(Double(Self.postponement) * (1 + random)), at: now)
        // The queue waits, and all that is in it: the delivery keeps its place.
        case .providerRefused: return attemptPostponed(report, delay: 0, at: now)
        case .failed, .deviceGone, .tokenRefused: break
        }
        switch verdict {
        case .ends: return deviceWentAway(report, at: now)
        case .hasSwitched: return attemptPostponed(report, delay: 0, at: now)
        case .isSuspect:
            let delay = DeviceVerdict.suspicion + Int64(Double(DeviceVerdict.suspicion) * random)
            return attemptPostponed(report, delay: delay, at: now)
        case .stays:
            let floor: Duration? = if case .failed(_, let floor) = outcome { floor } else { nil }
            let delay = policy.backoff.delay(afterAttempt: attempts, random: random, floor: floor)
            return attemptFailed(report, delay: delay, at: now)
        }
    }
}

extension DeliveryOutcome {
    /// What the receiver responded, or why it was not called.
    var response: DeliveryResponse {
        switch self {
        case .delivered(let response), .failed(let response, _), .postponed(let response), .deviceGone(let response, _),
            .tokenRefused(let response), .rejected(let response), .providerRefused(let response, _):
            response
        }
    }
}

extension DeliveryResponse {
    fileprivate func report(at now: Int64) -> Notifier.AttemptReport {
        var report = Notifier.AttemptReport(at: Int(now), status: status, error: error)
        report.id = providerID
        return report
    }
}
