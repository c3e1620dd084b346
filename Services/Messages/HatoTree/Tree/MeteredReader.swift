/// Reads until a meter is exhausted: for threads that must not be blocked by long reads.
public struct MeteredReader: TreeReader {
    private let reader: any TreeReader
    private let meter: ReadingMeter

    public init(_ reader: any TreeReader, _ meter: ReadingMeter) {
        self.reader = reader
        self.meter = meter
    }

    public func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        let value = try reader.get(key)
        try meter.count(bytes: key.count + (value?.count ?? 0))
        return value
    }

    public func scan(
        lower: [UInt8], upper: [UInt8]?, reverse: Bool,
        _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> TreeScanStep
    ) throws {
        try meter.count(bytes: lower.count)
        try reader.scan(lower: lower, upper: upper, reverse: reverse) { key, value in
            try meter.count(bytes: key.count + value.count)
            return try visit(key, value)
        }
    }
}

/// The rows and bytes that may still be read. Belongs to one thread.
public final class ReadingMeter {
    /// Thrown by a read beyond the limit.
    public struct Exhausted: Error {}

    private var rows: Int
    private var bytes: Int

    public init(rows: Int, bytes: Int) {
        self.rows = rows
        self.bytes = bytes
    }

    func count(bytes count: Int) throws {
        rows -= 1
        bytes -= count
        if rows < 0 || bytes < 0 { throw Exhausted() }
    }
}
