import HatoModel
import HatoRPC
import HatoStorage

/// `notifier.outbox.…`: the deliveries that are kept.
struct OutboxMethods: NotifierMethods {
    let service: NotifierService

    func add(to router: inout RPCRouter) {
        handle(Notifier.Outbox.List.self, in: &router) { methods, request, _ in try await methods.list(request) }
    }

    private func list(_ request: Notifier.Outbox.List) async throws -> Notifier.Outbox.List.Result {
        try checks.key(request.uid, "uid", bytesMax: configuration.limits.uidBytesMax)
        try checks.key(request.device, "device")
        try checks.key(request.trigger, "trigger")
        let limit = try checks.page(request.limit)
        let listing = DeliveryListing(request)
        let last = try request.after.map { try listing.position($0) }
        return try await store.read { try listing.page(of: $0, before: last, limit: limit) }
    }
}

/// Deliveries that a request asks for: the newest first, in the order of an index that has few others.
struct DeliveryListing: Sendable {
    private let request: Notifier.Outbox.List
    private let index: Index
    private let prefix: RecordKey
    /// Rows that one call looks at.
    private let rowsMax: Int
    /// Rows that are read at a time.
    private static let chunk = 500

    /// What leads to deliveries.
    private enum Index {
        /// The rows of deliveries themselves.
        case deliveries
        /// Rows that hold the key of the delivery: the dead, and lanes.
        case keys
        /// Rows whose keys are those of deliveries.
        case leased
        /// Rows that hold the key of the row of a lane.
        case waiting
    }

    init(_ request: Notifier.Outbox.List, rowsMax: Int = 10_000) {
        (self.request, self.rowsMax) = (request, rowsMax)
        switch request.state {
        case .dead: (index, prefix) = (.keys, RecordKey(.dead))
        case .leased: (index, prefix) = (.leased, RecordKey(.leased))
        case .pending:
            if let device = request.device {
                (index, prefix) = (.keys, RecordKey(.lane).with(device))
            } else if let uid = request.uid {
                (index, prefix) = (.waiting, RecordKey(.waiting).with(UserDigest(uid: uid).value))
            } else {
                (index, prefix) = (.deliveries, RecordKey(.delivery))
            }
        case .delivered, .dropped, nil: (index, prefix) = (.deliveries, RecordKey(.delivery))
        }
    }

    /// Where a page ended. Throws `RPCError` when no page of these parameters ended there.
    func position(_ after: String) throws(RPCError) -> RecordKey {
        guard let bytes = Base64.url.decode(after.utf8), bytes.starts(with: prefix.bytes) else {
            throw .invalidArgument(
                "after", reason: "invalid_page",
                "'after' must be the after of the previous page, with the same parameters")
        }
        return RecordKey(bytes: bytes)
    }

    func page(
        of snapshot: any StoreSnapshot, before position: RecordKey?, limit: Int
    ) throws -> Notifier.Outbox.List.Result {
        var (last, visits) = (position, 0)
        var found: [Notifier.DeliveryStatus] = []
        var triggers: [String: String?] = [:]
        func isWanted(_ delivery: DeliveryRecord) throws -> Bool {
            guard request.state.map({ $0 == delivery.machine.state }) ?? true,
                request.uid.map({ $0 == delivery.uid }) ?? true,
                request.device.map({ $0 == delivery.device }) ?? true
            else { return false }
            guard let trigger = request.trigger else { return true }
            let id = delivery.notification
            if let known = triggers[id] { return known == trigger }
            let record = try snapshot.readable(NotificationRecord.self, NotificationRecord.key(id))
            triggers[id] = .some(record?.trigger)
            return record?.trigger == trigger
        }
        while visits < rowsMax {
            let count = min(Self.chunk, rowsMax - visits)
            let rows = try rows(of: snapshot, before: last, limit: count)
            for row in rows {
                (last, visits) = (row.key, visits + 1)
                guard let delivery = try delivery(row, snapshot), try isWanted(delivery) else { continue }
                found.append(delivery.shown)
                if found.count == limit { return .init(deliveries: found, after: Base64.url.encode(row.key.bytes)) }
            }
            if rows.count < count { return .init(deliveries: found) }
        }
        return .init(deliveries: found, after: last.map { Base64.url.encode($0.bytes) })
    }

    /// The delivery that a row leads to; nil when it cannot be read.
    private func delivery(
        _ row: (key: RecordKey, value: [UInt8]), _ snapshot: any StoreSnapshot
    ) throws -> DeliveryRecord? {
        switch index {
        case .deliveries: return try? RecordCodec.decode(DeliveryRecord.self, row.value, key: row.key.bytes)
        case .keys: return try snapshot.readable(DeliveryRecord.self, RecordKey(bytes: row.value))
        case .leased: return try snapshot.readable(DeliveryRecord.self, RecordKey(.delivery).with(row.key.tail))
        case .waiting:
            guard let key = try snapshot.value(RecordKey(bytes: row.value)) else { return nil }
            return try snapshot.readable(DeliveryRecord.self, RecordKey(bytes: key))
        }
    }

    /// The rows before the key `end`, the last first.
    private func rows(
        of snapshot: any StoreSnapshot, before end: RecordKey?, limit: Int
    ) throws -> [(key: RecordKey, value: [UInt8])] {
        var range = KeyRange(prefix: prefix.bytes)
        if let end { range.upper = end.bytes }
        var rows: [(key: RecordKey, value: [UInt8])] = []
        guard !range.isEmpty else { return rows }
        try snapshot.scan(range, reverse: true) { key, value in
            rows.append((RecordKey(bytes: key.copied), value.copied))
            return rows.count < limit ? .next : .stop
        }
        return rows
    }
}
