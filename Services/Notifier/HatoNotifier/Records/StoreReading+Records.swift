import HatoFollow
import HatoModel
import HatoStorage

/// A row that cannot be read: the store is damaged or was written by something else.
struct UnreadableRecord: Error, CustomStringConvertible {
    var key: [UInt8]
    var description: String { "the row \(RecordKey(bytes: key)) cannot be read" }
}

extension RecordCodec {
    /// Throws `UnreadableRecord`.
    static func decode<Record: FieldValue>(_ type: Record.Type, _ bytes: [UInt8], key: [UInt8]) throws -> Record {
        do {
            return try decode(type, bytes, of: "", unknown: .ignored)
        } catch {
            throw UnreadableRecord(key: key)
        }
    }
}

extension StoreReading {
    func record<Record: FieldValue>(_ type: Record.Type, _ key: RecordKey) throws -> Record? {
        guard let bytes = try value(key) else { return nil }
        return try RecordCodec.decode(type, bytes, key: key.bytes)
    }

    /// Nil when it is not there or cannot be read.
    func readable<Record: FieldValue>(_ type: Record.Type, _ key: RecordKey) throws -> Record? {
        do { return try record(type, key) } catch is UnreadableRecord { return nil }
    }

    func contains(_ key: RecordKey) throws -> Bool { try value(key) != nil }

    func value(_ key: RecordKey) throws -> [UInt8]? {
        let bytes = key.bytes
        return try get(bytes.span)
    }

    /// The rows whose keys begin with `prefix`, after the key `after`, in order.
    func rows(
        _ prefix: RecordKey, after: RecordKey? = nil, before: RecordKey? = nil, limit: Int = .max
    ) throws -> [(key: RecordKey, value: [UInt8])] {
        var range = KeyRange(prefix: prefix.bytes)
        if let after { range.lower = after.bytes + [0] }
        if let before { range.upper = before.bytes }
        var rows: [(key: RecordKey, value: [UInt8])] = []
        guard limit > 0 else { return rows }
        try scan(range, reverse: false) { key, value in
            rows.append((RecordKey(bytes: key.copied), value.copied))
            return rows.count < limit ? .next : .stop
        }
        return rows
    }

    /// The keys that begin with `prefix`, in order.
    func keys(_ prefix: RecordKey, limit: Int) throws -> [RecordKey] {
        var keys: [RecordKey] = []
        guard limit > 0 else { return keys }
        try scan(KeyRange(prefix: prefix.bytes), reverse: false) { key, _ in
            keys.append(RecordKey(bytes: key.copied))
            return keys.count < limit ? .next : .stop
        }
        return keys
    }

    func count(_ table: RecordKey.Table, upTo limit: Int = .max) throws -> Int {
        var count = 0
        try scan(KeyRange(prefix: RecordKey(table).bytes), reverse: false) { _, _ in
            count += 1
            return count < limit ? .next : .stop
        }
        return count
    }
}

extension Span<UInt8> {
    var copied: [UInt8] { withUnsafeBytes { Array($0) } }
}

/// What a transaction will write, gathered while it still reads: a store's transaction reads first and writes after.
struct RecordWrites {
    private var writes: [(key: RecordKey, value: [UInt8]?)] = []
    /// What followers of `notifier.follow` will read of this commit.
    private(set) var events: [OutboxEvent] = []

    var count: Int { writes.count }

    mutating func put(_ key: RecordKey, _ record: some FieldValue) {
        writes.append((key, RecordCodec.encode(record)))
    }

    mutating func put(_ key: RecordKey, bytes: [UInt8] = []) { writes.append((key, bytes)) }

    mutating func delete(_ key: RecordKey) { writes.append((key, nil)) }

    mutating func record(_ event: OutboxEvent) { events.append(event) }

    /// Writes everything, in the order it was said. Throws when the store would refuse it.
    func apply(to transaction: any StoreTransaction) throws {
        let knownDevices = transaction.knownDevices
        for write in writes {
            knownDevices?.forget(write.key)
            let key = write.key.bytes
            guard key.count <= StoreLimits.keyBytesMax else { throw StoreError.keyTooLong(bytes: key.count) }
            if let value = write.value {
                transaction.put(key.span, value.span)
            } else {
                transaction.delete(key.span)
            }
        }
        OutboxEvent.record(events, in: transaction)
    }
}
