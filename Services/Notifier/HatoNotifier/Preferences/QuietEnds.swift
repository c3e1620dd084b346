import HatoModel
import HatoStorage

/// Looks again at what quiet windows hold at the devices of a user, when the windows are others or on another clock: it
/// goes now, or waits for another end.
struct QuietEnds {
    let outbox: Outbox

    /// Lanes that are looked at in one transaction.
    private static let lanesMax = 256

    /// In pages, each a transaction of its own; none for devices without deliveries.
    func change(of uid: String) async throws {
        let devices = try await outbox.store.read { snapshot in
            try snapshot.devices(of: uid).map(\.device).filter { device in
                try !snapshot.keys(RecordKey(.lane).with(device), limit: 1).isEmpty
            }
        }
        for device in devices {
            var last: RecordKey?
            repeat {
                last = try await outbox.change { [last] draft in
                    try Self.end(at: device, after: last, in: &draft)
                }
            } while last != nil
        }
    }

    /// The same when a device of the user was registered with a time zone, if that may be the clock of the windows.
    func register(of uid: String) async throws {
        let preferences = try await outbox.store.read { try PreferenceReading($0).record(of: uid) }
        guard let preferences, preferences.quiet != nil, preferences.timeZone == nil else { return }
        try await change(of: uid)
    }

    /// Makes the heads of a device's lanes due that a quiet window holds. Returns the lane after which to go on, nil at
    /// the end.
    private static func end(
        at device: String, after lane: RecordKey?, in draft: inout OutboxDraft
    ) throws -> RecordKey? {
        var range = KeyRange(prefix: RecordKey(.lane).with(device).bytes)
        if let end = lane?.end { range.lower = end }
        var last: RecordKey?
        for _ in 0..<lanesMax {
            var row: (key: [UInt8], delivery: RecordKey)?
            if range.isEmpty { return nil }
            try draft.transaction.scan(range, reverse: false) { key, value in
                row = (key.copied, RecordKey(bytes: value.copied))
                return .stop
            }
            guard let row else { return nil }
            let lane = RecordKey(bytes: Array(row.key.dropLast(DeliveryRecord.sequenceBytes)))
            guard let end = lane.end else { return nil }
            (last, range.lower) = (lane, end)
            // One that cannot be read is set aside when it is due.
            guard var delivery = try draft.transaction.readable(DeliveryRecord.self, row.delivery),
                delivery.machine.state == .pending, delivery.machine.hold == .quiet
            else { continue }
            let dueKey = delivery.dueKey
            guard try draft.isHead(delivery, at: dueKey) else { continue }
            _ = delivery.machine.turnCame(at: draft.now)
            draft.moveHead(delivery, dueKey: dueKey)
        }
        return last
    }
}
