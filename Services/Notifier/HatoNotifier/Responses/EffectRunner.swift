import HatoModel
import HatoRPC
import HatoStorage
import Logging

/// Where effects report to.
struct EffectReports: Sendable {
    let metrics: ResponseMetrics
    let notices: ThrottledNotices
}

/// Does the effects of actions, each until it is done or refused, also those of a process before.
///
/// An effect stands in the table `effect`, and in `effectDue` at the time of its next attempt. Its record goes in the
/// transaction that records its end.
actor EffectRunner {
    private let outbox: Outbox
    private let performer: EffectPerformer
    private let metrics: ResponseMetrics
    /// When this process began: it made no attempt of an effect that is older.
    private let startedAt: Int64
    /// The users whose effects are being performed: each has one slot.
    private var underWay: Set<String> = []
    /// Why the key of the notifier was refused, until an effect ends.
    private(set) var keyProblem: String?
    /// Calls that wait for an effect.
    private var waiting: [RecordKey: [Int: AsyncStream<Notifier.Respond.Result>.Continuation]] = [:]
    private var lastTicket = 0
    /// Rings when something may be due.
    private let bell: AsyncStream<Void>
    private let ring: AsyncStream<Void>.Continuation

    private static let underWayMax = 16
    private static let pause: Int64 = 1_000

    /// Nil without the keys that it needs.
    init?(
        _ configuration: NotifierConfiguration, _ outbox: Outbox, _ accounts: CurrentAccounts?,
        _ reports: EffectReports
    ) {
        guard let messagesKey = configuration.messagesKey, let accounts, let replyKey = configuration.replyKey else {
            return nil
        }
        performer = EffectPerformer(
            tree: UserTree(configuration.messages.with(credential: messagesKey)),
            accounts: accounts, key: replyKey, limits: configuration.limits, notices: reports.notices)
        self.outbox = outbox
        metrics = reports.metrics
        startedAt = configuration.time.now()
        (bell, ring) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The tree as users see it.
    nonisolated var tree: UserTree { performer.tree }

    /// An effect has been written down.
    nonisolated func wake() { ring.yield() }

    /// Until cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            var alarm = await turn(&group)
            for await _ in bell {
                alarm?.cancel()
                alarm = await turn(&group)
            }
            alarm?.cancel()
        }
    }

    /// Begins what is due; returns what rings when the next one is.
    private func turn(_ group: inout DiscardingTaskGroup) async -> Task<Void, Never>? {
        var next: Int64?
        do { next = try await beginDue(&group) } catch {
            performer.notices.notice(
                .trigger("effects"), "effects of actions cannot be read", ["error": "\(error)"], level: .error)
            next = outbox.time.now() + Self.pause
        }
        // Unstructured: it only rings, and is cancelled by the next turn.
        return next.map { time in
            Task { [outbox, ring] in
                do { try await outbox.time.sleepUntil(time) } catch { return }
                ring.yield()
            }
        }
    }

    /// Ends the calls that are under way.
    func close() async { await performer.tree.close() }

    /// Begins what is due; returns when the next one is.
    private func beginDue(_ group: inout DiscardingTaskGroup) async throws -> Int64? {
        let free = Self.underWayMax - underWay.count
        guard free > 0 else { return nil }
        let due = try await EffectRows(outbox).due(besides: underWay, limit: free)
        if due.hasStray { ring.yield() }
        for effect in due.effects where underWay.insert(effect.uid).inserted {
            group.addTask { await self.perform(effect) }
        }
        return due.next
    }

    private func perform(_ effect: EffectRecord) async {
        // One of a process before may be done, and one whose first attempt had no response.
        let isFirst = effect.attempts == 0 && effect.respondedAt > startedAt
        let outcome = await performer.perform(effect, isFirst: isFirst)
        // Cut off by the end of the process: it is tried again after the next start.
        if Task.isCancelled, !outcome.isEnd { return }
        Failpoint.pushAfterEffect.pass()
        switch outcome {
        case .done, .reported, .refused: keyProblem = nil
        case .keyRefused(let reason): keyProblem = reason
        case .again: break
        }
        do {
            let result = try await EffectRows(outbox).ended(effect, outcome)
            metrics.effectEnded(outcome, result)
            if let result {
                for waiter in waiting.removeValue(forKey: effect.key)?.values.map(\.self) ?? [] {
                    waiter.yield(result)
                    waiter.finish()
                }
            }
        } catch {
            performer.notices.notice(
                .trigger("effects"), "the end of an effect cannot be recorded", ["error": "\(error)"], level: .error)
            // The store says no: it would say no again at once.
            try? await outbox.time.sleep(for: .milliseconds(Self.pause))
        }
        underWay.remove(effect.uid)
        ring.yield()
    }

    /// What became of an effect, when that is known within a time; else that it is pending.
    func result(
        of notification: String, _ uid: String, within limit: Duration
    ) async throws -> Notifier.Respond.Result {
        let key = EffectRecord.key(notification, uid)
        lastTicket += 1
        let ticket = lastTicket
        let (results, waiter) = AsyncStream.makeStream(
            of: Notifier.Respond.Result.self, bufferingPolicy: .bufferingNewest(1))
        waiting[key, default: [:]][ticket] = waiter
        defer {
            waiting[key]?[ticket] = nil
            if waiting[key]?.isEmpty == true { waiting[key] = nil }
        }
        // It may have ended before it was waited for.
        let response = try await outbox.store.read {
            try $0.readable(ResponseRecord.self, ResponseRecord.key(notification, uid))
        }
        if let response, response.effect != .pending { return response.result }
        // Unstructured: it only ends the waiting.
        let timer = Task { [outbox] in
            try? await outbox.time.sleep(for: limit)
            waiter.finish()
        }
        defer { timer.cancel() }
        for await result in results { return result }
        return .init(effect: .pending)
    }
}

extension ResponseRecord {
    var result: Notifier.Respond.Result { .init(effect: effect, reason: reason) }
}

/// The rows of effects that are not done yet.
private struct EffectRows: Sendable {
    private let outbox: Outbox

    init(_ outbox: Outbox) { self.outbox = outbox }

    struct Due: Sendable {
        var effects: [EffectRecord] = []
        /// When the next one is due; nil when none waits for a time.
        var next: Int64?
        /// Whether rows went that led to no effect that can be read: then more may be due.
        var hasStray = false
    }

    struct StrayRow: Sendable {
        var row: RecordKey
        /// The effect, where it cannot be read.
        var unreadable: RecordKey?
    }

    /// The effects that are due, the longest waiting first, and one of each user that is not among `users`. Rows that
    /// lead to none go, and effects that cannot be read are set aside.
    func due(besides users: Set<String>, limit: Int) async throws -> Due {
        let now = outbox.time.now()
        let (found, stray) = try await outbox.store.read { snapshot in
            try snapshot.dueEffects(besides: users, now, limit)
        }
        guard !stray.isEmpty else { return found }
        var due = found
        due.hasStray = true
        try await outbox.change { draft in
            for stray in stray {
                draft.writes.delete(stray.row)
                if let key = stray.unreadable { try Self.setAside(key, in: &draft) }
            }
        }
        return due
    }

    /// Records what came of an attempt; returns the result when the effect has ended.
    func ended(_ effect: EffectRecord, _ outcome: EffectOutcome) async throws -> Notifier.Respond.Result? {
        let delay = outbox.policy.backoff.delay(
            afterAttempt: effect.attempts + 1, random: outbox.randomFraction(), floor: nil)
        let timeToLive = outbox.policy.timeToLive
        return try await outbox.change { draft in
            guard try draft.transaction.contains(effect.key) else { return nil }
            draft.writes.delete(effect.dueKey)
            var result = Notifier.Respond.Result(effect: .done)
            switch outcome {
            case .done: break
            case .reported(let report):
                do { try report.accept(for: timeToLive, in: &draft) } catch let refusal as EffectRefusal {
                    result = Self.refused(effect, because: refusal.reason, in: &draft)
                }
            case .refused(let reason): result = Self.refused(effect, because: reason, in: &draft)
            case .again, .keyRefused:
                var later = effect
                later.attempts += 1
                later.dueAt = draft.now + delay
                draft.writes.put(later.key, later)
                draft.writes.put(later.dueKey)
                return nil
            }
            draft.writes.delete(effect.key)
            let key = ResponseRecord.key(effect.notification, effect.uid)
            if var response = try draft.transaction.readable(ResponseRecord.self, key) {
                (response.effect, response.reason) = (result.effect, result.reason)
                draft.writes.put(key, response)
            }
            return result
        }
    }

    private static func refused(
        _ effect: EffectRecord, because reason: String, in draft: inout OutboxDraft
    ) -> Notifier.Respond.Result {
        let responder = Responder(uid: effect.uid, device: effect.device)
        var event = OutboxEvent(.action, of: effect.notification, responder, at: draft.now)
        (event.action, event.quickReply, event.reason) = (effect.action, effect.quickReply, reason)
        draft.writes.record(event)
        return .init(effect: .refused, reason: reason)
    }

    /// An effect that cannot be read will not be done.
    private static func setAside(_ key: RecordKey, in draft: inout OutboxDraft) throws {
        try draft.setAside(key)
        var reader = RecordKeyReader(key.bytes)
        guard let uid = reader.text(), let notification = reader.text() else { return }
        let responseKey = ResponseRecord.key(notification, uid)
        guard var response = try draft.transaction.readable(ResponseRecord.self, responseKey),
            response.effect == .pending
        else { return }
        (response.effect, response.reason) = (.refused, "unreadable")
        draft.writes.put(responseKey, response)
    }
}

extension StoreReading {
    /// Rows that are looked at in one go: those of users that have a slot stand there, too.
    private static var dueRowsMax: Int { 1_024 }

    fileprivate func dueEffects(
        besides users: Set<String>, _ now: Int64, _ limit: Int
    ) throws -> (EffectRows.Due, [EffectRows.StrayRow]) {
        var (due, stray, users) = (EffectRows.Due(), [EffectRows.StrayRow](), users)
        let end = RecordKey(.effectDue).with(time: now + 1)
        for row in try rows(RecordKey(.effectDue), before: end, limit: Self.dueRowsMax) {
            guard due.effects.count < limit else { break }
            let key = RecordKey(.effect).with(row.key.tail.dropFirst(EffectRecord.dueTimeBytes))
            var reader = RecordKeyReader(key.bytes)
            if let uid = reader.text(), users.contains(uid) { continue }
            do {
                guard let effect = try record(EffectRecord.self, key), effect.dueKey == row.key else {
                    stray.append(.init(row: row.key))
                    continue
                }
                users.insert(effect.uid)
                due.effects.append(effect)
            } catch is UnreadableRecord {
                stray.append(.init(row: row.key, unreadable: key))
            }
        }
        let later = try rows(RecordKey(.effectDue), after: end, limit: 1).first
        var reader = later.map { RecordKeyReader($0.key.bytes) }
        due.next = reader?.number().map { Int64(clamping: $0) }
        return (due, stray)
    }
}
