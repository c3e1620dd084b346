import HatoModel
import HatoStorage

/// How long deliveries wait, as far as the heads of lanes say: each is the oldest one of its lane. Times are in
/// milliseconds since 1970.
struct OldestWaiting: Sendable, Hashable {
    /// When the notification of the oldest delivery that waits was accepted; nil: none waits.
    private(set) var acceptedAt: Int64?
    /// When the first one was due that waits for its attempt; nil: no lane has one.
    private(set) var dueAt: Int64?

    /// Lanes of each kind that are looked at, those that were due first. Beyond, only what was due later is left out,
    /// such as deliveries that wait long for their next attempt.
    private static let lanesMax = 10_000

    /// Throws the errors of the store.
    init(in reading: some StoreReading) throws {
        for table in [RecordKey.Table.due, .parked] { try look(at: RecordKey(table), upTo: Self.lanesMax, in: reading) }
        let queues = try reading.queueNames()
        for queue in queues {
            let limit = max(1, Self.lanesMax / queues.count)
            try look(at: RecordKey(.queued).with(queue), upTo: limit, in: reading)
        }
    }

    private mutating func look(at prefix: RecordKey, upTo limit: Int, in reading: some StoreReading) throws {
        for row in try reading.rows(prefix, limit: limit) {
            if let time = LaneRow(row.key)?.time { dueAt = min(dueAt ?? .max, time) }
            if let time = Self.acceptance(row.value) { acceptedAt = min(acceptedAt ?? .max, time) }
        }
    }

    /// The time in the id of the notification of a delivery (`Outbox.newID`); nil: it has none.
    private static func acceptance(_ delivery: [UInt8]) -> Int64? {
        var reader = RecordKeyReader(delivery)
        guard let id = reader.text(), id.hasPrefix("ntf_") else { return nil }
        return Int64(id.dropFirst(4).dropLast(16), radix: 16)
    }

    /// How long ago it was, in seconds: 0 when nothing waits, or when it is to come.
    static func age(_ time: Int64?, at now: Int64) -> Double { time.map { Double(max(0, now - $0)) / 1_000 } ?? 0 }
}
