import HatoModel
import HatoPush
import HatoRPC
import Logging

/// Leases what is due, has channels attempt it, and sleeps until the next delivery is due: woken by what is accepted,
/// by attempts that end, and by its one timer; it never polls.
actor Dispatcher {
    private let outbox: Outbox
    private let channels: [Notifier.Platform: any Channel]
    private let notices: ThrottledNotices
    /// Ticks that are wanted; any number of wakes before the next tick are one.
    private let ticks: AsyncStream<Void>
    private nonisolated let tick: AsyncStream<Void>.Continuation
    // State of this actor.
    private var slots: AttemptSlots
    private var timer: Task<Void, Never>?
    private var isStopping = false

    init(_ outbox: Outbox, channels: [any Channel], logger: Logger) {
        self.outbox = outbox
        slots = AttemptSlots(outbox.policy)
        self.channels = Dictionary(channels.map { ($0.platform, $0) }, uniquingKeysWith: { first, _ in first })
        notices = ThrottledNotices(logger)
        (ticks, tick) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    nonisolated func wake() { tick.yield() }

    /// Works until `stop`; then finishes the attempts in flight.
    func run() async {
        outbox.onDue { [weak self] in self?.wake() }
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

    private func leaseWhatIsDue(_ group: inout DiscardingTaskGroup) async {
        timer?.cancel()
        timer = nil
        guard slots.free > 0 else { return }
        do {
            let round = try await outbox.lease(limit: slots.free, beside: slots)
            // Attempts may have ended meanwhile: only what began is taken over.
            slots.turn = round.slots.turn
            for lease in round.leases { slots.began(lease.group) }
            outbox.metrics.attempting(slots.count)
            for lease in round.leases {
                group.addTask { await self.attempt(lease) }
            }
            if round.isFull {
                wake()
            } else if let next = round.nextDueAt {
                wakeAt(next)
            }
        } catch {
            notices.notice(
                .unleasedDeliveries, "deliveries cannot be leased", ["error": "\(error)"], level: .error)
            wakeAt(outbox.time.now() + 1_000)
        }
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
        let outcome: DeliveryOutcome =
            if let channel = channels[lease.platform] {
                await channel.deliver(lease.delivery)
            } else {
                .failed(DeliveryResponse(error: "no channel for \(lease.platform.rawValue)"), retryAfter: nil)
            }
        let isFailure = if case .delivered = outcome { false } else { true }
        outbox.metrics.attemptEnded(
            NotifierMetrics.AttemptResult(outcome), of: lease, in: ContinuousClock.now - began)
        // Cut off by the end of the process, not by the receiver: the lease stays, and is taken back at the next start.
        if isFailure, Task.isCancelled { return }
        do { try await outbox.record(outcome, of: lease) } catch {
            // The lease lapses and the delivery is attempted again: at least once.
            notices.notice(
                .unrecordedAttempt, "the result of an attempt cannot be recorded",
                ["delivery": "\(lease.delivery.id)", "error": "\(error)"], level: .error)
        }
        await attemptEnded(at: lease.group)
    }

    private func attemptEnded(at group: AttemptGroup) {
        slots.ended(group)
        outbox.metrics.attempting(slots.count)
        wake()
    }
}
