import HatoModel
import HatoStorage

/// How many deliveries need the texts of a notification: those that have not ended, and the dead ones, which may be
/// replayed. What makes more of them later counts as one. With the last one the texts go.
///
/// The number of a notification to more than one device is in a row of its own, written once in a transaction. One to
/// a single device has no such row: its number is 1.
struct TextUses {
    /// By how much the numbers change in this transaction.
    private var changes: [String: Int] = [:]
    /// The notifications that it accepts, which it cannot read.
    private var begun: [String: NotificationRecord] = [:]
    /// Those that it writes otherwise, as it writes them.
    private var written: [String: NotificationRecord] = [:]
    /// Those that go as a whole.
    private var removed: Set<String> = []

    static func key(_ notification: String) -> RecordKey { RecordKey(.textUses).with(notification) }

    mutating func begin(_ notification: NotificationRecord) {
        begun[notification.id] = notification
        changes[notification.id, default: 0] += 0
    }

    /// Writes a notification that it has read, with its texts as they are.
    mutating func put(_ notification: NotificationRecord, _ writes: inout RecordWrites) {
        written[notification.id] = notification
        writes.put(NotificationRecord.key(notification.id), notification)
    }

    mutating func add(_ change: Int, to notification: String) { changes[notification, default: 0] += change }

    /// The notification goes as a whole.
    mutating func remove(_ notification: String, _ writes: inout RecordWrites) {
        removed.insert(notification)
        writes.delete(Self.key(notification))
    }

    /// Writes the numbers, and takes the texts away that are needed no more.
    func settle(_ transaction: any StoreTransaction, _ writes: inout RecordWrites) throws {
        for (id, change) in changes where !removed.contains(id) {
            if let new = begun[id] {
                write(change, of: new, hasRow: false, &writes)
            } else if change != 0 {
                let row = try transaction.value(Self.key(id))
                // A row is whatever a disk makes of it.
                let number = row.flatMap { Int(String(decoding: $0, as: UTF8.self)) }.map { min(max(0, $0), 1 << 53) }
                if let number, number + change > 0 {
                    writes.put(Self.key(id), bytes: Array(String(number + change).utf8))
                    continue
                }
                let key = NotificationRecord.key(id)
                guard let known = try written[id] ?? transaction.readable(NotificationRecord.self, key) else {
                    continue
                }
                let former = try number ?? Self.count(of: known, in: transaction)
                write(former + change, of: known, hasRow: row != nil, &writes)
            }
        }
    }

    private func write(
        _ count: Int, of notification: NotificationRecord, hasRow: Bool, _ writes: inout RecordWrites
    ) {
        if count > 0 {
            guard count > 1 || notification.recipients > 1 || hasRow else { return }
            writes.put(Self.key(notification.id), bytes: Array(String(count).utf8))
        } else {
            if notification.hasTexts {
                writes.put(NotificationRecord.key(notification.id), notification.withoutTexts)
            }
            if hasRow { writes.delete(Self.key(notification.id)) }
        }
    }

    /// Before the transaction, without a row that says so.
    private static func count(of notification: NotificationRecord, in reading: any StoreTransaction) throws -> Int {
        guard notification.recipients > 1 else { return 1 }
        // Of an earlier version, which wrote none: they are counted once.
        var count = 0
        for row in try reading.rows(DeliveryRecord.prefix(notification.id)) {
            let delivery = try? RecordCodec.decode(DeliveryRecord.self, row.value, key: row.key.bytes)
            // One that cannot be read may need them: they stay until the notification goes.
            if delivery?.machine.isFinished != true || delivery?.machine.state == .dead { count += 1 }
        }
        return try notification.isIncomplete(in: reading) ? count + 1 : count
    }
}

extension NotificationRecord {
    /// Whether parts of it are still to come.
    func isIncomplete(in reading: some StoreReading) throws -> Bool {
        if try reading.contains(FanOutRecord.key(id)) { return true }
        guard let key = idempotencyKey else { return false }
        let record = try reading.readable(IdempotencyRecord.self, RecordKey(bytes: key))
        return record?.notification == id && record?.through != nil
    }
}
