import HatoModel
import HatoStorage

/// All that waits for a device, in each of its lanes.
struct DeviceLanes {
    let device: String

    /// Rows of one transaction.
    private static let pageMax = 500

    /// Drops what waits, in pages, each a transaction of its own.
    ///
    /// - Parameter ends: how each delivery ends, or what it makes of one that is being attempted, which goes on.
    func drop(from outbox: Outbox, _ ends: @escaping OutboxDraft.Ending) async throws {
        var end: RecordKey?
        repeat {
            end = try await outbox.change { [end] draft in try drop(before: end, in: &draft, ends) }
        } while end != nil
    }

    /// The last rows first, so that a lane never stands without its head. Returns where to go on, nil at the end.
    private func drop(
        before end: RecordKey?, in draft: inout OutboxDraft, _ ends: OutboxDraft.Ending
    ) throws -> RecordKey? {
        var range = KeyRange(prefix: RecordKey(.lane).with(device).bytes)
        if let end { range.upper = end.bytes }
        var rows: [(key: RecordKey, delivery: RecordKey)] = []
        try draft.transaction.scan(range, reverse: true) { key, value in
            rows.append((RecordKey(bytes: key.copied), RecordKey(bytes: value.copied)))
            return rows.count < Self.pageMax ? .next : .stop
        }
        for row in rows {
            // One that cannot be read is set aside when it is due.
            guard let delivery = try draft.transaction.readable(DeliveryRecord.self, row.delivery) else { continue }
            // More may have come since the rows behind it were dropped.
            _ = try draft.end(delivery, ends)
        }
        return rows.count < Self.pageMax ? nil : rows.last?.key
    }
}

extension Outbox {
    /// Drops what waits for a device that is gone. What is being attempted goes on, and is dropped if it fails.
    func dropDeliveries(of device: String) async throws {
        try await DeviceLanes(device: device).drop(from: self) { machine, now in
            machine.state == .pending ? machine.deviceWentAway(nil, at: now) : .ignore
        }
    }
}
