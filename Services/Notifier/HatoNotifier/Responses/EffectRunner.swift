import HatoModel
import HatoRPC
import HatoStorage
import Logging

/// Does the effects of actions, each until it is done or refused, also those of a process before.
///
/// An effect stands in the table `effect`, and in `effectDue` at the time of its next attempt. Its record goes in the
/// transaction that records its end.
actor EffectRunner {
    private let outbox: Outbox
    private let performer: EffectPerformer
    private let auth: RPCClient
    private let metrics: ResponseMetrics
    /// Effects that are being performed.
    private var underWay: Set<RecordKey> = []
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
        _ configuration: NotifierConfiguration, _ outbox: Outbox, _ metrics: ResponseMetrics,
        _ notices: ThrottledNotices
    ) {
        guard let messagesKey = configuration.messagesKey, let authKey = configuration.authKey,
            let replyKey = configuration.replyKey
        else { return nil }
        auth = RPCClient(configuration.auth.with(credential: authKey))
        performer = EffectPerformer(
            tree: UserTree(configuration.messages.with(credential: messagesKey)),
            accounts: CurrentAccounts(auth, now: configuration.time.now), key: replyKey, limits: configuration.limits,
            notices: notices)
        self.outbox = outbox
        self.metrics = metrics
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
    func close() async {
        await performer.tree.close()
        await auth.close()
    }

    /// Begins what is due; returns when the next one is.
    private func beginDue(_ group: inout DiscardingTaskGroup) async throws -> Int64? {
        let free = Self.underWayMax - underWay.count
        guard free > 0 else { return nil }
        let due = try await outbox.dueEffects(besides: underWay, limit: free)
        for effect in due.effects where underWay.insert(effect.key).inserted {
            group.addTask { await self.perform(effect) }
        }
        return due.next
    }

    private func perform(_ effect: EffectRecord) async {
        let outcome = await performer.perform(effect)
        // Cut off by the end of the process: it is tried again after the next start.
        if case .again = outcome, Task.isCancelled { return }
        do {
            let result = try await outbox.effectEnded(effect, outcome)
            metrics.effectEnded(outcome)
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
        underWay.remove(effect.key)
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

extension Outbox {
    struct DueEffects: Sendable {
        var effects: [EffectRecord] = []
        /// When the next one is due; nil when none waits for a time.
        var next: Int64?
    }

    /// The effects that are due, the longest waiting first. Rows that lead to none go.
    func dueEffects(besides underWay: Set<RecordKey>, limit: Int) async throws -> DueEffects {
        let now = time.now()
        let (due, stray) = try await store.read { snapshot in
            var (due, stray) = (DueEffects(), [RecordKey]())
            let end = RecordKey(.effectDue).with(time: now + 1)
            // Those under way still stand there.
            for row in try snapshot.rows(RecordKey(.effectDue), before: end, limit: limit + underWay.count) {
                let key = RecordKey(.effect).with(row.key.tail.dropFirst(EffectRecord.dueTimeBytes))
                if underWay.contains(key) { continue }
                guard let effect = try snapshot.readable(EffectRecord.self, key), effect.dueKey == row.key else {
                    stray.append(row.key)
                    continue
                }
                if due.effects.count < limit { due.effects.append(effect) }
            }
            let later = try snapshot.rows(RecordKey(.effectDue), after: end, limit: 1).first
            var reader = later.map { RecordKeyReader($0.key.bytes) }
            due.next = reader?.number().map { Int64(clamping: $0) }
            return (due, stray)
        }
        if !stray.isEmpty {
            try await change { draft in for key in stray { draft.writes.delete(key) } }
        }
        return due
    }

    /// Records what came of an attempt; returns the result when the effect has ended.
    func effectEnded(_ effect: EffectRecord, _ outcome: EffectOutcome) async throws -> Notifier.Respond.Result? {
        let delay = policy.backoff.delay(afterAttempt: effect.attempts + 1, random: randomFraction(), floor: nil)
        return try await change { draft in
            guard try draft.transaction.contains(effect.key) else { return nil }
            draft.writes.delete(effect.dueKey)
            var result = Notifier.Respond.Result(effect: .done)
            switch outcome {
            case .done: break
            case .refused(let reason):
                result = .init(effect: .refused, reason: reason)
                let responder = Responder(uid: effect.uid, device: effect.device)
                var event = OutboxEvent(.action, of: effect.notification, responder, at: draft.now)
                (event.action, event.quickReply, event.reason) = (effect.action, effect.quickReply, reason)
                draft.writes.record(event)
            case .again:
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
}
