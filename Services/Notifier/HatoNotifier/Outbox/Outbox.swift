import HatoModel
import HatoRPC
import HatoStorage
import Logging
import Synchronization

/// Writes every step of a delivery durably. Each method is one transaction, or a row of them; what it answers is on
/// disk.
///
/// Lanes keep their order by one row each in the table `due`, or `queued` for devices of a provider: it stands at the
/// time when the lane's head may be attempted, or while it is attempted at the end of the lease, so an attempt whose
/// maker vanished becomes due by itself.
final class Outbox: Sendable {
    let store: any Store
    let policy: DeliveryPolicy
    let limits: NotifierLimits
    let time: TimeSource
    let metrics: NotifierMetrics
    private let random: @Sendable () -> UInt64
    /// Makes reply tokens; nil: pushes carry none.
    let replyKey: ReplyKey?
    /// What waits for each user, in the order of transactions.
    let waiting: WaitingCounts
    /// Deliveries that are not finished, as far as that is durable.
    private let unfinished: Atomic<Int>
    /// Dead deliveries, counted here: figures are asked for often, and there may be a million of these.
    private let givenUp: Atomic<Int>
    /// Rows that could not be read and were set aside.
    private let unreadable: Atomic<Int>
    private let logger: Logger
    let notices: ThrottledNotices
    let fanOuts: FanOutJobs
    /// Tokens that were used in place of devices since it was looked last how many devices they have.
    let tokensUsed: Atomic<Int>
    /// How often devices and users are sent something.
    private let pace: SendPace
    /// When apps had an e-mail taken last.
    let lastMails = LastMails()
    /// Requests that wait for the first attempts of a notification.
    let firstAttempts = FirstAttempts()
    private let wakes = Mutex(Wakes())
    /// Whether push services of browsers refuse apps.
    let signatures = AppSignatures()
    /// Rings when there is something to withdraw.
    let withdrawalBell = Bell()

    /// Opens the outbox of a store and takes back the leases of the process before: the store is open once, so their
    /// holder is gone.
    static func open(
        _ store: any Store, _ configuration: NotifierConfiguration, metrics: NotifierMetrics, logger: Logger
    ) async throws -> Outbox {
        let waiting = try await WaitingCounts.of(store, shareMax: configuration.limits.pendingShareMax)
        let counts = try await store.read { snapshot in
            RowCounts(
                unfinished: try snapshot.count(.lane), givenUp: try snapshot.count(.dead),
                unreadable: try snapshot.count(.unreadable), fanOuts: try snapshot.count(.fanOut), waiting: waiting)
        }
        let outbox = Outbox(store, configuration, metrics: metrics, logger: logger, counts)
        try await outbox.reclaimLeases()
        try await outbox.dropExcess()
        return outbox
    }

    private init(
        _ store: any Store, _ configuration: NotifierConfiguration, metrics: NotifierMetrics, logger: Logger,
        _ counts: RowCounts
    ) {
        self.store = store
        policy = configuration.delivery
        limits = configuration.limits
        time = configuration.time
        random = configuration.random
        replyKey = configuration.replyKey
        self.metrics = metrics
        self.logger = logger
        notices = ThrottledNotices(logger)
        // At the first use it is looked.
        tokensUsed = Atomic(configuration.limits.tokenDevicesMax)
        waiting = counts.waiting
        pace = SendPace(configuration.limits)
        unfinished = Atomic(counts.unfinished)
        givenUp = Atomic(counts.givenUp)
        unreadable = Atomic(counts.unreadable)
        fanOuts = FanOutJobs(count: counts.fanOuts, metrics)
        metrics.unreadableIs(counts.unreadable)
    }

    var pending: Int { unfinished.load(ordering: .relaxed) }
    var deadCount: Int { givenUp.load(ordering: .relaxed) }
    var unreadableCount: Int { unreadable.load(ordering: .relaxed) }

    func onDue(_ wake: @escaping @Sendable (DueTimes) -> Void) { wakes.withLock { $0.dispatcher = wake } }
    func onDue(_ wake: @escaping @Sendable (ProviderQueue, DueTimes) -> Void) { wakes.withLock { $0.queue = wake } }

    /// At least 0 and below 1.
    func randomFraction() -> Double { Double(random() >> 11) / Double(1 << 53) }

    /// An unused name that sorts by time.
    func newID(_ prefix: String) -> String { Self.id(prefix, at: time.now(), tail: random()) }

    /// A name that sorts by time, in milliseconds since 1970.
    static func id(_ prefix: String, at time: Int64, tail: UInt64) -> String {
        let time = String(UInt64(max(0, time)), radix: 16), tail = String(tail, radix: 16)
        return prefix + String(repeating: "0", count: max(0, 11 - time.count)) + time
            + String(repeating: "0", count: 16 - tail.count) + tail
    }

    /// Runs `body` on a draft and writes what it gathered, in one transaction.
    func change<Outcome: Sendable>(
        _ body: @escaping @Sendable (inout OutboxDraft) throws -> Outcome
    ) async throws -> Outcome {
        let (waiting, pace, waitingMax, policy, time) = (waiting, pace, limits.pendingMax, policy, time)
        let (threadsMax, mails) = (limits.threadsPerUserMax, MailLanes(policy, limits))
        let (silentPushes, fanOutsBefore) = (SilentPushes(self), fanOuts.waiting)
        let committed = try await store.write { transaction in
            try waiting.transaction {
                var draft = OutboxDraft(transaction, now: time.now(), waiting, mails, pace)
                draft.threads = ThreadCounts(threadsMax: threadsMax)
                draft.fanOuts = FanOutChange(before: fanOutsBefore)
                let outcome = try body(&draft)
                _ = try silentPushes.send(in: &draft)
                if draft.enteredCount > 0 { try draft.dropExcess(waitingMax, policy) }
                try draft.texts.settle(transaction, &draft.writes)
                try draft.writes.apply(to: transaction)
                transaction.beginKnownDevices()
                return (outcome, draft.effects)
            }
        }
        let (outcome, effects) = committed.outcome
        unfinished.add(effects.pendingChange, ordering: .relaxed)
        givenUp.add(effects.deadChange, ordering: .relaxed)
        metrics.count(effects)
        firstAttempts.ended(of: effects.events.lazy.filter { $0.type != .accepted }.map(\.notification))
        metrics.pendingIs(pending)
        fanOuts.changed(effects.fanOuts)
        reportUnreadable(effects)
        notices.report(effects.droppedBecauseFull, metrics, max: limits.pendingMax)
        if effects.hasWithdrawals { withdrawalBell.ring() }
        wake(effects)
        return outcome
    }

    /// Drops what waits beyond a limit that has become lower, in transactions of bounded size.
    private func dropExcess() async throws {
        let (waitingMax, policy) = (limits.pendingMax, policy)
        while waiting.total > waitingMax {
            let dropped = try await change { draft in
                try draft.dropExcess(waitingMax, policy)
                return draft.droppedBecauseFull.count
            }
            if dropped == 0 { return }
        }
    }

    private func wake(_ effects: OutboxEffects) {
        // The queues of a page are to say whether they are behind, also those in which nothing became due.
        var queues = effects.dueInQueues.merging(effects.fanOuts.queues.map { ($0, DueTimes()) }) { due, _ in due }
        let hasWebhooks = queues.removeValue(forKey: Dispatcher.queueName) != nil
        guard !effects.due.isEmpty || hasWebhooks || !queues.isEmpty else { return }
        let wakes = wakes.withLock { $0 }
        if !effects.due.isEmpty || hasWebhooks { wakes.dispatcher(effects.due) }
        for (name, due) in queues {
            if let queue = ProviderQueue(name: name) { wakes.queue(queue, due) }
        }
    }

    private func reportUnreadable(_ effects: OutboxEffects) {
        let change = effects.unreadable.count - effects.forgottenUnreadable
        guard change != 0 || !effects.unreadable.isEmpty else { return }
        metrics.unreadableIs(unreadable.add(change, ordering: .relaxed).newValue)
        for key in effects.unreadable {
            logger.error("a row cannot be read; it is set aside", metadata: ["key": "\(key)"])
        }
    }

    // MARK: Accepting

    /// Accepts what `notifier.send` was given; answers when it is durable.
    func accept(_ new: NewNotification) async throws -> AcceptedNotification {
        let id = newID("ntf_")
        let (limits, policy) = (limits, policy)
        let accepted = try await change { draft in
            var acceptance = Acceptance(limits, policy)
            return try acceptance.accept(new, id: id, in: &draft)
        }
        Failpoint.pushAfterAccept.pass()
        if case .tokens(let forms) = new.recipients { await TokenDevices(outbox: self).used(forms.count) }
        return accepted
    }
}

extension ThrottledNotices {
    /// Deliveries were dropped because more wait than may.
    fileprivate func report(_ dropped: OutboxEffects.FullDrops, _ metrics: NotifierMetrics, max: Int) {
        guard dropped.count > 0 else { return }
        metrics.droppedBecauseFull(dropped.count)
        notice(
            .fullOutbox, "pending-max deliveries wait; the oldest of the user with the most are dropped",
            ["pending-max": "\(max)", "dropped": "\(dropped.count)", "uid": "\(dropped.uid)"], level: .warning)
    }
}

/// Called when something may have become due. Members of a struct: a closure that stands in the lock itself is
/// wrapped once more each time it is taken out.
private struct Wakes {
    var dispatcher: @Sendable (DueTimes) -> Void = { _ in }
    var queue: @Sendable (ProviderQueue, DueTimes) -> Void = { _, _ in }
}

private struct RowCounts: Sendable {
    var unfinished: Int
    var givenUp: Int
    var unreadable: Int
    var fanOuts: Int
    var waiting: WaitingCounts
}
