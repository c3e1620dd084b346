import HatoModel
import HatoPush
import Metrics
import Synchronization

/// What the notifier counts; names are those of Prometheus, each explained in the service's README. Labels have few
/// values and never say who.
final class NotifierMetrics: Sendable {
    private let accepted = Counter(label: "hato_notifier_notifications_accepted_total")
    private let delivered = Counter(label: "hato_notifier_deliveries_total", dimensions: [("outcome", "delivered")])
    private let dead = Counter(label: "hato_notifier_deliveries_total", dimensions: [("outcome", "dead")])
    private let dropped = Counter(label: "hato_notifier_deliveries_total", dimensions: [("outcome", "dropped")])
    private let full = Counter(label: "hato_notifier_deliveries_dropped_full_total")
    /// What became of an attempt.
    enum AttemptResult: String, CaseIterable {
        case delivered, failed, gone, refused, rejected

        init(_ outcome: DeliveryOutcome) {
            switch outcome {
            case .delivered: self = .delivered
            case .failed, .postponed: self = .failed
            case .deviceGone: self = .gone
            case .tokenRefused, .providerRefused: self = .refused
            case .rejected: self = .rejected
            }
        }
    }

    private let attemptCounts = Notifier.Platform.allCases.flatMap { platform in
        AttemptResult.allCases.map { result in
            Counter(
                label: "hato_notifier_attempts_total",
                dimensions: [("platform", platform.rawValue), ("result", result.rawValue)])
        }
    }
    /// Why a device was removed or disabled by itself.
    enum Removal: String, CaseIterable {
        case gone, failing, silent, excess, unnamed
    }

    private let removals = Removal.allCases.map { reason in
        Counter(label: "hato_notifier_devices_removed_total", dimensions: [("reason", reason.rawValue)])
    }
    private let endedEarly = Counter(label: "hato_notifier_attempts_ended_early_total")
    private let retries = Counter(label: "hato_notifier_retries_total")
    private let inFlight = Gauge(label: "hato_notifier_attempts_in_flight")
    private let attemptsUnderWay = Atomic(0)
    private let deadLetters = Gauge(label: "hato_notifier_dead_letters")
    private let followers = Gauge(label: "hato_notifier_followers")
    private let feeds = Gauge(label: "hato_notifier_feeds")
    private let feedsBroken = Gauge(label: "hato_notifier_feeds_broken")
    private let feedLag = Gauge(label: "hato_notifier_feed_lag_seconds")
    private let keysReady = Gauge(label: "hato_notifier_keys_ready")
    private let attempts = Timer(label: "hato_notifier_attempt_seconds")
    private let latency = Timer(label: "hato_notifier_accepted_to_delivered_seconds")
    private let oldest = Gauge(label: "hato_notifier_deliveries_oldest_seconds")
    private let overdue = Gauge(label: "hato_notifier_deliveries_overdue_seconds")
    let providers = ProviderMetrics()
    private let pending = Gauge(label: "hato_notifier_deliveries_pending")
    private let changes = Counter(label: "hato_notifier_changes_total")
    private let leftOut = Counter(label: "hato_notifier_recipients_left_out_total")
    private let invalidTokens = Counter(label: "hato_notifier_invalid_tokens_total")
    private let waiting = Gauge(label: "hato_notifier_changes_waiting")
    private let waitingOfDatabases = Mutex<[DatabaseName: Int]>([:])
    private let changesDropped = Counter(label: "hato_notifier_changes_dropped_full_total")
    private let skipped = Counter(label: "hato_notifier_changes_skipped_total")
    private let incomplete = Counter(label: "hato_notifier_changes_incomplete_total")
    private let undecided = Counter(label: "hato_notifier_conditions_undecided_total")
    private let illTyped = Counter(label: "hato_notifier_changes_ill_typed_total")
    private let unreadable = Gauge(label: "hato_notifier_records_unreadable")
    private let withdrawn = Counter(label: "hato_notifier_notifications_withdrawn_total")
    private let gaps = Counter(label: "hato_notifier_feed_gaps_total")
    private let fanOuts = Gauge(label: "hato_notifier_fan_outs_waiting")
    private let expiredFanOuts = Counter(label: "hato_notifier_fan_outs_expired_total")
    private let fanOutDeliveries = Counter(label: "hato_notifier_fan_out_deliveries_total")
    /// Why deliveries were held back, each counted when it began to wait.
    private let holds = DeliveryStateMachine.Hold.allCases.map { hold in
        Counter(label: "hato_notifier_deliveries_held_total", dimensions: [("reason", hold.rawValue)])
    }
    /// Why deliveries ended that were not delivered.
    private static let endReasons =
        DeliveryStateMachine.Reason.all + DeliveryStateMachine.Ending.allCases.map(\.rawValue)
    private let undelivered = [Notifier.DeliveryState.dropped, .dead].map { state in
        NotifierMetrics.endReasons.map { reason in
            Counter(
                label: "hato_notifier_deliveries_undelivered_total",
                dimensions: [("outcome", state.rawValue), ("reason", reason)])
        }
    }
    private let present = Counter(label: "hato_notifier_recipients_present_total")
    private let deliveredSinceStart = Atomic<Int>(0)
    private let droppedSinceStart = Atomic<Int>(0)
    private let incompleteSinceStart = Atomic<Int>(0)

    var deliveredCount: Int { deliveredSinceStart.load(ordering: .relaxed) }
    var droppedCount: Int { droppedSinceStart.load(ordering: .relaxed) }

    var incompleteCount: Int { incompleteSinceStart.load(ordering: .relaxed) }

    func count(_ effects: OutboxEffects) {
        for event in effects.events { count(event) }
        for (hold, counter) in zip(DeliveryStateMachine.Hold.allCases, holds) {
            counter.increment(by: effects.held[hold] ?? 0)
        }
    }

    private func count(_ event: OutboxEvent) {
        switch event.type {
        case .accepted: accepted.increment()
        case .delivered:
            delivered.increment()
            deliveredSinceStart.add(1, ordering: .relaxed)
        case .dropped:
            dropped.increment()
            droppedSinceStart.add(1, ordering: .relaxed)
            endedUndelivered(0, event.reason)
        case .dead:
            dead.increment()
            endedUndelivered(1, event.reason)
        // `ResponseMetrics` counts them.
        case .action, .displayed, .opened, .dismissed: break
        case .withdrawn: withdrawn.increment()
        }
    }

    private func endedUndelivered(_ state: Int, _ reason: String?) {
        if let index = Self.endReasons.firstIndex(of: reason ?? "") { undelivered[state][index].increment() }
    }

    func attemptEnded(_ outcome: DeliveryOutcome, of lease: Lease, in duration: Duration, at now: Int64) {
        let result = AttemptResult(outcome)
        attempts.record(duration: duration)
        providers.attemptEnded(outcome, at: lease.platform)
        // What waits for the next e-mail of its thread would say nothing of the notifier's speed.
        if result == .delivered, lease.platform != .email {
            latency.record(duration: .milliseconds(max(0, now - lease.delivery.createdAt)))
        }
        if lease.attempt > 1 { retries.increment() }
        guard let platform = Notifier.Platform.allCases.firstIndex(of: lease.platform),
            let index = AttemptResult.allCases.firstIndex(of: result)
        else { return }
        attemptCounts[platform * AttemptResult.allCases.count + index].increment()
    }

    func devicesRemoved(_ count: Int, because reason: Removal) {
        guard count > 0, let index = Removal.allCases.firstIndex(of: reason) else { return }
        removals[index].increment(by: count)
    }

    func attemptsEndedEarly(_ count: Int) { endedEarly.increment(by: count) }

    /// So many attempts began, or, if negative, ended.
    func attemptsBegan(_ count: Int) {
        inFlight.record(attemptsUnderWay.add(count, ordering: .relaxed).newValue)
    }

    /// The newest change that was handled had happened so long before.
    func handledChanges(after lag: Int64) { feedLag.record(Double(lag) / 1_000) }

    struct Figures {
        /// Nil: could not be read.
        var deadLetters: Int?
        var followers = 0
        var feeds = 0
        /// Of them, those that are not followed now.
        var feedsBroken = 0
        var areKeysReady = false
        /// Nil: could not be read.
        var oldest: OldestWaiting?
        /// In milliseconds since 1970.
        var now: Int64 = 0
    }

    func show(_ figures: Figures) {
        if let count = figures.deadLetters { deadLetters.record(count) }
        followers.record(figures.followers)
        feeds.record(figures.feeds)
        feedsBroken.record(figures.feedsBroken)
        if let waiting = figures.oldest {
            oldest.record(OldestWaiting.age(waiting.acceptedAt, at: figures.now))
            overdue.record(OldestWaiting.age(waiting.dueAt, at: figures.now))
        }
        keysReady.record(figures.areKeysReady ? 1 : 0)
    }

    func droppedBecauseFull(_ count: Int) { full.increment(by: count) }
    func pendingIs(_ count: Int) { pending.record(count) }
    func unreadableIs(_ count: Int) { unreadable.record(count) }
    func changesCame(_ count: Int) { changes.increment(by: count) }
    /// Changes that fire triggers of which not all notifications are accepted.
    func changesWaiting(_ count: Int, in database: DatabaseName) {
        waitingOfDatabases.withLock { counts in
            counts[database] = count > 0 ? count : nil
            waiting.record(counts.values.reduce(0, +))
        }
    }
    /// Changes that fired triggers, and were dropped since too many waited.
    func changesDropped(_ count: Int) { changesDropped.increment(by: count) }
    /// A change that no trigger can use: too many matches in one commit to be listed one by one.
    func changeSkipped() { skipped.increment() }
    /// Changes that a trigger fired for without what they lack.
    func changesIncomplete(_ count: Int) {
        incomplete.increment(by: count)
        incompleteSinceStart.add(count, ordering: .relaxed)
    }
    /// A change with texts that are too long for a trigger's condition.
    func conditionUndecided() { undecided.increment() }
    /// A trigger fired, but its data did not fit its type.
    func changeIllTyped() { illTyped.increment() }
    func recipientsLeftOut(_ count: Int) { leftOut.increment(by: count) }
    func tokensLeftOut(_ count: Int) { invalidTokens.increment(by: count) }
    func feedHadGap() { gaps.increment() }
    /// Notifications whose deliveries are still to be made in pages.
    func fanOutsAre(_ count: Int) { fanOuts.record(count) }
    /// Notifications that expired before all their deliveries were made.
    func fanOutsExpired(_ count: Int) { if count > 0 { expiredFanOuts.increment(by: count) } }
    func madeDeliveries(_ count: Int) { if count > 0 { fanOutDeliveries.increment(by: count) } }
    /// Users to whom a trigger shows nothing, since they are there.
    func recipientsPresent(_ count: Int) { present.increment(by: count) }
}
