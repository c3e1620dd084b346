import HatoModel
import HatoPush
import HatoStorage

/// Sends devices what they are to remove, and the new badge: nothing is shown.
///
/// Those of one device replace each other as long as they wait: the newer one says what the older one said as well.
struct SilentPushes: Sendable {
    /// An unused id.
    private let newID: @Sendable () -> String
    private let policy: DeliveryPolicy

    init(_ outbox: Outbox) { (newID, policy) = ({ outbox.newID("ntf_") }, outbox.policy) }

    /// The lane of silent pushes. No sender's collapse key begins with this character.
    static let collapseKey = "\(reserved)withdrawal"
    static let reserved: Character = "\u{1}"
    /// As providers get it.
    static let shownCollapseKey = "hato.withdrawal"
    /// Milliseconds: after a day on the way, the app has the state of the tree by itself.
    private static let timeToLive: Int64 = 86_400_000

    /// Sends those of a transaction, before it ends. Returns how many devices get one.
    func send(in draft: inout OutboxDraft) throws -> Int {
        guard draft.threads.hasPushes else { return 0 }
        var count = 0
        for (receiver, push) in draft.threads.takePushes() {
            var devices: [DeviceRecord]
            switch receiver {
            case .user(let name):
                devices = try draft.devices(of: name).filter { push.isForAll || push.devices.contains($0.device) }
            case .token(let name):
                devices = [try draft.transaction.readable(DeviceRecord.self, DeviceRecord.key(name))]
                    .compactMap(\.self)
            }
            devices.removeAll { $0.state != .active || !$0.platform.takesSilentPushes }
            guard !devices.isEmpty else { continue }
            try send(push.content, to: devices, in: &draft)
            count += devices.count
        }
        return count
    }

    /// Adds what is to be said to the silent push that waits for all these devices, so that a user that reads and
    /// forgets all the time makes no more rows. False: there is none.
    private func join(
        _ content: WithdrawalContent, to devices: [DeviceRecord], in draft: inout OutboxDraft
    ) throws -> Bool {
        var waiting: String?
        for device in devices {
            let lane = Lane(device: device.device, collapseKey: Self.collapseKey)
            guard let row = try draft.transaction.rows(lane.prefix, limit: 1).first, !draft.hasLeft(row.key),
                let delivery = try draft.transaction.readable(DeliveryRecord.self, RecordKey(bytes: row.value)),
                delivery.machine.state == .pending, !draft.hasMoved(delivery.key),
                waiting == nil || waiting == delivery.notification
            else { return false }
            waiting = delivery.notification
        }
        guard let waiting,
            var notification = try draft.transaction.readable(
                NotificationRecord.self, NotificationRecord.key(waiting)),
            let former = notification.withdrawal
        else { return false }
        notification.withdrawal = content.bounded.adding(former)
        draft.writes.put(NotificationRecord.key(waiting), notification)
        return true
    }

    private func send(
        _ content: WithdrawalContent, to devices: [DeviceRecord], in draft: inout OutboxDraft
    ) throws {
        if try join(content, to: devices, in: &draft) { return }
        var content = content.bounded
        // Many withdrawals soon after each other are one push; the first one of them is not put off.
        var dueAt = [Int64](repeating: draft.now + policy.silentPushDelay.milliseconds, count: devices.count)
        for (index, device) in devices.enumerated() {
            let lane = Lane(device: device.device, collapseKey: Self.collapseKey)
            // One that cannot be read is set aside when the new one takes its place.
            for row in try draft.transaction.rows(lane.prefix) {
                let delivery = try draft.transaction.readable(DeliveryRecord.self, RecordKey(bytes: row.value))
                if let delivery, delivery.machine.state == .pending {
                    dueAt[index] = min(dueAt[index], delivery.machine.time)
                    // What is replaced is of no interest later, and there may be many of it.
                    draft.forgetSoon(delivery.notification, policy)
                }
                let former = try delivery.flatMap {
                    try draft.transaction.readable(NotificationRecord.self, NotificationRecord.key($0.notification))
                }
                if let withdrawal = former?.withdrawal { content = content.adding(withdrawal) }
            }
        }
        var options = Notifier.DeliveryOptions()
        options.priority = .normal
        var notification = NotificationRecord(
            id: newID(), createdAt: draft.now, expiresAt: draft.now + Self.timeToLive,
            text: Notifier.NotificationText(), data: [:], collapseKey: Self.collapseKey, options: options,
            recipients: devices.count)
        notification.withdrawal = content
        notification.begin(in: &draft)
        for (index, device) in devices.enumerated() {
            let recipient = Recipient(device)
            try draft.enqueue(
                DeliveryRecord(
                    notification: notification.id, index: UInt32(clamping: index), device: recipient.device,
                    uid: recipient.uid, collapseKey: Self.collapseKey, sequenceVersion: 0, sequenceIndex: 0,
                    createdAt: draft.now,
                    machine: DeliveryStateMachine(dueAt: dueAt[index], expiresAt: notification.expiresAt),
                    queue: recipient.queue))
        }
    }
}

extension StoreReading {
    /// What a push to a device of the platform carries of the counts of its user, as they are now.
    func badged(
        _ content: DeliveryContent, of notification: NotificationRecord, for delivery: DeliveryRecord,
        on platform: Notifier.Platform
    ) throws -> DeliveryContent {
        var content = content
        let record = try { () throws -> BadgeRecord? in
            guard !delivery.uid.isEmpty else { return nil }
            return try readable(BadgeRecord.self, BadgeRecord.key(delivery.uid))
        }
        guard let withdrawal = notification.withdrawal else {
            if content.isShown(on: platform), content.appearance.badge == nil, content.appearance.thread != nil {
                content.appearance.badge = try record()?.shown
            }
            return content
        }
        let badge = try record()?.shown ?? (withdrawal.hasBadge ? 0 : nil)
        content.collapseKey = SilentPushes.shownCollapseKey
        content.appearance.badge = badge
        content.hato.badge = badge
        content.hato.withdraw = withdrawal.ids
        let threads = try withdrawal.threads.filter { thread in
            // What came since is to stay.
            try keys(ShownRecord.prefix(UserThread(uid: delivery.uid, thread: thread)), limit: 1).isEmpty
        }
        if !threads.isEmpty { content.hato.threads = threads }
        return content
    }
}
