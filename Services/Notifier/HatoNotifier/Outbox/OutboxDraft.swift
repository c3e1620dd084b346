import HatoModel
import HatoStorage

/// What one transaction does to the outbox: reads through the transaction, gathers the writes, and remembers what it
/// has already said about lanes, since a transaction does not see its own writes.
struct OutboxDraft {
    let transaction: any StoreTransaction
    let now: Int64
    let limits: NotifierLimits
    var writes = RecordWrites()
    /// By how much the number of unfinished deliveries changes.
    private var pendingChange = 0
    /// By how much the number of dead ones changes.
    private var deadChange = 0
    /// Whether something may be due that was not before.
    private var hasEnqueued = false
    /// Rows that could not be read, and were not known before.
    private var unreadable: [RecordKey] = []
    /// Of those known, how many are forgotten.
    private var forgottenUnreadable = 0
    private var lanes: [Lane: [DeliveryRecord]] = [:]
    private var repetitions: [RecordKey: AcceptedNotification] = [:]
    /// How far firings of triggers are that this draft has accepted parts of.
    private var parts: [RecordKey: IdempotencyRecord] = [:]
    private var sequenceIndex: UInt32 = 0
    /// Devices of users that were asked for: the notifications of one batch go to few users, many times.
    private var devicesOfUsers: [String: [DeviceRecord]] = [:]

    init(_ transaction: any StoreTransaction, now: Int64, limits: NotifierLimits) {
        self.transaction = transaction
        self.now = now
        self.limits = limits
    }

    /// What a draft comes to besides its rows.
    struct Effects: Sendable {
        var pendingChange: Int
        var deadChange: Int
        var events: [OutboxEvent]
        var hasEnqueued: Bool
        var unreadable: [RecordKey]
        var forgottenUnreadable: Int
    }

    var effects: Effects {
        Effects(
            pendingChange: pendingChange, deadChange: deadChange, events: writes.events, hasEnqueued: hasEnqueued,
            unreadable: unreadable, forgottenUnreadable: forgottenUnreadable)
    }

    // MARK: Accepting

    /// `id` names the notification if it is not a repetition. With `evenForNobody` it is kept though it has no
    /// recipients.
    mutating func accept(_ new: NewNotification, id: String, evenForNobody: Bool) throws -> AcceptedNotification {
        if case .part(let part) = new.recipients { return try accept(new, part, id: id) }
        let idempotencyKey = new.idempotency.map { IdempotencyRecord.key(scope: $0.scope, $0.key) }
        if let idempotencyKey, let former = try repetition(of: new, idempotencyKey) { return former }
        let found = try devices(of: new.recipients)
        let devices = found.prefix(limits.deliveriesPerNotificationMax)
        let leftOut = found.count - devices.count
        if leftOut > 0, evenForNobody {
            throw OutboxRefusal.tooManyRecipients(found.count, max: limits.deliveriesPerNotificationMax)
        }
        guard !devices.isEmpty || evenForNobody else { return AcceptedNotification(notification: nil, recipients: 0) }
        let notification = NotificationRecord(
            id: id, createdAt: new.createdAt, expiresAt: new.expiresAt, text: new.text, data: new.data,
            collapseKey: new.collapseKey, trigger: new.trigger, path: new.path, recipients: devices.count,
            idempotencyKey: idempotencyKey?.bytes)
        let accepted = AcceptedNotification(notification: id, recipients: devices.count, leftOut: leftOut)
        begin(notification)
        if let idempotencyKey, let idempotency = new.idempotency {
            writes.put(
                idempotencyKey,
                IdempotencyRecord(
                    notification: id, recipients: devices.count, fingerprint: idempotency.fingerprint,
                    acceptedAt: now))
            repetitions[idempotencyKey] = accepted
        }
        for (index, device) in devices.enumerated() {
            try enqueue(new, of: id, index, to: Recipient(uid: device.uid, device: device.device))
        }
        return accepted
    }

    private mutating func begin(_ notification: NotificationRecord) {
        writes.put(NotificationRecord.key(notification.id), notification)
        writes.put(notification.purgeKey)
        writes.tell(OutboxEvent(accepted: notification))
    }

    private mutating func enqueue(
        _ new: NewNotification, of notification: String, _ index: Int, to recipient: Recipient
    ) throws {
        try enqueue(
            DeliveryRecord(
                notification: notification, index: UInt32(clamping: index), device: recipient.device,
                uid: recipient.uid, collapseKey: new.collapseKey, sequenceVersion: 0, sequenceIndex: 0,
                createdAt: new.createdAt, machine: DeliveryStateMachine(dueAt: now, expiresAt: new.expiresAt)))
    }

    /// Accepts a part of what a trigger's firing sends. The record of its idempotency key says through which user the
    /// parts before were accepted: what comes again after a crash is passed over, though users came or went since.
    private mutating func accept(
        _ new: NewNotification, _ part: RecipientPart, id: String
    ) throws -> AcceptedNotification {
        guard let idempotency = new.idempotency else { return AcceptedNotification(notification: nil, recipients: 0) }
        let key = IdempotencyRecord.key(scope: idempotency.scope, idempotency.key)
        // A firing is known for as long as its notification is kept: its key never means another one.
        let former = try parts[key] ?? transaction.readable(IdempotencyRecord.self, key)
        if let former, former.through == nil {
            return AcceptedNotification(
                notification: former.notification, recipients: former.recipients, isRepetition: true)
        }
        let recipients = part.recipients.drop { recipient in former?.through.map { recipient.uid <= $0 } ?? false }
        guard former != nil || !recipients.isEmpty else {
            return AcceptedNotification(notification: nil, recipients: 0)
        }
        var record =
            former
            ?? IdempotencyRecord(
                notification: id, recipients: 0, fingerprint: idempotency.fingerprint, acceptedAt: now)
        if former == nil {
            begin(
                NotificationRecord(
                    id: id, createdAt: new.createdAt, expiresAt: new.expiresAt, text: new.text, data: new.data,
                    collapseKey: new.collapseKey, trigger: new.trigger, path: new.path, recipients: part.total,
                    idempotencyKey: key.bytes))
        }
        for (index, recipient) in recipients.enumerated() {
            try enqueue(new, of: record.notification, record.recipients + index, to: recipient)
        }
        record.recipients += recipients.count
        record.through = part.isLast ? nil : recipients.last?.uid ?? record.through
        writes.put(key, record)
        parts[key] = record
        return AcceptedNotification(
            notification: record.notification, recipients: recipients.count, leftOut: part.isLast ? part.leftOut : 0)
    }

    private func repetition(of new: NewNotification, _ key: RecordKey) throws -> AcceptedNotification? {
        if let former = repetitions[key] {
            return AcceptedNotification(
                notification: former.notification, recipients: former.recipients, isRepetition: true)
        }
        guard let former = try transaction.record(IdempotencyRecord.self, key),
            former.acceptedAt + validity > now
        else { return nil }
        guard former.fingerprint == new.idempotency?.fingerprint else { throw OutboxRefusal.idempotencyKeyReused }
        return AcceptedNotification(
            notification: former.notification, recipients: former.recipients, isRepetition: true)
    }

    /// How long an idempotency key holds, from its first use.
    var validity: Int64 = 0

    private mutating func devices(of recipients: NewNotification.Recipients) throws -> [DeviceRecord] {
        switch recipients {
        case .uids(let uids):
            var seen: Set<String> = []
            return try uids.filter { seen.insert($0).inserted }.flatMap { try activeDevices(of: $0) }
        case .devices(let names):
            var seen: Set<String> = []
            return try names.filter { seen.insert($0).inserted }.map { name in
                guard let device = try transaction.record(DeviceRecord.self, DeviceRecord.key(name)) else {
                    throw OutboxRefusal.unknownDevice(name)
                }
                guard device.state == .active else { throw OutboxRefusal.disabledDevice(name) }
                return device
            }
        case .part: return []
        }
    }

    private mutating func activeDevices(of uid: String) throws -> [DeviceRecord] {
        if let known = devicesOfUsers[uid] { return known }
        let devices = try self.devices(of: uid).filter { $0.state == .active }
        devicesOfUsers[uid] = devices
        return devices
    }

    // MARK: Lanes

    /// Puts a pending delivery at the end of its lane; under a collapse key it takes the place of what was not sent
    /// yet.
    mutating func enqueue(_ delivery: DeliveryRecord) throws {
        var delivery = delivery
        delivery.sequenceVersion = transaction.nextVersion
        delivery.sequenceIndex = sequenceIndex
        sequenceIndex += 1
        var waiting = try lane(delivery.lane)
        if delivery.collapseKey != nil {
            for (index, former) in waiting.enumerated() where former.machine.state == .pending {
                let isHead = index == 0
                // A receiver that fails is not called sooner because there is more to say.
                if isHead, former.machine.attempts > 0 {
                    delivery.machine = DeliveryStateMachine(
                        dueAt: former.machine.time, expiresAt: delivery.machine.expiresAt)
                }
                if isHead { writes.delete(former.dueKey) }
                var replaced = former
                _ = replaced.machine.replaced(at: now)
                try leaveLane(replaced)
            }
            waiting.removeAll { $0.machine.state == .pending }
        }
        if waiting.isEmpty { writes.put(delivery.dueKey, bytes: delivery.key.bytes) }
        // Of a lane without a collapse key it only matters whether something is there.
        if delivery.collapseKey != nil || waiting.isEmpty { waiting.append(delivery) }
        lanes[delivery.lane] = waiting
        writes.put(delivery.key, delivery)
        writes.put(delivery.laneKey, bytes: delivery.key.bytes)
        pendingChange += 1
        hasEnqueued = true
    }

    /// What waits in a lane, as far as it matters: under a collapse key all of it, which is little; else whether there
    /// is something.
    private mutating func lane(_ lane: Lane) throws -> [DeliveryRecord] {
        if let known = lanes[lane] { return known }
        guard lane.collapseKey == nil else { return try readableRows(of: lane) }
        return try transaction.rows(lane.prefix, limit: 1).isEmpty ? [] : [DeliveryRecord.fields.blank]
    }

    /// The head of a lane has ended: the next one becomes due. `dueKey` is where the lane stood.
    mutating func finishHead(_ delivery: DeliveryRecord, dueKey: RecordKey) throws {
        writes.delete(dueKey)
        writes.delete(delivery.leasedKey)
        try leaveLane(delivery)
        let next = try transaction.rows(delivery.lane.prefix, after: delivery.laneKey, limit: 1).first
        if let next { try becomeHead(RecordKey(bytes: next.value), of: delivery.lane.prefix) }
    }

    /// Makes a delivery due as the head of its lane.
    mutating func becomeHead(_ delivery: RecordKey, of lane: RecordKey) throws {
        let next = try transaction.readable(DeliveryRecord.self, delivery)
        // One that cannot be read is set aside in its turn.
        let dueKey = next?.dueKey ?? RecordKey(.due).with(time: now).with(lane.tail)
        writes.put(dueKey, bytes: delivery.bytes)
        hasEnqueued = true
    }

    /// Drops what waits in the lanes of a device, the last rows first, so that a lane never stands without its head; at
    /// most `limit` rows before `end`. Returns where to go on, nil at the end.
    mutating func dropDeliveries(of device: String, before end: RecordKey?, limit: Int) throws -> RecordKey? {
        var range = KeyRange(prefix: RecordKey(.lane).with(device).bytes)
        if let end { range.upper = end.bytes }
        var rows: [(key: RecordKey, delivery: RecordKey)] = []
        try transaction.scan(range, reverse: true) { key, value in
            rows.append((RecordKey(bytes: key.copied), RecordKey(bytes: value.copied)))
            return rows.count < limit ? .next : .stop
        }
        for row in rows {
            // One that cannot be read is set aside when it is due.
            guard var delivery = try transaction.readable(DeliveryRecord.self, row.delivery),
                delivery.machine.state == .pending
            else { continue }
            if try transaction.value(delivery.dueKey) == row.delivery.bytes { writes.delete(delivery.dueKey) }
            _ = delivery.machine.deviceWentAway(nil, at: now)
            try leaveLane(delivery)
        }
        return rows.count < limit ? nil : rows.last?.key
    }

    private mutating func leaveLane(_ delivery: DeliveryRecord) throws {
        var delivery = delivery
        delivery.parkedAt = nil
        writes.put(delivery.key, delivery)
        writes.delete(delivery.laneKey)
        if delivery.machine.state == .dead {
            writes.put(delivery.deadKey, bytes: delivery.key.bytes)
            deadChange += 1
        }
        if let event = OutboxEvent(finished: delivery) { writes.tell(event) }
        pendingChange -= 1
    }

    // MARK: Unreadable rows

    /// Remembers the row; the first time, it is counted and logged.
    mutating func setAside(_ key: RecordKey) throws {
        let known = RecordKey(.unreadable).with(key.bytes[...])
        guard try !transaction.contains(known), !unreadable.contains(key) else { return }
        writes.put(known)
        unreadable.append(key)
    }

    /// Forgets a row that was set aside, since it goes.
    mutating func forgetSetAside(_ key: RecordKey) throws {
        let known = RecordKey(.unreadable).with(key.bytes[...])
        guard try transaction.contains(known) else { return }
        writes.delete(known)
        forgottenUnreadable += 1
    }

    mutating func leaveLane(unreadable laneKey: RecordKey) {
        writes.delete(laneKey)
        pendingChange -= 1
    }

    /// Takes a dead delivery out of the table of the dead.
    mutating func leaveDead(_ delivery: DeliveryRecord) {
        writes.delete(delivery.deadKey)
        deadChange -= 1
    }

    /// The head of a lane goes on: leased, or due at another time. `dueKey` is where the lane stood.
    mutating func moveHead(_ delivery: DeliveryRecord, dueKey: RecordKey) {
        var delivery = delivery
        delivery.parkedAt = nil
        writes.delete(dueKey)
        writes.put(delivery.key, delivery)
        writes.put(delivery.dueKey, bytes: delivery.key.bytes)
        if delivery.machine.state == .leased {
            writes.put(delivery.leasedKey)
        } else {
            writes.delete(delivery.leasedKey)
        }
    }
}

extension StoreReading {
    func devices(of uid: String) throws -> [DeviceRecord] {
        try deviceKeys(of: uid).compactMap { try readable(DeviceRecord.self, $0) }
    }

    func deviceKeys(of uid: String) throws -> [RecordKey] {
        let prefix = RecordKey(.deviceOfUser).with(uid)
        return try rows(prefix).map { row in
            var reader = RecordKeyReader(row.key.bytes)
            guard reader.text() != nil, let device = reader.text() else { throw UnreadableRecord(key: row.key.bytes) }
            return DeviceRecord.key(device)
        }
    }
}
