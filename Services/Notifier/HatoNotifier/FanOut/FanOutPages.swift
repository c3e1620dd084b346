import HatoModel
import HatoStorage

/// Turns jobs into deliveries, a page in each transaction.
struct FanOutPages: Sendable {
    private let outbox: Outbox
    private let deliveriesMax: Int

    init(_ outbox: Outbox) {
        self.outbox = outbox
        let limits = outbox.limits
        deliveriesMax = min(FanOutPage.deliveriesMax, limits.deliveriesAtOnceMax, max(1, limits.pendingMax / 4))
    }

    /// Whether a further page leaves half of the outbox to what is sent otherwise. What is not made waits in its job,
    /// where it takes nothing from others and is dropped for none. What one user has beyond its share does not count:
    /// it goes first if the outbox is full, and else one user could keep all pages waiting.
    var fits: Bool { outbox.waiting.boundedTotal + deliveriesMax <= max(1, outbox.limits.pendingMax / 2) }

    /// Whether a further page leaves an eighth of it: whenever the outbox is full, some user has more than its share,
    /// and no other one loses anything.
    var fitsSlowly: Bool {
        let max = outbox.limits.pendingMax
        return outbox.waiting.boundedTotal + deliveriesMax <= max - max / 8
    }

    /// Jobs that are looked at in one transaction.
    private static let jobsMax = 256

    /// Ends the jobs of notifications of which no further delivery is made.
    func endExpired() async throws {
        let ended = try await outbox.store.read { [outbox] snapshot in
            try snapshot.keys(RecordKey(.fanOut), limit: .max).filter { key in
                try FanOutRecord.hasEnded(key, at: outbox.time.now(), snapshot)
            }
        }
        for start in stride(from: 0, to: ended.count, by: Self.jobsMax) {
            let keys = Array(ended[start...].prefix(Self.jobsMax))
            try await outbox.change { draft in
                for key in keys {
                    // A page may have ended it meanwhile. One that cannot be read is set aside in its turn.
                    try draft.transaction.readable(FanOutRecord.self, key)?.end(in: &draft)
                }
            }
        }
    }

    /// Makes one page of deliveries of the job behind `last`, or of the first one; returns it. Nil: there is none.
    func turn(after last: RecordKey?) async throws -> RecordKey? {
        try await outbox.change { [deliveriesMax] draft in
            guard let job = try FanOutRecord.next(after: last, in: &draft) else { return nil }
            let key = FanOutRecord.key(job.notification)
            var page = FanOutPage(job, deliveriesMax: deliveriesMax)
            do { try page.write(to: &draft) } catch let error as UnreadableRecord {
                throw FailedPage(job: key, error: error)
            }
            return key
        }
    }

    /// A page that cannot be made, since a row cannot be read; those of other jobs can.
    struct FailedPage: Error {
        var job: RecordKey
        var error: UnreadableRecord
    }
}

/// One page of deliveries.
private struct FanOutPage {
    /// Deliveries of a page, beside those that the last user has more.
    static let deliveriesMax = 500
    /// Users that a page looks at: many may have no device.
    private static let usersMax = 1_000

    private var job: FanOutRecord
    private let deliveriesMax: Int
    private var recipients: [(index: Int, recipient: Recipient)] = []
    private var isLast = false

    init(_ job: FanOutRecord, deliveriesMax: Int) {
        (self.job, self.deliveriesMax) = (job, deliveriesMax)
    }

    mutating func write(to draft: inout OutboxDraft) throws {
        let key = NotificationRecord.key(job.notification)
        let notification: NotificationRecord?
        do { notification = try draft.transaction.record(NotificationRecord.self, key) } catch is UnreadableRecord {
            try draft.setAside(key)
            return try job.end(in: &draft)
        }
        // What has expired, or was withdrawn, is delivered to no further device.
        guard let notification, !notification.hasEnded(at: draft.now) else { return try job.end(in: &draft) }
        if let topic = job.topic {
            try take(usersOf: topic, &draft)
        } else if let uids = job.uids {
            try take(uids, &draft)
        } else {
            try take(devices: job.devices ?? [], &draft)
        }
        let new = NewNotification(notification)
        let readers = try count(new, in: &draft)
        for (index, recipient) in recipients {
            let delivery = NewDelivery(
                new: new, notification: job.notification, index: index, recipient: recipient)
            if readers.contains(recipient.uid) {
                delivery.drop(in: &draft)
            } else {
                try delivery.enqueue(in: &draft)
            }
        }
        draft.fanOuts.made(recipients.lazy.map(\.recipient))
        if isLast {
            try job.end(in: &draft, isWhole: true)
        } else {
            draft.writes.put(FanOutRecord.key(job.notification), job)
        }
    }

    /// Counts the notification for the users of the page, each once. Returns those that have read it since an earlier
    /// page counted it.
    private mutating func count(_ new: NewNotification, in draft: inout OutboxDraft) throws -> Set<String> {
        guard let thread = new.options?.thread else { return [] }
        let shown = new.shown
        let recipients = recipients.filter { shown.isShown(on: $0.recipient.platform) }
        let known = Set(job.counted ?? [])
        let first = recipients.filter { !known.contains($0.recipient.uid) }
        try ThreadSteps.count(
            new, as: job.notification, first.map { (number: $0.index, recipient: $0.recipient) }, in: &draft)
        if job.devices != nil, !isLast {
            // Only these can be in a later page as well.
            let uids = Set(first.map(\.recipient.uid)).filter { !$0.isEmpty }
            let several = try uids.filter { try draft.transaction.deviceKeys(of: $0).count > 1 }
            job.counted = known.union(several).sorted()
        }
        var readers: Set<String> = []
        let further = Dictionary(grouping: recipients.filter { known.contains($0.recipient.uid) }, by: \.recipient.uid)
        for (uid, deliveries) in further {
            let key = ShownRecord.key(UserThread(uid: uid, thread: thread), job.notification)
            guard try draft.transaction.contains(key) else {
                readers.insert(uid)
                continue
            }
            guard var row = try draft.transaction.readable(ShownRecord.self, key) else { continue }
            row.deliveries += deliveries.map { UInt32(clamping: $0.index) }
            draft.writes.put(key, row)
        }
        return readers
    }

    private mutating func take(usersOf topic: String, _ draft: inout OutboxDraft) throws {
        let limit = min(Self.usersMax, 2 * deliveriesMax)
        let uids = try TopicReading(draft.transaction).users(of: topic, after: job.through, limit: limit)
        let count = try takeDevices(of: uids, &draft)
        job.through = count > 0 ? uids[count - 1] : job.through
        isLast = count == uids.count && uids.count < limit
    }

    private mutating func take(_ uids: [String], _ draft: inout OutboxDraft) throws {
        let count = try takeDevices(of: uids.prefix(Self.usersMax), &draft)
        job.uids = Array(uids.dropFirst(count))
        isLast = count == uids.count
    }

    /// Takes the active devices of users until the page is full; returns of how many users.
    private mutating func takeDevices(of uids: some Sequence<String>, _ draft: inout OutboxDraft) throws -> Int {
        var count = 0
        for uid in uids {
            for device in try draft.devices(of: uid) where device.state == .active {
                recipients.append((job.deliveries, Recipient(device)))
                job.deliveries += 1
            }
            count += 1
            if recipients.count >= deliveriesMax { break }
        }
        job.done += count
        return count
    }

    /// Each device has the number of its place in the list: the caller knows its delivery by it.
    private mutating func take(devices: [String], _ draft: inout OutboxDraft) throws {
        let names = devices.prefix(deliveriesMax)
        for (offset, name) in names.enumerated() {
            // It may have gone since.
            guard let device = try draft.transaction.readable(DeviceRecord.self, DeviceRecord.key(name)),
                device.state == .active
            else { continue }
            recipients.append((job.done + offset, Recipient(device)))
            job.deliveries += 1
        }
        job.done += names.count
        job.devices = Array(devices.dropFirst(names.count))
        isLast = names.count == devices.count
    }
}

extension FanOutRecord {
    /// The deliveries of a notification that began in a draft are made later. Throws when those of too many are.
    func begin(in draft: inout OutboxDraft, max: Int) throws {
        try draft.fanOuts.begin(max: max)
        draft.writes.put(FanOutRecord.key(notification), self)
        draft.texts.add(1, to: notification)
    }

    /// No further delivery is made; `isWhole` says that all are.
    fileprivate func end(in draft: inout OutboxDraft, isWhole: Bool = false) throws {
        let hasExpired = try !isWhole && isExpired(at: draft.now, draft.transaction)
        draft.fanOuts.end(hasExpired: hasExpired)
        draft.writes.delete(FanOutRecord.key(notification))
        draft.texts.add(-1, to: notification)
    }

    private func isExpired(at now: Int64, _ reading: some StoreReading) throws -> Bool {
        let record = try reading.readable(NotificationRecord.self, NotificationRecord.key(notification))
        return record.map { $0.withdrawnAt == nil && now >= $0.expiresAt } ?? false
    }

    /// Whether the job with this key makes no further deliveries.
    fileprivate static func hasEnded(_ key: RecordKey, at now: Int64, _ reading: some StoreReading) throws -> Bool {
        var reader = RecordKeyReader(key.bytes)
        guard let notification = reader.text() else { return false }
        let record = try reading.readable(NotificationRecord.self, NotificationRecord.key(notification))
        return record?.hasEnded(at: now) ?? true
    }

    /// Whether deliveries of a notification are still to be made.
    static func isUnderWay(_ notification: String, _ reading: some StoreReading) throws -> Bool {
        try reading.readable(FanOutRecord.self, key(notification)) != nil
    }

    /// Removes a job that cannot be read with its notification.
    static func remove(_ notification: String, in draft: inout OutboxDraft) throws {
        let key = key(notification)
        guard try draft.transaction.contains(key) else { return }
        try draft.forgetSetAside(key)
        draft.fanOuts.end()
        draft.writes.delete(key)
    }

    /// The job behind `last`, or the first one, of those that can be read; the others are set aside.
    fileprivate static func next(after last: RecordKey?, in draft: inout OutboxDraft) throws -> FanOutRecord? {
        for start in last == nil ? [nil] : [last, nil] {
            var position = start
            while let row = try draft.transaction.rows(RecordKey(.fanOut), after: position, limit: 1).first {
                do { return try RecordCodec.decode(FanOutRecord.self, row.value, key: row.key.bytes) } catch {
                    try draft.setAside(row.key)
                    position = row.key
                }
            }
        }
        return nil
    }
}

extension NotificationRecord {
    /// Whether it is delivered to no further device.
    fileprivate func hasEnded(at now: Int64) -> Bool { now >= expiresAt || withdrawnAt != nil }
}

extension NewNotification {
    /// What is accepted already, without recipients.
    fileprivate init(_ record: NotificationRecord) {
        self.init(
            recipients: .devices([]), text: record.text, localized: record.localized, data: record.data,
            collapseKey: record.collapseKey, options: record.options, platforms: record.platforms,
            createdAt: record.createdAt, expiresAt: record.expiresAt, trigger: record.trigger, path: record.path,
            category: record.category, isWithdrawable: record.hasOrigin, cut: record.cut, content: record.contentChoice)
    }
}
