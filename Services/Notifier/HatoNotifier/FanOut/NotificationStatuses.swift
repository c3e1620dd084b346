import HatoModel
import HatoStorage

/// What became of notifications.
struct NotificationStatuses: Sendable {
    private let store: any Store

    init(_ store: any Store) { self.store = store }

    /// A page of the deliveries of a notification, in the order of their numbers, behind the delivery `after`. Nil: it
    /// is not kept.
    func status(
        of notification: String, after: String? = nil, limit: Int = .max
    ) async throws -> Notifier.Status.Result? {
        let last = try after.map { try page($0, of: notification) }
        return try await store.read { snapshot in
            guard let record = try snapshot.record(NotificationRecord.self, NotificationRecord.key(notification)) else {
                return nil
            }
            let rows = try snapshot.rows(DeliveryRecord.prefix(notification), after: last, limit: limit)
            let deliveries = rows.compactMap { row in
                try? RecordCodec.decode(DeliveryRecord.self, row.value, key: row.key.bytes).shown
            }
            var result = Notifier.Status.Result(
                notification: notification, createdAt: Int(record.createdAt), expiresAt: Int(record.expiresAt),
                deliveries: deliveries)
            result.title = record.text.title
            result.body = record.text.body
            result.trigger = record.trigger
            result.path = record.path
            result.fanOut = try snapshot.readable(FanOutRecord.self, FanOutRecord.key(notification))?.shown
            result.after = rows.count < limit ? nil : rows.last.flatMap { DeliveryRecord.id($0.key) }
            return result
        }
    }

    /// The key of the delivery that ended a page.
    private func page(_ after: String, of notification: String) throws -> RecordKey {
        guard let key = DeliveryRecord.key(id: after),
            key.bytes.starts(with: DeliveryRecord.prefix(notification).bytes)
        else {
            throw RPCError.invalidArgument(
                "after", reason: "invalid_page", "'after' must be the last delivery of the previous page")
        }
        return key
    }
}

extension DeliveryRecord {
    /// The id of the delivery with this key, whether its row can be read or not.
    fileprivate static func id(_ key: RecordKey) -> String? {
        var reader = RecordKeyReader(key.bytes)
        guard let notification = reader.text(), let index = reader.shortNumber() else { return nil }
        return "\(notification)-\(index)"
    }
}
