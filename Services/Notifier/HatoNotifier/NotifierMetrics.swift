import HatoModel
import Metrics
import Synchronization

/// What the notifier counts.
final class NotifierMetrics: Sendable {
    private let accepted = Counter(label: "hato_notifier_notifications_accepted_total")
    private let delivered = Counter(label: "hato_notifier_deliveries_total", dimensions: [("outcome", "delivered")])
    private let dead = Counter(label: "hato_notifier_deliveries_total", dimensions: [("outcome", "dead")])
    private let dropped = Counter(label: "hato_notifier_deliveries_total", dimensions: [("outcome", "dropped")])
    private let failures = Counter(label: "hato_notifier_attempts_failed_total")
    private let attempts = Timer(label: "hato_notifier_attempt_seconds")
    private let pending = Gauge(label: "hato_notifier_deliveries_pending")
    private let changes = Counter(label: "hato_notifier_changes_total")
    private let leftOut = Counter(label: "hato_notifier_recipients_left_out_total")
    private let skipped = Counter(label: "hato_notifier_changes_skipped_total")
    private let incomplete = Counter(label: "hato_notifier_changes_incomplete_total")
    private let gaps = Counter(label: "hato_notifier_feed_gaps_total")
    private let deliveredSinceStart = Atomic<Int>(0)
    private let droppedSinceStart = Atomic<Int>(0)
    private let incompleteSinceStart = Atomic<Int>(0)

    var deliveredCount: Int { deliveredSinceStart.load(ordering: .relaxed) }
    var droppedCount: Int { droppedSinceStart.load(ordering: .relaxed) }

    var incompleteCount: Int { incompleteSinceStart.load(ordering: .relaxed) }

    func count(_ event: OutboxEvent) {
        switch event.type {
        case .accepted: accepted.increment()
        case .delivered:
            delivered.increment()
            deliveredSinceStart.add(1, ordering: .relaxed)
        case .dropped:
            dropped.increment()
            droppedSinceStart.add(1, ordering: .relaxed)
        case .dead: dead.increment()
        }
    }

    func attemptEnded(in duration: Duration, isFailure: Bool) {
        attempts.recordNanoseconds(duration.milliseconds * 1_000_000)
        if isFailure { failures.increment() }
    }

    func pendingIs(_ count: Int) { pending.record(count) }
    func changesCame(_ count: Int) { changes.increment(by: count) }
    /// A change that no trigger can use: too many matches in one commit to be told one by one.
    func changeSkipped() { skipped.increment() }
    /// Changes that a trigger fired for without what they lack.
    func changesIncomplete(_ count: Int) {
        incomplete.increment(by: count)
        incompleteSinceStart.add(count, ordering: .relaxed)
    }
    func recipientsLeftOut(_ count: Int) { leftOut.increment(by: count) }
    func feedHadGap() { gaps.increment() }
}
