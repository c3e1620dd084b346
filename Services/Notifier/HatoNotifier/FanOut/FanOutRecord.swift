import HatoModel
import HatoStorage
import Synchronization

/// Deliveries of a notification that are still to be made, in pages. It is written in one transaction with the
/// notification, and with each page of deliveries: how far it is is known after a crash.
struct FanOutRecord: FieldObject {
    var notification: String
    /// Its recipients are the users of this topic; nil: those of a list.
    var topic: String?
    /// Of a topic: the last user whose deliveries are made; nil before the first page.
    var through: String?
    /// The users of a list whose deliveries are to be made.
    var uids: [String]?
    /// The devices of a list whose deliveries are to be made.
    var devices: [String]?
    /// Users or named devices when it was accepted.
    var total: Int
    /// Of them, those whose deliveries are made.
    var done = 0
    /// Deliveries that are made.
    var deliveries = 0
    /// Of a list of devices: the users for whom it is counted already, and that have several devices.
    var counted: [String]?

    static let fields = Fields<Self>(
        blank: Self(notification: "", total: 0),
        .required("notification", \.notification),
        .optional("topic", \.topic),
        .optional("through", \.through),
        .optional("uids", \.uids),
        .optional("devices", \.devices),
        .required("total", \.total),
        .required("done", \.done),
        .required("deliveries", \.deliveries),
        .optional("counted", \.counted))

    static func key(_ notification: String) -> RecordKey { RecordKey(.fanOut).with(notification) }

    var shown: Notifier.FanOut { .init(done: done, total: total, deliveries: deliveries) }
}

/// How many notifications have deliveries that are still to be made, and what rings when there is another one.
final class FanOutJobs: Sendable {
    private let count: Atomic<Int>
    /// Rings when there may be a page to make.
    let bell = Bell()
    /// The queues in which more is due than they attempt, as far as they say.
    private let behind = Mutex<Set<String>>([])
    private let metrics: NotifierMetrics

    init(count: Int, _ metrics: NotifierMetrics) {
        self.count = Atomic(count)
        self.metrics = metrics
        metrics.fanOutsAre(count)
    }

    /// How many there are, as far as that is durable.
    var waiting: Int { count.load(ordering: .relaxed) }

    /// What a transaction that is durable did.
    func changed(_ change: FanOutChange) {
        metrics.madeDeliveries(change.deliveries)
        metrics.fanOutsExpired(change.expired)
        // Until they have looked. They are woken after this.
        if !change.queues.isEmpty { behind.withLock { $0.formUnion(change.queues) } }
        guard change.began != 0 || change.ended != 0 else { return }
        metrics.fanOutsAre(count.add(change.began - change.ended, ordering: .relaxed).newValue)
        if change.began > 0 { bell.ring() }
    }
}

extension FanOutJobs {
    /// A queue has looked at what is due: whether there is more than it attempts now. One that is paused or stopped is
    /// not behind: what waits there delays nothing else.
    func queue(_ name: String, isBehind: Bool) {
        // E-mails go one after the other, which may take hours; no page that waited for them would be sooner there.
        guard !name.hasPrefix(ProviderQueue.mailPrefix) else { return }
        let isClear = behind.withLock { behind in
            if isBehind { behind.insert(name) } else { behind.remove(name) }
            return behind.isEmpty
        }
        if isClear, waiting > 0 { bell.ring() }
    }

    /// Whether no queue is behind.
    var isClear: Bool { behind.withLock(\.isEmpty) }
}

/// What one transaction does to jobs.
struct FanOutChange: Sendable {
    /// How many there were before; a few more may have come since.
    private let before: Int
    private(set) var began = 0
    private(set) var ended = 0
    /// Of these, jobs that had more deliveries to make when their notification expired.
    private(set) var expired = 0
    private(set) var deliveries = 0
    /// The queues of these.
    private(set) var queues: Set<String> = []

    init(before: Int = 0) { self.before = before }

    /// Throws when there are so many already.
    mutating func begin(max: Int) throws(OutboxRefusal) {
        guard before + began < max else { throw .tooManyFanOuts(max) }
        began += 1
    }

    mutating func end(hasExpired: Bool = false) {
        ended += 1
        if hasExpired { expired += 1 }
    }

    mutating func made(_ recipients: some Sequence<Recipient>) {
        for recipient in recipients {
            deliveries += 1
            // E-mails are not due yet.
            if !recipient.isMailbox { queues.insert(recipient.queue ?? Dispatcher.queueName) }
        }
    }
}
