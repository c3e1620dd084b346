import HatoModel
import HatoStorage
import Logging
import Synchronization

/// Wakes the one task that waits for it; a ring that comes before it waits is not lost.
struct Bell: Sendable {
    let rings: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() { (rings, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    func ring() { continuation.yield() }
}

/// Withdraws notifications: what waits of them is dropped, and devices that may show them get a silent push.
///
/// What is to be withdrawn is a row (`WithdrawalJob`), written with what asks for it, and goes when all is done: the
/// deliveries of a notification may be many thousands, and are visited in pages, each a transaction.
final class Withdrawals: Sendable {
    private let outbox: Outbox
    private let logger: Logger
    /// Those that calls wait for.
    private let called = Mutex<[WithdrawalJob: Int]>([:])

    /// Jobs that are read at a time.
    private static let jobsMax = 64

    init(_ outbox: Outbox, logger: Logger) {
        self.outbox = outbox
        self.logger = logger
        // What the process before has left.
        outbox.withdrawalBell.ring()
    }

    /// What a withdrawal came to.
    struct Outcome: Sendable, Hashable {
        /// Deliveries that were dropped.
        var dropped = 0
        /// Devices that get a silent push.
        var devices = 0
        /// Whether nothing is left to do.
        var isDone = true
    }

    /// Does what is to be done, until the task is cancelled.
    func run() async {
        var rings = outbox.withdrawalBell.rings.makeAsyncIterator()
        while await rings.next() != nil {
            do { try await runAll() } catch {
                if Task.isCancelled { return }
                logger.error("notifications cannot be withdrawn", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Does what is to be done now, besides what calls do. Notifications and users take turns, page by page: a large
    /// withdrawal delays no small one.
    func runAll() async throws {
        while try await !turn() {}
    }

    /// Makes a page of each notification, and of one thread of each user. Returns whether nothing is left that can be
    /// done.
    private func turn() async throws -> Bool {
        var (last, isDone): (RecordKey?, Bool) = (nil, true)
        repeat {
            let after = last
            let keys = try await outbox.store.read { snapshot in
                try snapshot.rows(RecordKey(.withdrawal), after: after, limit: Self.jobsMax).map(\.key)
            }
            last = keys.count < Self.jobsMax ? nil : keys.last
            var uid: String?
            for key in keys {
                guard let job = WithdrawalJob(key) else {
                    try await outbox.change { $0.writes.delete(key) }
                    continue
                }
                if called.withLock({ $0[job] != nil }) { continue }
                if let user = job.uid, user == uid {
                    isDone = false
                    continue
                }
                do {
                    let isJobDone = try await page(of: job).isDone
                    (uid, isDone) = (job.uid, isDone && isJobDone)
                } catch {
                    if Task.isCancelled { throw error }
                    // Others go on; it is tried again with the next ring.
                    uid = nil
                    logger.error("a notification cannot be withdrawn", metadata: ["error": "\(error)"])
                }
            }
            // What else of this user is to be read has its turn later.
            if let end = uid.flatMap({ WithdrawalJob.userPrefix($0).end }), last != nil {
                (last, isDone) = (RecordKey(bytes: end), false)
            }
        } while last != nil
        return isDone
    }

    /// Begins a withdrawal with a transaction of the caller, and returns when all is done.
    func withdraw(_ job: WithdrawalJob, _ begin: @escaping @Sendable (inout OutboxDraft) throws -> Void) async throws
        -> Outcome
    {
        called.withLock { $0[job, default: 0] += 1 }
        defer {
            called.withLock { $0[job] = ($0[job] ?? 1) > 1 ? ($0[job] ?? 1) - 1 : nil }
            // It may have been left, or begun again.
            outbox.withdrawalBell.ring()
        }
        try await outbox.change(begin)
        var all = Outcome()
        while true {
            let outcome = try await page(of: job)
            all.dropped += outcome.dropped
            all.devices += outcome.devices
            if outcome.isDone { return all }
        }
    }

    private func page(of job: WithdrawalJob) async throws -> Outcome {
        let silentPushes = SilentPushes(outbox)
        return try await outbox.change { draft in
            guard let record = try draft.transaction.readable(WithdrawalRecord.self, job.key) else {
                draft.writes.delete(job.key)
                return Outcome()
            }
            var page = WithdrawalPage(record: record)
            switch job {
            case .notification(let id): try page.withdraw(id, in: &draft)
            case .thread(let uid, let thread): try page.withdraw(uid, thread, in: &draft)
            }
            if page.outcome.isDone {
                draft.writes.delete(job.key)
            } else {
                draft.writes.put(job.key, page.record)
            }
            page.outcome.devices = try silentPushes.send(in: &draft)
            return page.outcome
        }
    }
}

/// One transaction that withdraws.
private struct WithdrawalPage {
    var record: WithdrawalRecord
    var outcome = Withdrawals.Outcome()

    /// Deliveries of one transaction.
    private static let rowsMax = 256
    /// Rows that one transaction passes over, since they came later.
    private static let passedOverMax = 1_024

    // MARK: A notification

    /// What a user has of the notification.
    private struct Part {
        var uid: String
        var deliveries: [DeliveryRecord] = []
        /// Nil: the user has read it, or it has no thread.
        var row: ShownRecord?
    }

    /// Withdraws the next deliveries of a notification.
    mutating func withdraw(_ id: String, in draft: inout OutboxDraft) throws {
        let transaction = draft.transaction
        let rows = try transaction.rows(
            DeliveryRecord.prefix(id), after: record.last.map { DeliveryRecord.key(id, $0) }, limit: Self.rowsMax)
        let key = NotificationRecord.key(id)
        guard let notification = try transaction.readable(NotificationRecord.self, key) else { return }
        var (parts, taking): ([String: Part], TakingBack) = ([:], TakingBack(removesWords: true))
        for row in rows {
            var reader = RecordKeyReader(row.key.bytes)
            _ = reader.text()
            record.last = reader.shortNumber() ?? record.last
            guard let delivery = try? RecordCodec.decode(DeliveryRecord.self, row.value, key: row.key.bytes) else {
                continue
            }
            parts[delivery.uid, default: Part(uid: delivery.uid)].deliveries.append(delivery)
            try taking.take(delivery, in: &draft)
        }
        for uid in parts.keys where !uid.isEmpty {
            guard let thread = notification.options?.thread else { continue }
            let key = ShownRecord.key(UserThread(uid: uid, thread: thread), id)
            guard let row = try transaction.readable(ShownRecord.self, key) else { continue }
            draft.writes.delete(key)
            parts[uid]?.row = row
            // The next page finds no row of the user any more.
            for number in row.deliveries where number > record.last ?? .max {
                guard let delivery = try transaction.readable(DeliveryRecord.self, DeliveryRecord.key(id, number))
                else { continue }
                parts[uid]?.deliveries.append(delivery)
                try taking.take(delivery, in: &draft)
            }
        }
        try taking.settle(in: &draft)
        outcome.dropped += taking.dropped
        for part in parts.values { try push(notification, to: part, taking, in: &draft) }
        pushShownForOthers(taking, in: &draft)
        outcome.isDone = rows.count < Self.rowsMax
    }

    private func push(
        _ notification: NotificationRecord, to part: Part, _ taking: TakingBack, in draft: inout OutboxDraft
    ) throws {
        let (id, uid) = (notification.id, part.uid)
        let devices = Set(part.deliveries.filter { taking.isShown($0) }.map(\.device))
        guard !uid.isEmpty else {
            for device in devices { draft.threads.push(to: .token(device: device)) { $0.add(id, at: [device]) } }
            return
        }
        guard let thread = notification.options?.thread else {
            draft.writes.record(OutboxEvent(withdrawn: id, from: uid, at: draft.now))
            if !devices.isEmpty { draft.threads.push(to: .user(uid)) { $0.add(id, at: devices) } }
            return
        }
        // Else the user has read it.
        guard let row = part.row else { return }
        let place = UserThread(uid: uid, thread: thread)
        draft.writes.record(OutboxEvent(withdrawn: id, from: uid, at: draft.now))
        let hasFallen =
            try row.isCounted && draft.threads.add(-1, to: place, draft.transaction, &draft.writes)
        let isLast = try draft.transaction.keys(ShownRecord.prefix(place), limit: 2).count < 2
        // The tree may count it still: a device that did not get it does not have that number.
        let isInTree = try !row.isCounted && draft.threads.count(of: place, draft.transaction) > 0
        guard hasFallen || isInTree || !devices.isEmpty else { return }
        draft.threads.push(to: .user(uid)) { push in
            push.add(id, at: devices)
            if hasFallen || isInTree { push.concernsAll() }
            if isLast, !taking.stays(at: place) { push.clear(thread) }
        }
    }

    /// Removes what was shown for others alone, with the last of them.
    private func pushShownForOthers(_ taking: TakingBack, in draft: inout OutboxDraft) {
        for delivery in taking.shownForOthers {
            let receiver: ThreadCounts.Receiver =
                delivery.uid.isEmpty ? .token(device: delivery.device) : .user(delivery.uid)
            draft.threads.push(to: receiver) { push in
                push.add(delivery.notification, at: [delivery.device])
                // Android knows it by its thread.
                if let thread = delivery.pacing?.thread { push.clear(thread) }
            }
        }
    }

    // MARK: A thread

    /// Withdraws the next notifications of a user, the newest first: of one thread, or of all.
    mutating func withdraw(_ uid: String, _ thread: String?, in draft: inout OutboxDraft) throws {
        let receiver = ThreadCounts.Receiver.user(uid)
        draft.threads.push(to: receiver) { $0.concernsAll() }
        guard record.isRead else { return }
        let prefix = thread.map { ShownRecord.prefix(UserThread(uid: uid, thread: $0)) } ?? ShownRecord.prefix(uid)
        let (rows, isFull) = try oldRows(prefix, draft.transaction)
        var (read, taking): ([(thread: String, deliveries: [DeliveryRecord])], TakingBack) = (
            [], TakingBack(removesWords: record.lowersCount)
        )
        for row in rows {
            draft.writes.delete(row.key)
            guard let (thread, id) = ShownRecord.names(row.key) else { continue }
            draft.writes.record(OutboxEvent(withdrawn: id, from: uid, at: draft.now))
            if record.lowersCount, row.record.isCounted {
                let place = UserThread(uid: uid, thread: thread)
                _ = try draft.threads.add(-1, to: place, draft.transaction, &draft.writes)
            }
            let deliveries = try row.record.deliveries.compactMap { number in
                try draft.transaction.readable(DeliveryRecord.self, DeliveryRecord.key(id, number))
            }
            for delivery in deliveries { try taking.take(delivery, in: &draft) }
            read.append((thread, deliveries))
        }
        try taking.settle(in: &draft)
        outcome.dropped += taking.dropped
        for (thread, deliveries) in read {
            draft.threads.push(to: receiver) { push in
                if let shown = deliveries.first(where: taking.isShown) { push.content.ids.append(shown.notification) }
                if !taking.stays(at: UserThread(uid: uid, thread: thread)) { push.clear(thread) }
            }
        }
        pushShownForOthers(taking, in: &draft)
        outcome.isDone = !isFull
        if let thread, !taking.stays(at: UserThread(uid: uid, thread: thread)) {
            draft.threads.push(to: receiver) { $0.clear(thread) }
        }
    }

    /// The next rows of those that were there when the withdrawal began, the newest first, and whether there may be
    /// more: a page takes account of deliveries, since a notification has one of each device, and passes over a bounded
    /// number of rows that came since.
    private mutating func oldRows(
        _ prefix: RecordKey, _ transaction: any StoreTransaction
    ) throws -> (rows: [(key: RecordKey, record: ShownRecord)], isFull: Bool) {
        var rows: [(key: RecordKey, record: ShownRecord)] = []
        var (count, passedOver, last) = (0, 0, record.lastRow)
        var range = KeyRange(prefix: prefix.bytes)
        if let last { range.upper = last }
        guard !range.isEmpty else { return ([], false) }
        let through = record.through
        try transaction.scan(range, reverse: true) { key, value in
            let (key, value) = (RecordKey(bytes: key.copied), value.copied)
            last = key.bytes
            let found = try? RecordCodec.decode(ShownRecord.self, value, key: key.bytes)
            if found?.accepted ?? 0 <= through {
                rows.append((key, found ?? ShownRecord.fields.blank))
                count += max(1, found?.deliveries.count ?? 0)
            } else {
                passedOver += 1
            }
            return count < Self.rowsMax && passedOver < Self.passedOverMax ? .next : .stop
        }
        record.lastRow = last
        return (rows, count >= Self.rowsMax || passedOver >= Self.passedOverMax)
    }
}
