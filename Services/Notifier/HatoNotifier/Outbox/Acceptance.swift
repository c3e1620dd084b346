import HatoModel
import HatoStorage

/// Makes the notifications of one transaction deliveries of it, each notification once. Remembers what it accepted,
/// since a transaction does not see its own writes.
struct Acceptance {
    private let limits: NotifierLimits
    /// How long an idempotency key holds, from its first use.
    private let validity: Int64
    private var repetitions: [RecordKey: AcceptedNotification] = [:]
    /// How far firings of triggers are that parts were accepted of.
    private var parts: [RecordKey: IdempotencyRecord] = [:]
    /// Devices of users that were asked for: the notifications of one batch go to few users, many times.
    private var devicesOfUsers: [String: [DeviceRecord]] = [:]
    /// The devices of tokens, in the order in which the tokens were named.
    private var namedDevices: [String] = []

    init(_ limits: NotifierLimits, _ policy: DeliveryPolicy) {
        self.limits = limits
        validity = policy.idempotency.milliseconds
    }

    /// Accepts a notification under the name `id` if it is not a repetition.
    mutating func accept(
        _ new: NewNotification, id: String, in draft: inout OutboxDraft
    ) throws -> AcceptedNotification {
        if case .part(let part) = new.recipients { return try accept(new, part, id: id, in: &draft) }
        let idempotencyKey = new.idempotency.map { IdempotencyRecord.key(scope: $0.scope, $0.key) }
        if let idempotencyKey, let former = try repetition(of: new, idempotencyKey, in: draft) { return former }
        // What a trigger names may have gone since: then it goes without actions.
        if new.trigger == nil { try draft.transaction.checkCategory(new.category) }
        let devices = try devices(of: new.recipients, in: &draft)
        let job = try fanOut(new.recipients, devices, id: id, in: draft)
        let recipients = job?.total ?? devices.count
        var notification = try NotificationRecord(new, id: id, recipients: recipients, in: &draft)
        notification.idempotencyKey = idempotencyKey?.bytes
        var accepted = AcceptedNotification(notification: id, recipients: recipients)
        accepted.isFannedOut = job != nil
        let numbers = Dictionary(devices.enumerated().map { ($1.device, $0) }) { first, _ in first }
        accepted.deliveries = namedDevices.map { numbers[$0] }
        notification.begin(in: &draft)
        if let idempotencyKey, let idempotency = new.idempotency {
            draft.writes.put(
                idempotencyKey,
                IdempotencyRecord(
                    notification: id, recipients: recipients, fingerprint: idempotency.fingerprint,
                    acceptedAt: draft.now, isFannedOut: job != nil))
            repetitions[idempotencyKey] = accepted
        }
        if let job {
            try job.begin(in: &draft, max: limits.fanOutsMax)
            return accepted
        }
        for (index, device) in devices.enumerated() {
            try NewDelivery(new: new, notification: id, index: index, recipient: Recipient(device)).enqueue(in: &draft)
        }
        try ThreadSteps.count(new, as: id, devices.enumerated().map { ($0, Recipient($1)) }, in: &draft)
        return accepted
    }

    /// Accepts a part of what a trigger's firing sends. The record of its idempotency key says through which user the
    /// parts before were accepted: what comes again after a crash is passed over, though users came or went since.
    private mutating func accept(
        _ new: NewNotification, _ part: RecipientPart, id: String, in draft: inout OutboxDraft
    ) throws -> AcceptedNotification {
        guard let idempotency = new.idempotency else { return AcceptedNotification(notification: nil, recipients: 0) }
        let key = IdempotencyRecord.key(scope: idempotency.scope, idempotency.key)
        // A firing is known for as long as its notification is kept: its key never means another one.
        let former = try parts[key] ?? draft.transaction.readable(IdempotencyRecord.self, key)
        if let former, former.through == nil {
            return AcceptedNotification(
                notification: former.notification, recipients: former.recipients, isRepetition: true)
        }
        let recipients = part.recipients.drop { recipient in former?.through.map { recipient.order <= $0 } ?? false }
        guard former != nil || !recipients.isEmpty else {
            return AcceptedNotification(notification: nil, recipients: 0)
        }
        var record =
            former
            ?? IdempotencyRecord(
                notification: id, recipients: 0, fingerprint: idempotency.fingerprint, acceptedAt: draft.now)
        if former == nil {
            var notification = try NotificationRecord(new, id: id, recipients: part.total, in: &draft)
            notification.idempotencyKey = key.bytes
            notification.begin(in: &draft)
        }
        // Until the last part has come, the texts stay.
        if former == nil, !part.isLast { draft.texts.add(1, to: id) }
        if former != nil, part.isLast { draft.texts.add(-1, to: record.notification) }
        let isWithdrawn = try ThreadSteps.isWithdrawn(
            new, as: record.notification, isBegun: former != nil, in: &draft)
        var accepted: [(number: Int, recipient: Recipient)] = []
        for (index, recipient) in recipients.enumerated() {
            let number = record.recipients + index
            let delivery = NewDelivery(
                new: new, notification: record.notification, index: number, recipient: recipient)
            let isRead = try isWithdrawn || ThreadSteps.isRead(new, by: recipient.uid, in: &draft)
            if isRead || recipient.isPresent {
                delivery.drop(in: &draft)
                if isWithdrawn { try ThreadSteps.skip(new, to: recipient.uid, in: &draft) }
            } else {
                try delivery.enqueue(in: &draft)
            }
            if !isRead { accepted.append((number, recipient)) }
        }
        try ThreadSteps.count(new, as: record.notification, accepted, in: &draft)
        if !isWithdrawn { ThreadSteps.showBadge(of: new, to: recipients.filter(\.isPresent), in: &draft) }
        record.recipients += recipients.count
        record.through = part.isLast ? nil : recipients.last?.order ?? record.through
        draft.writes.put(key, record)
        parts[key] = record
        return AcceptedNotification(
            notification: record.notification, recipients: recipients.count, leftOut: part.isLast ? part.leftOut : 0)
    }

    private func repetition(
        of new: NewNotification, _ key: RecordKey, in draft: OutboxDraft
    ) throws -> AcceptedNotification? {
        if let former = repetitions[key] {
            return AcceptedNotification(
                notification: former.notification, recipients: former.recipients, isRepetition: true,
                isFannedOut: former.isFannedOut)
        }
        guard let former = try draft.transaction.record(IdempotencyRecord.self, key),
            former.acceptedAt + validity > draft.now
        else { return nil }
        guard former.fingerprint == new.idempotency?.fingerprint else { throw OutboxRefusal.idempotencyKeyReused }
        return AcceptedNotification(
            notification: former.notification, recipients: former.recipients, isRepetition: true,
            isFannedOut: former.isFannedOut)
    }

    private mutating func devices(
        of recipients: NewNotification.Recipients, in draft: inout OutboxDraft
    ) throws -> [DeviceRecord] {
        var seen: Set<String> = []
        var devices: [DeviceRecord] = []
        switch recipients {
        case .uids(let uids):
            for uid in uids where seen.insert(uid).inserted {
                devices += try activeDevices(of: uid, in: &draft)
                // More are read later, in pages.
                if devices.count > limits.deliveriesAtOnceMax { break }
            }
        case .devices(let names):
            for name in names where seen.insert(name).inserted {
                guard let device = try draft.transaction.record(DeviceRecord.self, DeviceRecord.key(name)) else {
                    throw OutboxRefusal.unknownDevice(name)
                }
                guard device.state == .active else { throw OutboxRefusal.disabledDevice(name) }
                devices.append(device)
            }
        case .tokens(let forms):
            let named = try TokenDevices.take(forms, in: &draft)
            namedDevices = named.map(\.device)
            devices = named.filter { $0.state == .active && seen.insert($0.device).inserted }
        case .part, .topic: break
        }
        return devices
    }

    /// The deliveries that are not made at once: those of a topic, and of many devices.
    private func fanOut(
        _ recipients: NewNotification.Recipients, _ devices: [DeviceRecord], id: String, in draft: OutboxDraft
    ) throws -> FanOutRecord? {
        if case .topic(let topic) = recipients {
            return FanOutRecord(
                notification: id, topic: topic, total: try TopicReading(draft.transaction).userCount(of: topic))
        }
        guard devices.count > limits.deliveriesAtOnceMax else { return nil }
        if case .uids(let uids) = recipients {
            var seen: Set<String> = []
            let unique = uids.filter { seen.insert($0).inserted }
            return FanOutRecord(notification: id, uids: unique, total: unique.count)
        }
        return FanOutRecord(notification: id, devices: devices.map(\.device), total: devices.count)
    }

    private mutating func activeDevices(of uid: String, in draft: inout OutboxDraft) throws -> [DeviceRecord] {
        if let known = devicesOfUsers[uid] { return known }
        let devices = try draft.devices(of: uid).filter { $0.state == .active }
        devicesOfUsers[uid] = devices
        return devices
    }
}

extension NotificationRecord {
    /// A notification that begins.
    init(_ new: NewNotification, id: String, recipients: Int, in draft: inout OutboxDraft) throws {
        self.init(
            id: id, createdAt: new.createdAt, expiresAt: new.expiresAt, text: new.text, localized: new.localized,
            data: new.data, collapseKey: new.collapseKey, options: new.options, platforms: new.platforms,
            trigger: new.trigger, path: new.path, recipients: recipients,
            category: try CategoryRecord.use(new.category, in: &draft), hasOrigin: new.originKey != nil,
            cut: new.cut, contentChoice: new.content)
    }
}

extension NotificationRecord {
    /// Begins it, without its deliveries.
    func begin(in draft: inout OutboxDraft) {
        draft.writes.put(NotificationRecord.key(id), self)
        draft.writes.put(purgeKey)
        draft.writes.record(OutboxEvent(accepted: self))
        draft.texts.begin(self)
    }
}

/// A delivery of a notification to one recipient that is about to be made.
struct NewDelivery {
    var new: NewNotification
    var notification: String
    var index: Int
    var recipient: Recipient

    /// What shows nothing ends at once where no silent push is taken.
    func enqueue(in draft: inout OutboxDraft) throws {
        var delivery = record(at: draft.now)
        guard recipient.platform.takesSilentPushes || new.shown.isShown(on: recipient.platform) else {
            _ = delivery.machine.wasSilent(at: draft.now)
            return end(delivery, in: &draft)
        }
        if recipient.isMailbox { return try MailThread.enqueue(delivery, new, in: &draft) }
        try draft.enqueue(delivery, from: new.position)
    }

    /// Its user is there, or it was withdrawn already, or read: it enters no lane.
    func drop(in draft: inout OutboxDraft) {
        var delivery = record(at: draft.now)
        _ =
            recipient.isPresent
            ? delivery.machine.ended(because: .present, at: draft.now) : delivery.machine.withdrawn(at: draft.now)
        end(delivery, in: &draft)
    }

    private func end(_ delivery: DeliveryRecord, in draft: inout OutboxDraft) {
        draft.writes.put(delivery.key, delivery)
        if let event = OutboxEvent(finished: delivery) { draft.writes.record(event) }
    }

    func record(at now: Int64) -> DeliveryRecord {
        DeliveryRecord(
            notification: notification, index: UInt32(clamping: index), device: recipient.device,
            uid: recipient.uid, collapseKey: new.collapseKey, sequenceVersion: 0, sequenceIndex: 0,
            createdAt: new.createdAt, machine: DeliveryStateMachine(dueAt: now, expiresAt: new.expiresAt),
            queue: recipient.queue, pacing: Pacing(new, on: recipient.platform))
    }
}
