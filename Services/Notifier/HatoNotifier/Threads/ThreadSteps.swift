import HatoModel
import HatoStorage

/// What accepting, reading, deleting and forgetting do to threads, each as a part of a transaction.
enum ThreadSteps {
    /// Counts a notification for its users, once for each, and remembers which deliveries show it to them: numbers and
    /// recipients.
    static func count(
        _ new: NewNotification, as id: String, _ deliveries: [(number: Int, recipient: Recipient)],
        in draft: inout OutboxDraft
    ) throws {
        guard let thread = new.options?.thread else { return }
        let shown = new.shown
        var numbers: [String: [UInt32]] = [:]
        for (number, recipient) in deliveries where !recipient.uid.isEmpty && shown.isShown(on: recipient.platform) {
            numbers[recipient.uid, default: []].append(UInt32(clamping: number))
        }
        for (uid, deliveries) in numbers {
            let place = UserThread(uid: uid, thread: thread)
            if new.isCounted { _ = try draft.threads.add(1, to: place, draft.transaction, &draft.writes) }
            draft.writes.put(
                ShownRecord.key(place, id),
                ShownRecord(
                    deliveries: deliveries, isCounted: new.isCounted, accepted: draft.transaction.nextVersion))
        }
    }

    /// Users that look at what a notification is about get the badge of it only.
    static func showBadge(of new: NewNotification, to recipients: [Recipient], in draft: inout OutboxDraft) {
        // A number in place of the count is that of a push that shows something.
        guard new.options?.thread != nil, new.options?.badge == nil else { return }
        let shown = new.shown
        for recipient in recipients where !recipient.uid.isEmpty && shown.isShown(on: recipient.platform) {
            draft.threads.push(to: .user(recipient.uid)) { $0.concernsAll() }
        }
    }

    /// Whether a notification that is about to be accepted, or more of it, was withdrawn already: the node that fired
    /// it is deleted, or `notifier.withdraw` came between its parts. One that is not is found by its path from now on.
    static func isWithdrawn(_ new: NewNotification, as id: String, isBegun: Bool, in draft: inout OutboxDraft) throws
        -> Bool
    {
        if isBegun,
            try draft.transaction.readable(NotificationRecord.self, NotificationRecord.key(id))?.withdrawnAt != nil
        {
            return true
        }
        guard let key = new.originKey, let position = new.position else { return false }
        var origin = try draft.threads.origin(key, draft.transaction) ?? OriginRecord.fields.blank
        if origin.isDeleted(after: position) { return true }
        guard !origin.notifications.contains(id) else { return false }
        origin.notifications = origin.notifications.suffix(OriginRecord.notificationsMax - 1) + [id]
        draft.threads.put(origin, at: key, &draft.writes)
        return false
    }

    /// A notification is not sent to a user since it was withdrawn. The tree may count it still, and no push has
    /// brought that number.
    static func skip(_ new: NewNotification, to uid: String, in draft: inout OutboxDraft) throws {
        guard !new.isCounted, !uid.isEmpty, let thread = new.options?.thread else { return }
        let place = UserThread(uid: uid, thread: thread)
        guard try draft.threads.count(of: place, draft.transaction) > 0 else { return }
        draft.threads.push(to: .user(uid)) { $0.concernsAll() }
    }

    /// Forgets what leads to a notification that is forgotten.
    static func forget(_ notification: NotificationRecord, _ deliveries: [DeliveryRecord], in draft: inout OutboxDraft)
        throws
    {
        forgetShown(notification, deliveries, in: &draft)
        guard notification.hasOrigin, let trigger = notification.trigger, let path = notification.path else { return }
        let key = OriginRecord.key(trigger, path)
        guard var origin = try draft.threads.origin(key, draft.transaction) else { return }
        origin.notifications.removeAll { $0 == notification.id }
        if origin.notifications.isEmpty { origin.deleted = nil }
        draft.threads.put(origin, at: key, &draft.writes)
    }

    /// Forgets that users of deliveries have not read a notification that is forgotten.
    static func forgetShown(
        _ notification: NotificationRecord, _ deliveries: [DeliveryRecord], in draft: inout OutboxDraft
    ) {
        guard let thread = notification.options?.thread else { return }
        for uid in Set(deliveries.map(\.uid)) {
            draft.writes.delete(ShownRecord.key(UserThread(uid: uid, thread: thread), notification.id))
        }
    }

    /// Forgets that a node was deleted of which no notification came.
    static func forgetDeletion(at key: RecordKey, in draft: inout OutboxDraft) throws {
        guard let origin = try draft.threads.origin(key, draft.transaction), origin.notifications.isEmpty else {
            return
        }
        draft.threads.put(OriginRecord.fields.blank, at: key, &draft.writes)
    }

    /// Applies a change of a database that came with this transaction.
    ///
    /// - Parameter isBehind: whether changes wait that may still fire triggers.
    static func apply(_ placed: ThreadChange.Placed, isBehind: Bool, in draft: inout OutboxDraft) throws {
        switch placed.change {
        case .unknown: break
        case .counted(let place, let count):
            try setCount(count, of: place, in: &draft)
            if count == 0, isBehind { try rememberRead(place, at: placed, in: &draft) }
        case .deleted(let path, let trigger):
            let key = OriginRecord.key(trigger, path)
            var origin = try draft.threads.origin(key, draft.transaction) ?? OriginRecord.fields.blank
            guard isBehind || !origin.notifications.isEmpty else { return }
            for id in origin.notifications { try beginWithdrawal(of: id, in: &draft) }
            origin.deleted = ChangePosition(sequence: draft.transaction.nextVersion, index: placed.index)
            draft.threads.put(origin, at: key, &draft.writes)
            if origin.notifications.isEmpty { forgetLater(key, in: &draft) }
        }
    }

    /// What was written before a thread was read may be accepted after that: it was read, too.
    private static func rememberRead(
        _ place: UserThread, at placed: ThreadChange.Placed, in draft: inout OutboxDraft
    ) throws {
        let key = OriginRecord.key(place)
        var read = try draft.threads.origin(key, draft.transaction) ?? OriginRecord.fields.blank
        if read.deleted == nil { forgetLater(key, in: &draft) }
        read.deleted = ChangePosition(sequence: draft.transaction.nextVersion, index: placed.index)
        draft.threads.put(read, at: key, &draft.writes)
    }

    /// Whether the user had read the thread of a notification, by the tree, before it is accepted.
    static func isRead(_ new: NewNotification, by uid: String, in draft: inout OutboxDraft) throws -> Bool {
        guard !new.isCounted, !uid.isEmpty, let thread = new.options?.thread, let position = new.position else {
            return false
        }
        return try draft.threads.origin(OriginRecord.key(UserThread(uid: uid, thread: thread)), draft.transaction)?
            .isDeleted(after: position) == true
    }

    /// Where no notification comes, none is forgotten.
    private static func forgetLater(_ key: RecordKey, in draft: inout OutboxDraft) {
        let name = key.tail.map { String($0, radix: 36) }.joined(separator: ".")
        draft.writes.put(RecordKey(.purge).with(time: draft.now).with(name), bytes: key.bytes)
    }

    /// Sets the count of a thread, or of all threads of a user to 0. Where it falls, the user's devices get the badge;
    /// at 0, the thread was read.
    static func setCount(_ count: Int, of place: UserThread, in draft: inout OutboxDraft) throws {
        let hasFallen = try draft.threads.set(count, of: place, draft.transaction, &draft.writes)
        // Notifications may be shown without a count: it went when there were too many, or the app keeps none.
        guard try hasFallen || count == 0 && hasShown(ShownRecord.prefix(place), in: draft) else { return }
        try draft.threads.begin(
            .thread(uid: place.uid, thread: place.thread),
            WithdrawalRecord(through: draft.transaction.nextVersion, isRead: count == 0), draft.transaction,
            &draft.writes)
    }

    private static func hasShown(_ prefix: RecordKey, in draft: OutboxDraft) throws -> Bool {
        try !draft.transaction.keys(prefix, limit: 1).isEmpty
    }

    static func readAll(of uid: String, in draft: inout OutboxDraft) throws {
        let hasFallen = try draft.threads.clear(uid, draft.transaction, &draft.writes)
        guard try hasFallen || hasShown(ShownRecord.prefix(uid), in: draft) else { return }
        try draft.threads.begin(
            .thread(uid: uid, thread: nil), WithdrawalRecord(through: draft.transaction.nextVersion, isRead: true),
            draft.transaction, &draft.writes)
    }

    /// Withdraws a notification, unless that was begun before. Returns whether it is there.
    @discardableResult
    static func beginWithdrawal(of id: String, in draft: inout OutboxDraft) throws -> Bool {
        let key = NotificationRecord.key(id)
        guard var notification = try draft.transaction.readable(NotificationRecord.self, key),
            notification.withdrawal == nil
        else { return false }
        guard notification.withdrawnAt == nil else { return true }
        notification.withdrawnAt = draft.now
        draft.texts.put(notification, &draft.writes)
        try draft.threads.begin(
            .notification(id), WithdrawalRecord(through: draft.transaction.nextVersion), draft.transaction,
            &draft.writes)
        return true
    }

    /// An attempt arrived that was under way when its notification was withdrawn.
    static func withdrawIfShown(_ delivery: DeliveryRecord, in draft: inout OutboxDraft) throws {
        guard delivery.machine.isWithdrawn, delivery.machine.state == .delivered else { return }
        let receiver: ThreadCounts.Receiver =
            delivery.uid.isEmpty ? .token(device: delivery.device) : .user(delivery.uid)
        let notification = try draft.transaction.readable(
            NotificationRecord.self, NotificationRecord.key(delivery.notification))
        draft.threads.push(to: receiver) { push in
            push.add(delivery.notification, at: [delivery.device])
            guard let thread = notification?.options?.thread else { return }
            // Android knows it by its thread.
            push.clear(thread)
            // It came with the badge of the time when it was sent, perhaps after a newer one.
            push.content.hasBadge = true
        }
    }

    /// Withdraws what a user has of a thread, if there is something.
    static func withdraw(_ uid: String, _ thread: String, in draft: inout OutboxDraft) throws {
        let prefix = ShownRecord.prefix(UserThread(uid: uid, thread: thread))
        guard try hasShown(prefix, in: draft) else { return }
        let record = WithdrawalRecord(through: draft.transaction.nextVersion, isRead: true, lowersCount: true)
        try draft.threads.begin(.thread(uid: uid, thread: thread), record, draft.transaction, &draft.writes)
    }
}
