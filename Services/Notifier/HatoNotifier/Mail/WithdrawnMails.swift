import HatoModel
import HatoStorage

/// What no e-mail shows any more, since it was withdrawn or read: also what a withdrawal, which goes in pages, has not
/// come to yet.
struct WithdrawnMails {
    private let transaction: any StoreTransaction
    /// The commits up to which threads were read.
    private var read: [UserThread: UInt64] = [:]

    init(_ transaction: any StoreTransaction) { self.transaction = transaction }

    /// Whether they have a delivery; false when its notification cannot be read.
    mutating func contain(_ delivery: DeliveryRecord) throws -> Bool {
        let key = NotificationRecord.key(delivery.notification)
        guard let notification = try transaction.readable(NotificationRecord.self, key) else { return false }
        return try contain(delivery, notification)
    }

    mutating func contain(_ delivery: DeliveryRecord, _ notification: NotificationRecord) throws -> Bool {
        if delivery.machine.isWithdrawn || notification.withdrawnAt != nil { return true }
        // A silent push shows nothing itself.
        if notification.withdrawal != nil { return true }
        guard !delivery.uid.isEmpty, let thread = notification.options?.thread else { return false }
        return try delivery.sequenceVersion <= readThrough(UserThread(uid: delivery.uid, thread: thread))
    }

    private mutating func readThrough(_ place: UserThread) throws -> UInt64 {
        if let known = read[place] { return known }
        var through: UInt64 = 0
        for thread in [place.thread, nil] {
            let job = WithdrawalJob.thread(uid: place.uid, thread: thread)
            guard let record = try transaction.readable(WithdrawalRecord.self, job.key), record.isRead else { continue }
            through = max(through, record.through)
        }
        read[place] = through
        return through
    }
}
