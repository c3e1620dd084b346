import HatoStorage

/// Which version the store had at a time: a row of each hour in which accounts or sessions were written. Commits have
/// no time of their own, and most of them no event, so that the events that are old enough are found without reading
/// the commits between.
enum EventMarks {
    /// The version at the newest mark that is not after `time` (milliseconds since 1970); nil when there is none.
    static func version(at time: Int64, in rows: some StoreReading) throws -> UInt64? {
        var version: UInt64?
        try rows.scan(through(time), reverse: true) { _, value in
            version = number(value)
            return .stop
        }
        return version
    }

    /// The position of the newest event; nil before the first.
    static func newestPosition(in rows: any StoreReading) throws -> Int? {
        try rows.row(AuthKey.newestEvent).flatMap { number($0.span) }.map { Int(clamping: $0) }
    }

    /// Keeps the position of the newest event.
    static func put(newestPosition: Int, in rows: any StoreTransaction) {
        rows.putRow(AuthKey.newestEvent, UInt64(clamping: newestPosition).bigEndianBytes)
    }

    /// Marks the version from before a commit at `time`.
    static func mark(_ version: UInt64, at time: Int64, in rows: any StoreTransaction) {
        rows.putRow(AuthKey.eventMark(time), version.bigEndianBytes)
    }

    /// The keys of the marks not after `time`.
    static func keys(through time: Int64, in rows: some StoreReading) throws -> [[UInt8]] {
        var keys: [[UInt8]] = []
        try rows.rows(through(time)) { key, _ in
            keys.append(key)
            return true
        }
        return keys
    }

    private static func through(_ time: Int64) -> KeyRange {
        KeyRange(lower: AuthKey.eventMarks.lower, upper: AuthKey.eventMark(time) + [0])
    }

    private static func number(_ bytes: Span<UInt8>) -> UInt64? {
        guard bytes.count == 8 else { return nil }
        var number: UInt64 = 0
        for index in bytes.indices { number = number << 8 | UInt64(bytes[index]) }
        return number
    }
}

extension UInt64 {
    /// The eight bytes, the highest first: their order is that of the numbers.
    var bigEndianBytes: [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: self >> (56 - 8 * UInt64($0))) } }
}
