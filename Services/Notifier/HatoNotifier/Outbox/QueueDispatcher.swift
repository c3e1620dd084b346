import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import Logging
import Synchronization

/// Delivers what waits in one provider queue: leases what is due, has the channel attempt it, and sleeps until more is.
/// It never polls. What one provider or one app suffers from is nothing to the others: each has its own.
actor QueueDispatcher {
    nonisolated let queue: ProviderQueue
    private let outbox: Outbox
    private let channel: (any Channel)?
    private let results: ResultWriter
    private let notices: ThrottledNotices
    /// Ticks that are wanted; any number of wakes before the next tick are one.
    private let ticks: AsyncStream<Void>
    private nonisolated let tick: AsyncStream<Void>.Continuation
    /// The lanes that came since the last round began.
    private nonisolated let came = Mutex(DueTimes())
    // State of this actor.
    private var breaker = CircuitBreaker()
    private var refusals = TokenRefusals()
    private var stopped: StoppedQueueRecord?
    private var inFlight = 0
    private var search = LaneSearch()
    private var hasResponded = false
    private var misconfiguration = Misconfiguration()
    /// When the credentials may have changed: attempts that began before say nothing of them.
    private var retriedAt: Int64 = 0
    /// Whether nothing waited when it was looked last.
    private var isEmpty = false
    /// How far it was looked for what has expired while nothing is leased, and when to look again.
    private var sweep: (after: RecordKey?, due: Int64) = (nil, 0)
    private var timer: Task<Void, Never>?
    private var isStopping = false
    /// Deliveries that are leased in one transaction.
    private static let batchMax = 256
    /// Milliseconds from one look for what has expired to the next.
    private static let sweepPause: Int64 = 3_600_000

    init(
        _ queue: ProviderQueue, _ outbox: Outbox, channel: (any Channel)?, _ results: ResultWriter,
        stopped: StoppedQueueRecord?, notices: ThrottledNotices
    ) {
        (self.queue, self.outbox, self.channel, self.results) = (queue, outbox, channel, results)
        (self.stopped, self.notices) = (stopped, notices)
        (ticks, tick) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    nonisolated func wake() { tick.yield() }

    /// Lanes came.
    nonisolated func wake(_ due: DueTimes) {
        came.withLock { $0.formUnion(due) }
        tick.yield()
    }

    /// Works until `stop`; then finishes the attempts in flight.
    func run() async {
        wake()
        await withDiscardingTaskGroup { group in
            for await _ in ticks {
                if isStopping { break }
                await leaseWhatIsDue(&group)
            }
            timer?.cancel()
        }
    }

    /// Begins no more attempts; `run` returns when those in flight have ended.
    func stop() {
        isStopping = true
        wake()
    }

    /// Calls the provider again at once, whatever it did before. Throws the errors of the store.
    func resume() async throws {
        try await ProviderQueues(outbox).resume(queue)
        (breaker, refusals, stopped) = (CircuitBreaker(), TokenRefusals(), nil)
        (misconfiguration, retriedAt) = (Misconfiguration(), outbox.time.now())
        wake()
    }

    /// Calls the provider again at once, unless the queue is stopped. What it responded before says nothing of
    /// credentials that may be others now.
    func retry() {
        (breaker, hasResponded) = (CircuitBreaker(), false)
        (misconfiguration, retriedAt) = (Misconfiguration(), outbox.time.now())
        wake()
    }

    /// What is known of the provider.
    var status: Notifier.AppProvider {
        var shown = Notifier.AppProvider(platform: queue.platform, status: hasResponded ? .ready : .unchecked)
        if let stopped {
            shown.status = .stopped
            (shown.problem, shown.since) = (stopped.problem, Int(stopped.since))
        } else if let open = breaker.open, !isEmpty || outbox.time.now() < open.until {
            shown.status = .paused
            (shown.problem, shown.since) = (open.problem, Int(open.since))
        } else if let known = misconfiguration.shown(at: outbox.time.now()) {
            (shown.problem, shown.since) = (known.problem, Int(known.since))
        }
        return shown
    }

    private func leaseWhatIsDue(_ group: inout DiscardingTaskGroup) async {
        timer?.cancel()
        timer = nil
        let now = outbox.time.now()
        let room = breaker.room(beside: inFlight, max: queue.attemptsMax(outbox.policy), at: now)
        guard stopped == nil, room > 0 else {
            if stopped != nil || breaker.open != nil {
                outbox.fanOuts.queue(queue.name, isBehind: false)
                await endExpired(now)
            }
            return
        }
        let limit = min(room, Self.batchMax)
        do {
            let due = came.withLock { came in
                defer { came = DueTimes() }
                return came
            }
            // `status` says whether anything waits.
            let asked = search.begin(due, at: now, looksAhead: breaker.open != nil && inFlight == 0)
            let round = try await ProviderQueues(outbox).lease(from: queue, limit: limit, asked)
            let leasedUntil = round.leases.isEmpty ? nil : outbox.time.now() + outbox.policy.lease.milliseconds
            search.ended(.init(front: round.front, nextDueAt: round.nextDueAt), leasedUntil: leasedUntil)
            outbox.fanOuts.queue(queue.name, isBehind: round.isFull)
            isEmpty = asked.looksAhead && round.leases.isEmpty && !round.isFull && round.nextDueAt == nil
            // What was leased while the queue stopped is due again when its lease ends.
            for lease in round.leases where stopped == nil {
                inFlight += 1
                outbox.metrics.attemptsBegan(1)
                group.addTask { await self.attempt(lease) }
            }
            if round.isFull {
                // Else the next attempt that ends wakes.
                if round.leases.count < room { wake() }
            } else if let next = search.nextRoundAt {
                wakeAt(next)
            }
        } catch {
            notices.notice(
                .unleasedDeliveries, "deliveries cannot be leased", ["error": "\(error)"], level: .error)
            wakeAt(now + 1_000)
        }
    }

    /// Nothing that waits here is leased, so nothing else ends what expires.
    private func endExpired(_ now: Int64) async {
        if sweep.due <= now {
            do {
                let last = try await ProviderQueues(outbox).endExpired(in: queue, after: sweep.after)
                sweep = (last, last == nil ? now + Self.sweepPause : now)
            } catch {
                notices.notice(
                    .unleasedDeliveries, "expired deliveries cannot be ended", ["error": "\(error)"], level: .error)
                sweep.due = now + 1_000
            }
        }
        let resumption = stopped == nil ? breaker.open?.until : nil
        // After the pause, the attempt that is under way wakes.
        let next = resumption.map { $0 > now ? min($0, sweep.due) : sweep.due } ?? sweep.due
        if next <= now { wake() } else { wakeAt(next) }
    }

    private func wakeAt(_ time: Int64) {
        // Unstructured: it only rings, and is cancelled by the next tick or the end of `run`.
        timer = Task { [outbox] in
            do { try await outbox.time.sleepUntil(time) } catch { return }
            self.wake()
        }
    }

    private nonisolated func attempt(_ lease: Lease) async {
        let began = ContinuousClock.now
        Failpoint.pushBeforeAttempt.pass()
        let outcome =
            await channel?.deliver(lease.delivery)
            ?? .providerRefused(
                DeliveryResponse(error: "this notifier has no channel for \(queue.platform.rawValue)"), retryAfter: nil)
        Failpoint.pushAfterResponse.pass()
        let isFailure = if case .delivered = outcome { false } else { true }
        outbox.metrics.attemptEnded(
            outcome, of: lease, in: ContinuousClock.now - began, at: outbox.time.now())
        // Cut off by the end of the process, not by the provider: the lease stays, and is taken back at the next start.
        if isFailure, Task.isCancelled { return }
        await attemptEnded(outcome, lease)
        do { try await results.record(outcome, of: lease) } catch {
            // The lease lapses and the delivery is attempted again: at least once.
            notices.notice(
                .unrecordedAttempt, "the result of an attempt cannot be recorded",
                ["delivery": "\(lease.delivery.id)", "error": "\(error)"], level: .error)
        }
        await attemptWasRecorded()
        wake()
    }

    private func isMisconfigured(_ response: DeliveryResponse, _ lease: Lease, at now: Int64) {
        let wasKnown = misconfiguration.shown(at: now) != nil
        let content = lease.delivery.content
        misconfiguration.met(response.error, by: content.uid.isEmpty ? content.device : content.uid, at: now)
        guard !wasKnown, let known = misconfiguration.shown(at: now) else { return }
        notices.notice(
            .misconfiguredApp, "a provider does not reach some devices of an app; their deliveries are tried again",
            ["app": "\(queue.app)", "platform": "\(queue.platform.rawValue)", "problem": "\(known.problem)"],
            level: .error)
    }

    private func attemptWasRecorded() {
        inFlight -= 1
        outbox.metrics.attemptsBegan(-1)
    }

    private func attemptEnded(_ outcome: DeliveryOutcome, _ lease: Lease) async {
        let now = outbox.time.now()
        if lease.began >= retriedAt {
            if outcome.response.status != nil { hasResponded = true }
            if outcome.response.isMisconfiguration { isMisconfigured(outcome.response, lease, at: now) }
        }
        let wasOpen = breaker.open != nil
        breaker.attemptEnded(
            outcome, CircuitBreaker.Times(began: lease.began, ended: now), random: outbox.randomFraction())
        if let open = breaker.open, !wasOpen {
            notices.notice(
                .pausedQueue, "a provider does not take deliveries; they wait",
                ["app": "\(queue.app)", "platform": "\(queue.platform.rawValue)", "problem": "\(open.problem)"],
                level: .error)
        }
        guard refusals.attemptEnded(outcome, of: lease, at: now), stopped == nil else { return }
        let words = outcome.response.error ?? "the token is refused"
        let problem =
            "many tokens that had worked are refused (\(words)); check the app's environment, topic and project"
        stopped = StoppedQueueRecord(since: now, problem: problem)
        notices.notice(
            .stoppedQueue, "deliveries of an app have stopped; no device goes until notifier.apps.resume",
            ["app": "\(queue.app)", "platform": "\(queue.platform.rawValue)", "problem": "\(problem)"], level: .error)
        do { try await ProviderQueues(outbox).stop(queue, problem: problem) } catch {
            notices.notice(
                .stoppedQueue, "that a queue has stopped cannot be recorded", ["error": "\(error)"], level: .error)
        }
    }
}
