import HatoModel
import HatoPush
import HatoStorage

/// The right to make one attempt, until the lease ends.
struct Lease: Sendable {
    var key: RecordKey
    /// Which attempt it is, from 1; a result of an earlier one comes too late.
    var attempt: Int
    var platform: Notifier.Platform
    /// Whose attempt it is, and where it goes.
    var group: AttemptGroup
    /// Whether its device had a delivery before.
    var hasSucceeded: Bool
    /// Whether its device was refused before.
    var isKnownRefused = false
    /// When it began, in milliseconds since 1970.
    var began: Int64
    var delivery: Delivery
}

/// A delivery that is due, with its device.
struct LaneHead {
    var delivery: DeliveryRecord
    var device: DeviceRecord
    var address: DeviceAddress
    /// The row of its lane.
    var row: RecordKey

    var group: AttemptGroup { AttemptGroup(at: address, of: delivery.uid) }
}

extension LaneHead {
    /// The delivery that the row of a lane stands for. Nil: the lane stands elsewhere, or the device is gone, and the
    /// delivery has ended. Throws `UnreadableRecord` when something that an attempt needs cannot be read.
    init?(_ row: (key: RecordKey, value: [UInt8]), _ draft: inout OutboxDraft) throws {
        let transaction = draft.transaction
        guard var delivery = try transaction.record(DeliveryRecord.self, RecordKey(bytes: row.value)) else {
            throw UnreadableRecord(key: row.value)
        }
        // One that went as one with another in this transaction.
        if draft.hasLeft(delivery.laneKey) || draft.hasMoved(delivery.key) { return nil }
        guard row.key == delivery.dueKey, !delivery.machine.isFinished else {
            draft.writes.delete(row.key)
            return nil
        }
        let device = try transaction.device(delivery.device)
        guard let device, device.state == .active else {
            _ = delivery.machine.deviceWentAway(nil, at: draft.now)
            try draft.finishHeads(from: delivery, dueKey: row.key) { $0.deviceWentAway(nil, at: $1) }
            return nil
        }
        do { address = try device.address(at: draft.now) } catch { throw UnreadableRecord(key: device.key.bytes) }
        (self.delivery, self.device, self.row) = (delivery, device, row.key)
    }

    /// Begins an attempt of a delivery that is due. Nil: it has ended, as may those behind it, or it is held back.
    /// Throws `UnreadableRecord` when its notification cannot be read.
    func lease(until end: Int64, _ draft: inout OutboxDraft) throws -> Lease? {
        if delivery.digest != nil, try !MailThread(head: delivery).isDue(at: row, in: &draft) { return nil }
        let notification = try draft.notifications.record(delivery.notification, draft.transaction)
        let admission = DeliveryAdmission(head: self, notification: notification)
        guard let admitted = try admission.admit(&draft) else { return nil }
        var delivery = admitted.delivery
        if delivery.pacing?.staysForOthers == true { delivery.machine.staysForOthers() }
        switch delivery.machine.leaseRequested(at: draft.now, until: end) {
        case .ignore, .waitUntil: return nil
        case .finish:
            let hold = self.delivery.machine.hold
            try draft.finishHeads(from: delivery, dueKey: row) { machine, now in
                // It waited for the same.
                if hold == .quiet { _ = machine.waited(because: .quiet) }
                return machine.timePassed(at: now)
            }
            return nil
        case .send:
            draft.moveHead(delivery, dueKey: row)
            var sent = try notification.sent(as: delivery, to: device, at: address, draft.transaction)
            sent.content = admitted.content(
                sent.content, summary: notification.options?.summary, locale: device.locale)
            if delivery.digest != nil { try MailThread(head: delivery).gather(for: device, into: &sent, in: &draft) }
            return Lease(
                key: delivery.key, attempt: delivery.machine.attempts, platform: device.platform,
                group: group, hasSucceeded: device.hasSucceeded, isKnownRefused: device.refusedSince != nil,
                began: draft.now, delivery: sent)
        }
    }
}

/// The notification that a transaction read last: the deliveries of one follow each other, and each reads it.
struct LastNotification {
    private var last: NotificationRecord?

    /// Throws `UnreadableRecord`, also when there is none.
    mutating func record(_ id: String, _ transaction: some StoreReading) throws -> NotificationRecord {
        if let last, last.id == id { return last }
        let key = NotificationRecord.key(id)
        guard let record = try transaction.record(NotificationRecord.self, key) else {
            throw UnreadableRecord(key: key.bytes)
        }
        last = record
        return record
    }
}

extension NotificationRecord {
    /// What a device gets of it.
    func sent(
        as delivery: DeliveryRecord, to device: DeviceRecord, at address: DeviceAddress, _ reading: some StoreReading
    ) throws -> Delivery {
        var content = try reading.badged(
            content(for: delivery, device), of: self, for: delivery, on: device.platform)
        content.appearance.category = try reading.content(ofCategory: category, for: device.locale)
        if contentChoice == .ids { content = content.idsOnly(in: device.locale) }
        var sent = Delivery(id: delivery.id, address: address, content: content, createdAt: createdAt)
        sent.app = device.app ?? Delivery.defaultApp
        sent.expiresAt = delivery.machine.expiresAt
        return sent
    }

    private func content(for delivery: DeliveryRecord, _ device: DeviceRecord) -> DeliveryContent {
        var content = DeliveryContent(
            notification: id, device: delivery.device, uid: delivery.uid, text: text(for: device.locale))
        content.data = data
        content.choice = choice?.content
        content.trigger = trigger
        content.path = path
        content.collapseKey = collapseKey
        content.platforms = platforms
        if let options {
            content.appearance.priority = options.priority ?? .high
            content.appearance.sound = options.sound
            content.appearance.badge = options.badge
            content.appearance.thread = options.thread
            content.appearance.image = options.image
            content.appearance.link = options.link
            content.appearance.interruptionLevel = options.interruptionLevel
        }
        return content
    }
}
