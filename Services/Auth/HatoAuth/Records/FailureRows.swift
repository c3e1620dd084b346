import HatoModel
import HatoStorage

/// The counts of wrong passwords in the store.
enum FailureRows {
    /// All counts, the one of the oldest failure first. Rows that cannot be read count nothing.
    static func all(in rows: some StoreReading) throws -> [(key: FailureKey, count: FailureCount)] {
        var all: [(key: FailureKey, count: FailureCount)] = []
        try rows.rows(AuthKey.failures) { key, value in
            if let failureKey = FailureKey(key.dropFirst()), let record = try? FailureRecord(value) {
                all.append((failureKey, record.count))
            }
            return true
        }
        return all.sorted { $0.count.lastAt < $1.count.lastAt }
    }

    /// Writes a count; nil deletes it.
    static func put(_ count: FailureCount?, _ key: FailureKey, in rows: any StoreTransaction) {
        if let count {
            rows.putRow(AuthKey.failure(key), FailureRecord(count).bytes)
        } else {
            rows.deleteRow(AuthKey.failure(key))
        }
    }
}

/// A count of wrong passwords as stored.
private struct FailureRecord: FieldObject {
    /// Far above what lengthens a wait.
    private static let failuresMax = 1_000_000

    private var failures: Int
    private var lastAt: Int64

    init(_ count: FailureCount) {
        failures = min(count.failures, Self.failuresMax)
        lastAt = count.lastAt
    }

    var count: FailureCount { FailureCount(failures: max(0, min(failures, Self.failuresMax)), lastAt: lastAt) }

    static let fields = Fields<Self>(
        blank: Self(FailureCount()),
        .required("failures", \.failures),
        .time("lastAt", \.lastAt))

    /// Throws `RecordError`.
    init(_ bytes: [UInt8]) throws(RecordError) {
        self = try RecordCodec.decode(Self.self, bytes, of: "failures", unknown: .rejected)
    }

    var bytes: [UInt8] { RecordCodec.encode(self) }
}
