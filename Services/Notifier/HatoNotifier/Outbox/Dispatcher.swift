import HatoFetch
import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import Logging
import Synchronization

/// Leases what is due, has channels attempt it, and sleeps until the next delivery is due: woken by what is accepted,
/// by attempts that end, and by its one timer; it never polls.
actor Dispatcher {
    private let outbox: Outbox
    private let channels: [Notifier.Platform: any Channel]
    private let results: ResultWriter
    private let notices: ThrottledNotices
    /// Where attempts run: those at one host on one loop, as its connections.
    private let loops = ClientLoop.all
    /// Ticks that are wanted; any number of wakes before the next tick are one.
    private let ticks: AsyncStream<Void>
    private nonisolated let tick: AsyncStream<Void>.Continuation
    /// The lanes that came since the last round began.
    private nonisolated let came = Mutex(DueTimes())
    // State of this actor.
    private var slots: AttemptSlots
    private var search = LaneSearch()
    /// The calls of channels, by the numbers of their attempts.
    private var calls: [Int: Task<DeliveryOutcome, Never>] = [:]
    private var timer: Task<Void, Never>?
    private var isStopping = false

    /// Its name beside those of provider queues, which have apps in theirs.
    static let queueName = "webhooks"

    init(_ outbox: Outbox, channels: [any Channel], _ results: ResultWriter, logger: Logger) {
        self.outbox = outbox
        slots = AttemptSlots(outbox.policy)
        self.channels = Dictionary(channels.map { ($0.platform, $0) }, uniquingKeysWith: { first, _ in first })
        self.results = results
        notices = ThrottledNotices(logger)
        (ticks, tick) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    nonisolated func wake() { tick.yield() }

    /// Lanes came.
    private nonisolated func wake(_ due: DueTimes) {
        came.withLock { $0.formUnion(due) }
        tick.yield()
    }

    /// Works until `stop`; then finishes the attempts in flight.
    func run() async {
        outbox.onDue { [weak self] due in self?.wake(due) }
        wake()
        await withTaskExecutorPreference(loops.first) { await work() }
    }

    /// Begins no more attempts; `run` returns when those in flight have ended.
    func stop() {
        isStopping = true
        wake()
    }

    private func work() async {
        await withDiscardingTaskGroup { group in
            for await _ in ticks {
                if isStopping { break }
                await leaseWhatIsDue(&group)
            }
            timer?.cancel()
        }
    }

    private func leaseWhatIsDue(_ group: inout DiscardingTaskGroup) async {
        timer?.cancel()
        timer = nil
        endSlowAttempts()
        guard slots.free > 0 else {
            if let next = slots.nextChange { wakeAt(next) }
            return
        }
        do {
            let due = came.withLock { came in
                defer { came = DueTimes() }
                return came
            }
            let asked = search.begin(due, at: outbox.time.now())
            let round = try await outbox.lease(limit: slots.free, beside: slots, asked)
            let leasedUntil = round.leases.isEmpty ? nil : outbox.time.now() + outbox.policy.lease.milliseconds
            search.ended(
                .init(front: round.front, nextDueAt: round.nextDueAt, hasParked: round.hasParked),
                leasedUntil: leasedUntil)
            // Attempts may have ended meanwhile: only what began is taken over.
            slots.position = round.slots.position
            for lease in round.leases { begin(lease, &group) }
            outbox.metrics.attemptsBegan(round.leases.count)
            outbox.fanOuts.queue(Self.queueName, isBehind: round.isFull)
            if round.isFull {
                wake()
            } else if let next = [search.nextRoundAt, slots.nextChange].compactMap({ $0 }).min() {
                wakeAt(next)
            }
        } catch {
            notices.notice(
                .unleasedDeliveries, "deliveries cannot be leased", ["error": "\(error)"], level: .error)
            wakeAt(outbox.time.now() + 1_000)
        }
    }

    /// Their slots are free at once; their outcomes are recorded when their calls have returned.
    private func endSlowAttempts() {
        let numbers = slots.timePassed(at: outbox.time.now())
        for number in numbers { calls.removeValue(forKey: number)?.cancel() }
        outbox.metrics.attemptsEndedEarly(numbers.count)
    }

    private func begin(_ lease: Lease, _ group: inout DiscardingTaskGroup) {
        let number = slots.began(lease.group, at: outbox.time.now())
        let channel = channels[lease.platform]
        // Unstructured: it can be ended on its own. The task that waits for it belongs to `run`.
        let loop = loop(of: lease.group.host)
        let call = Task(executorPreference: loop) {
            Failpoint.pushBeforeAttempt.pass()
            return await channel?.deliver(lease.delivery)
                ?? .failed(DeliveryResponse(error: "no channel for \(lease.platform.rawValue)"), retryAfter: nil)
        }
        calls[number] = call
        group.addTask(executorPreference: loop) { await self.attempt(lease, number, call) }
    }

    private func loop(of host: String) -> ClientLoop? {
        loops.isEmpty ? nil : loops[Int(UInt(bitPattern: host.hashValue) % UInt(loops.count))]
    }

    private func wakeAt(_ time: Int64) {
        // Unstructured: it only rings, and is cancelled by the next tick or the end of `run`.
        timer = Task { [outbox] in
            do { try await outbox.time.sleepUntil(time) } catch { return }
            self.wake()
        }
    }

    private nonisolated func attempt(
        _ lease: Lease, _ number: Int, _ call: Task<DeliveryOutcome, Never>
    ) async {
        let began = ContinuousClock.now
        var outcome = await withTaskCancellationHandler {
            await call.value
        } onCancel: {
            call.cancel()
        }
        if call.isCancelled { outcome = outcome.endedEarly(after: outbox.policy.slowAfter) }
        Failpoint.pushAfterResponse.pass()
        let isFailure = if case .delivered = outcome { false } else { true }
        outbox.metrics.attemptEnded(
            outcome, of: lease, in: ContinuousClock.now - began, at: outbox.time.now())
        outbox.signatures.attemptEnded(outcome, of: lease, at: outbox.time.now())
        // Cut off by the end of the process, not by the receiver: the lease stays, and is taken back at the next start.
        if isFailure, Task.isCancelled { return }
        // Before the outcome is recorded, so that a slow disk does not make the attempt slow.
        await attemptEnded(number, outcome)
        do { try await results.record(outcome, of: lease) } catch {
            // The lease lapses and the delivery is attempted again: at least once.
            notices.notice(
                .unrecordedAttempt, "the result of an attempt cannot be recorded",
                ["delivery": "\(lease.delivery.id)", "error": "\(error)"], level: .error)
        }
        wake()
    }

    private func attemptEnded(_ number: Int, _ outcome: DeliveryOutcome) {
        calls[number] = nil
        slots.ended(number, outcome, at: outbox.time.now())
        outbox.metrics.attemptsBegan(-1)
    }
}

extension DeliveryOutcome {
    /// The outcome of an attempt that was ended after `time` or later, so that others can begin. An outcome with a
    /// response stays as it is.
    fileprivate func endedEarly(after time: Duration) -> DeliveryOutcome {
        guard case .failed(let response, _) = self, response.status == nil else { return self }
        let error = "no response after \(time.milliseconds) ms, while too many other receivers did not respond"
        return .failed(DeliveryResponse(error: error), retryAfter: nil)
    }
}
