import HatoModel
import HatoStorage

/// A row that cannot be read is set aside: named once in the log, counted, and passed over from then on. It stays as it
/// is, and rows that do not need it are not affected.
extension OutboxDraft {
    /// The head of a lane cannot be attempted, since a row it needs cannot be read. A delivery that can be read itself
    /// is dead, for an administrator to replay; else what stands behind it becomes the head.
    mutating func setAside(
        head row: (key: RecordKey, value: [UInt8]), because error: UnreadableRecord
    ) throws {
        try setAside(RecordKey(bytes: error.key))
        let key = RecordKey(bytes: row.value)
        if var delivery = try transaction.readable(DeliveryRecord.self, key) {
            _ = delivery.machine.recordWasUnreadable(at: now)
            try finishHead(delivery, dueKey: row.key)
            return
        }
        writes.delete(row.key)
        writes.delete(RecordKey(.leased).with(key.tail))
        guard let lane = LaneRow(row.key)?.lane else { return }
        var waiting = try transaction.rows(lane, limit: 2)[...]
        if let head = waiting.first, head.value == row.value {
            try leaveLane(unreadable: head.key, of: key)
            waiting.removeFirst()
        }
        if let next = waiting.first { try becomeHead(RecordKey(bytes: next.value), of: lane) }
    }

    /// All deliveries of a lane that can be read; the others leave it.
    mutating func readableRows(of lane: Lane) throws -> [DeliveryRecord] {
        var deliveries: [DeliveryRecord] = []
        for row in try transaction.rows(lane.prefix) {
            let key = RecordKey(bytes: row.value)
            if let delivery = try transaction.readable(DeliveryRecord.self, key) {
                deliveries.append(delivery)
            } else {
                try setAside(key)
                try leaveLane(unreadable: row.key, of: key)
            }
        }
        return deliveries
    }

    /// A user's devices that can be read.
    mutating func devices(of uid: String) throws -> [DeviceRecord] {
        if let known = transaction.knownDevices?.devices(of: uid) { return known }
        var (devices, isWhole): ([DeviceRecord], Bool) = ([], true)
        for key in try transaction.deviceKeys(of: uid) {
            do {
                if let device = try transaction.record(DeviceRecord.self, key) { devices.append(device) }
            } catch is UnreadableRecord {
                try setAside(key)
                isWhole = false
            }
        }
        if isWhole { transaction.knownDevices?.remember(devices, of: uid) }
        return devices
    }
}
