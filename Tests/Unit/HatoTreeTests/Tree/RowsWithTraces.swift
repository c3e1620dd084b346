@testable import HatoTree

/// Rows in memory that count the steps over removed keys, as a store needs until it has compacted its files.
final class RowsWithTraces: TreeReader, RowTarget {
    private let rows = MemoryRows()
    private let traces = MemoryRows()
    private(set) var steps = 0

    func get(_ key: Span<UInt8>) throws -> [UInt8]? { try rows.get(key) }

    func scan(
        lower: [UInt8], upper: [UInt8]?, reverse: Bool,
        _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws {
        var (from, to) = (lower, upper)
        var isFirst = true
        try rows.scan(lower: lower, upper: upper, reverse: reverse) { row, value in
            if isFirst {
                let key = row.withUnsafeBufferPointer { Array($0) }
                if reverse { from = key } else { to = key }
                isFirst = false
            }
            return try visit(row, value)
        }
        try traces.scan(lower: from, upper: to, reverse: false) { _, _ in
            steps += 1
            return .next
        }
    }

    func put(_ key: Span<UInt8>, _ value: Span<UInt8>) {
        traces.delete(key)
        rows.put(key, value)
    }

    func delete(_ key: Span<UInt8>) {
        rows.delete(key)
        traces.put(key, key)
    }

    func deleteRange(_ lower: Span<UInt8>, _ upper: Span<UInt8>) { rows.deleteRange(lower, upper) }
}
