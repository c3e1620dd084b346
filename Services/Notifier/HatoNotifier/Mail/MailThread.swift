import HatoModel
import HatoPush
import HatoStorage

/// What waits for the next e-mail of a thread to a mailbox: one lane, in order, whose deliveries go together.
struct MailThread {
    /// The first delivery of the lane.
    let head: DeliveryRecord

    /// Texts of one e-mail.
    private static let entriesMax = 20
    /// Deliveries that are read to find them: under a collapse key only the newest one counts.
    private static let readMax = 100
    /// Deliveries that are counted.
    private static let countedMax = 1_000

    // MARK: Accepting

    /// Lets a delivery for a mailbox wait for the next e-mail of its thread.
    static func enqueue(_ delivery: DeliveryRecord, _ new: NewNotification, in draft: inout OutboxDraft) throws {
        var mail = delivery
        mail.digest = try draft.mails.lane(
            for: new.options?.thread ?? "", at: delivery.device, now: draft.now, draft.transaction)
        mail.machine = DeliveryStateMachine(
            dueAt: draft.now + draft.mails.pace.wait, expiresAt: delivery.machine.expiresAt)
        let passes = new.options?.interruptionLevel?.passesQuietWindows == true
        if passes {
            mail.pacing = Pacing(thread: new.options?.thread, isPaced: false, passing: .timeSensitive)
        }
        try draft.enqueue(mail)
        if passes { try release(mail.lane, in: &draft) }
    }

    /// Has what a quiet window holds in a lane looked at again.
    private static func release(_ lane: Lane, in draft: inout OutboxDraft) throws {
        // What came with this transaction is not to be seen in it, and is not held by a window yet.
        guard let row = try draft.transaction.rows(lane.prefix, limit: 1).first, !draft.hasLeft(row.key),
            var head = try draft.transaction.readable(DeliveryRecord.self, RecordKey(bytes: row.value)),
            head.machine.state == .pending, head.machine.hold == .quiet, !draft.hasMoved(head.key)
        else { return }
        let dueKey = head.dueKey
        guard try draft.isHead(head, at: dueKey) else { return }
        _ = head.machine.turnCame(at: draft.now)
        draft.moveHead(head, dueKey: dueKey)
    }

    /// Whether one of the last deliveries of the lane goes within quiet windows, and the others with it: when it came,
    /// it was the last one.
    func passesQuietWindows(in draft: OutboxDraft) throws -> Bool {
        var last: [RecordKey] = []
        try draft.transaction.scan(KeyRange(prefix: head.lane.prefix.bytes), reverse: true) { _, value in
            last.append(RecordKey(bytes: value.copied))
            return last.count < Self.readMax ? .next : .stop
        }
        return try ([head.key] + last).contains { key in
            try draft.transaction.readable(DeliveryRecord.self, key)?.pacing?.passing == .timeSensitive
        }
    }

    // MARK: Sending

    /// Whether the head of a lane may be sent now. Otherwise the lane waits for its next e-mail, or the head ends: an
    /// e-mail that was sent has it, or it is withdrawn.
    ///
    /// - Parameter row: where the lane stands.
    func isDue(at row: RecordKey, in draft: inout OutboxDraft) throws -> Bool {
        var head = head
        var withdrawn = WithdrawnMails(draft.transaction)
        if try withdrawn.contain(head) {
            // The attempt of one that is leased was lost.
            _ = head.machine.leaseReclaimed(at: draft.now)
            _ = head.machine.withdrawn(at: draft.now)
            try draft.finishHead(head, dueKey: row)
            return false
        }
        guard let digest = try record(draft) else { return true }
        if digest.covers(head) {
            guard digest.isSent, case .finish = head.machine.wasInMail(nil, at: draft.now) else { return true }
            try Self.finish(head, dueKey: row, digest, in: &draft)
            return false
        }
        guard let next = digest.nextTime(at: draft.now, draft.mails.pace), draft.now < head.machine.expiresAt,
            case .waitUntil = head.machine.held(until: next)
        else { return true }
        draft.moveHead(head, dueKey: row)
        return false
    }

    /// Makes an attempt carry what waits in the lane of its delivery, as far as the first attempt had it.
    func gather(for device: DeviceRecord, into sent: inout Delivery, in draft: inout OutboxDraft) throws {
        let former = try record(draft)
        let digest: DigestRecord
        if let former, !former.isSent, former.covers(head) {
            digest = former
        } else {
            let last =
                try Self.lastPlace(in: head.lane, draft.transaction) ?? (
                    version: head.sequenceVersion, index: head.sequenceIndex
                )
            digest = DigestRecord(
                mail: head.id, throughVersion: last.version, throughIndex: last.index, madeAt: draft.now, isSent: false,
                nextAt: former?.nextAt)
            draft.writes.put(DigestRecord.key(head.lane), digest)
        }
        sent.id = digest.mail
        sent.content.digest = try entries(of: digest, for: device, in: &draft)
    }

    private func record(_ draft: OutboxDraft) throws -> DigestRecord? {
        try draft.transaction.readable(DigestRecord.self, DigestRecord.key(head.lane))
    }

    private func entries(
        of digest: DigestRecord, for device: DeviceRecord, in draft: inout OutboxDraft
    ) throws -> DeliveryContent.Digest {
        let (lane, transaction) = (head.lane, draft.transaction)
        var range = KeyRange(prefix: lane.prefix.bytes)
        range.upper = lane.prefix.with(digest.throughVersion).with(digest.throughIndex).bytes + [0]
        var (rows, count): ([RecordKey], Int) = ([], 0)
        try transaction.scan(range, reverse: true) { _, value in
            if rows.count < Self.readMax { rows.append(RecordKey(bytes: value.copied)) }
            count += 1
            return count < Self.countedMax ? .next : .stop
        }
        var gathered = DeliveryContent.Digest(entries: [], locale: device.locale)
        var (keys, passedOver): (Set<String>, Int) = ([], 0)
        var withdrawn = WithdrawnMails(transaction)
        for row in rows where gathered.entries.count < Self.entriesMax {
            // One that cannot be read is set aside in its turn, one that is withdrawn ends in it.
            guard let delivery = try transaction.readable(DeliveryRecord.self, row),
                delivery.machine.expiresAt > digest.madeAt,
                let notification = try transaction.readable(
                    NotificationRecord.self, NotificationRecord.key(delivery.notification)),
                try !withdrawn.contain(delivery, notification), try isWanted(notification, in: &draft),
                delivery.collapseKey.map({ keys.insert($0).inserted }) ?? true
            else {
                passedOver += 1
                continue
            }
            let text = notification.text(for: device.locale)
            guard notification.contentChoice != .ids, !digest.isWithheld, text.hasWords else {
                gathered.withheld += 1
                continue
            }
            gathered.entries.append(.init(text: text, link: notification.options?.link))
        }
        gathered.more = max(0, count - gathered.entries.count - gathered.withheld - passedOver)
        gathered.isAtLeast = count == Self.countedMax
        return gathered
    }

    /// Whether the user wants e-mails of it; the threads of a lane may be several.
    private func isWanted(_ notification: NotificationRecord, in draft: inout OutboxDraft) throws -> Bool {
        let check = PreferenceCheck(notification, to: head.uid, on: .email)
        if case .ended = try check.verdict(&draft) { return false }
        return true
    }

    // MARK: Ending

    /// Lets an e-mail go once more without words when the server refused it: one text must not silence the others.
    /// False for one that has a single notification, or no words already.
    func withholdsWords(in draft: inout OutboxDraft) throws -> Bool {
        guard var digest = try record(draft), !digest.isSent, !digest.isWithheld, digest.covers(head),
            (digest.throughVersion, digest.throughIndex) != (head.sequenceVersion, head.sequenceIndex)
        else { return false }
        digest.isWithheld = true
        draft.writes.put(DigestRecord.key(head.lane), digest)
        return true
    }

    /// The attempt of an e-mail has ended, and with it `head`, as which this is given. Those that it had beside it end
    /// with it, when the server took it or refused what it says.
    func ended(dueKey: RecordKey, in draft: inout OutboxDraft) throws {
        guard var digest = try record(draft), digest.covers(head), head.machine.hasSettled else {
            try draft.finishHead(head, dueKey: dueKey)
            return
        }
        if head.machine.state == .delivered {
            (digest.isSent, digest.nextAt) = (true, draft.now + draft.mails.pace.pause)
            draft.writes.put(DigestRecord.key(head.lane), digest)
        }
        try Self.finish(head, dueKey: dueKey, digest, in: &draft)
    }

    /// Ends what an e-mail had, as its delivery ended; as much as one transaction takes.
    private static func finish(
        _ head: DeliveryRecord, dueKey: RecordKey, _ digest: DigestRecord, in draft: inout OutboxDraft
    ) throws {
        var next = try draft.finishHead(head, dueKey: dueKey)
        while var behind = next, digest.covers(behind), draft.writes.count < OutboxDraft.writesMax {
            let dueKey = behind.dueKey
            let isExpired = behind.machine.expiresAt <= digest.madeAt
            let action =
                isExpired
                ? behind.machine.timePassed(at: draft.now) : behind.machine.wasInMail(head.machine, at: draft.now)
            guard case .finish = action else { return }
            next = try draft.finishHead(behind, dueKey: dueKey)
        }
    }

    /// Where the last delivery of a lane stands; nil without one.
    private static func lastPlace(
        in lane: Lane, _ transaction: any StoreTransaction
    ) throws -> (version: UInt64, index: UInt32)? {
        var suffix: [UInt8] = []
        try transaction.scan(KeyRange(prefix: lane.prefix.bytes), reverse: true) { key, _ in
            suffix = Array(key.copied.suffix(DeliveryRecord.sequenceBytes))
            return .stop
        }
        // The reader passes over the letter of a table.
        var reader = RecordKeyReader([0] + suffix)
        guard let version = reader.number(), let index = reader.shortNumber() else { return nil }
        return (version, index)
    }
}

extension Notifier.NotificationText {
    /// Whether there is more in it than blanks.
    fileprivate var hasWords: Bool {
        [title, body].contains { $0?.unicodeScalars.contains { !$0.properties.isWhitespace } == true }
    }
}
