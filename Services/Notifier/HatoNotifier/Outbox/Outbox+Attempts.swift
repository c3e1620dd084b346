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
    /// another attempt was begun. Returns the devices that are gone now, whose deliveries are to be dropped.
    func record(_ ended: [EndedAttempt]) async throws -> [String] {
        let (policy, mails) = (policy, lastMails)
        let attempts = ended.map { ($0, randomFraction()) }
        mails.remember(ended, at: time.now())
        let gone = try await change { draft -> [GoneDevice] in
            var recording = AttemptRecording(policy: policy, mails: mails)
            return try attempts.compactMap { try recording.record($0, random: $1, in: &draft) }
        }
        firstAttempts.ended(of: ended.lazy.map(\.lease.delivery.content.notification))
        for device in gone { metrics.devicesRemoved(1, because: device.reason) }
        return gone.map(\.name)
    }

    /// The same for one attempt.
    func record(_ outcome: DeliveryOutcome, of lease: Lease) async throws {
        for device in try await record([EndedAttempt(outcome: outcome, lease: lease)]) {
            // In pages, where each would cost a transaction when it is due.
            try await dropDeliveries(of: device)
        }
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

/// A device that an attempt ended.
private struct GoneDevice: Sendable {
    var name: String
    var reason: NotifierMetrics.Removal
}

/// One transaction that records the results of attempts.
private struct AttemptRecording {
    let policy: DeliveryPolicy
    let mails: LastMails
    /// Devices as this transaction leaves them, since it does not see its own writes. Nil: there is none any more.
    private var known: [String: DeviceRecord?] = [:]

    init(policy: DeliveryPolicy, mails: LastMails) { (self.policy, self.mails) = (policy, mails) }

    /// Returns the device when it is gone now.
    mutating func record(
        _ ended: EndedAttempt, random: Double, in draft: inout OutboxDraft
    ) throws -> GoneDevice? {
        let (lease, transaction) = (ended.lease, draft.transaction)
        // One that cannot be read is set aside when its lease ends.
        guard var delivery = try transaction.readable(DeliveryRecord.self, lease.key),
            delivery.machine.state == .leased, delivery.machine.attempts == lease.attempt
        else { return nil }
        let dueKey = delivery.dueKey
        let former =
            if let known = known[delivery.device] { known } else {
                try transaction.readableDevice(delivery.device)
            }
        var (device, ended) = (former, ended)
        if case .rejected(let response) = ended.outcome, delivery.digest != nil,
            try MailThread(head: delivery).withholdsWords(in: &draft)
        {
            ended.outcome = .failed(response, retryAfter: nil)
        }
        if case .rejected(let response) = ended.outcome, delivery.pacing?.goesWithoutWords == true {
            // Others went into it, which have nothing to do with what is wrong.
            delivery.pacing = delivery.pacing?.takenBack
            ended.outcome = .failed(response, retryAfter: nil)
        }
        let isStopped = try former?.queue.map { try transaction.contains(StoppedQueueRecord.key($0)) } ?? false
        let environment: Notifier.APNsEnvironment? =
            if case .apns(let attempted) = lease.delivery.address { attempted.environment } else { nil }
        let circumstances = DeviceVerdict.Circumstances(
            now: draft.now, began: lease.began, environment: environment, isStopped: isStopped,
            mailedAt: former.flatMap { mails.time(of: $0) })
        let verdict = device?.attemptEnded(ended.outcome, circumstances, policy)
        // One that cannot be read ends its deliveries when they are due.
        let isKnown = try former == nil && transaction.contains(DeviceRecord.key(delivery.device))
        let judged = JudgedOutcome(
            outcome: ended.outcome, verdict: verdict ?? (isKnown ? .stays : .ends(.gone)),
            waitsInQueue: delivery.queue != nil)
        let isDelivered = if case .delivered = ended.outcome { true } else { false }
        if !isDelivered, delivery.pacing?.staysForOthers == true { delivery.machine.staysForOthers() }
        switch delivery.machine.attemptEnded(judged, at: draft.now, random: random, policy) {
        case .finish:
            if delivery.digest == nil {
                try draft.finishHead(delivery, dueKey: dueKey)
            } else {
                try MailThread(head: delivery).ended(dueKey: dueKey, in: &draft)
            }
            try ThreadSteps.withdrawIfShown(delivery, in: &draft)
            // What a silent push did is of no interest later, and a user can make many of them.
            if delivery.collapseKey == SilentPushes.collapseKey { draft.forgetSoon(delivery.notification, policy) }
        case .waitUntil: draft.moveHead(delivery, dueKey: dueKey)
        case .ignore, .send: break
        }
        guard let device, let former, let verdict else { return nil }
        guard case .ends(let reason) = verdict, former.state == .active else {
            keep(device, former, in: &draft)
            return nil
        }
        if device.platform == .webhook || device.staysKnown(after: ended.outcome) {
            keep(device, former, in: &draft)
        } else {
            // Where its rows stand.
            former.delete(in: &draft.writes)
            known.updateValue(nil, forKey: device.device)
        }
        return GoneDevice(name: device.device, reason: reason)
    }

    private mutating func keep(_ device: DeviceRecord, _ former: DeviceRecord, in draft: inout OutboxDraft) {
        guard device != former else { return }
        draft.writes.put(device.key, device)
        if device.tokenKey != former.tokenKey {
            if let key = former.tokenKey { draft.writes.delete(key) }
            if let key = device.tokenKey { draft.writes.put(key) }
        }
        known.updateValue(device, forKey: device.device)
    }
}

/// An outcome, and what it means for the device.
private struct JudgedOutcome {
    var outcome: DeliveryOutcome
    var verdict: DeviceVerdict
    /// Whether its queue waits, too.
    var waitsInQueue: Bool
}

extension DeliveryStateMachine {
    /// The shortest wait, in milliseconds, after an attempt that did not reach its receiver.
    private static let postponement: Int64 = 15_000
    /// The same where the queue waits, too.
    private static let requeueing = 1_000.0

    fileprivate mutating func attemptEnded(
        _ judged: JudgedOutcome, at now: Int64, random: Double, _ policy: DeliveryPolicy
    ) -> Action {
        let outcome = judged.outcome
        let report = outcome.response.report(at: now)
        switch outcome {
        case .delivered: return attemptDelivered(report, at: now)
        case .rejected: return attemptRejected(report, at: now)
        // Attempts that do not count make no wait longer: it is long from the first one.
        case .postponed:
            return attemptPostponed(report, delay: Int64(Double(Self.postponement) * (1 + random)), at: now)
        case .providerRefused where judged.waitsInQueue:
            // The queue waits, and all that is in it. Another delivery is tried next: the reason may be this one's.
            return attemptPostponed(report, delay: Int64(Self.requeueing * (1 + random)), at: now)
        case .providerRefused:
            return attemptPostponed(report, delay: Int64(Double(Self.postponement) * (1 + random)), at: now)
        case .failed, .deviceGone, .tokenRefused: break
        }
        switch judged.verdict {
        case .ends: return deviceWentAway(report, at: now)
        case .hasSwitched: return attemptPostponed(report, delay: 0, at: now)
        case .isSuspect:
            // Several times within the minute that decides, so that little waits when the mistake is mended.
            let delay = Int64(Double(Self.postponement) * (1 + random))
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
