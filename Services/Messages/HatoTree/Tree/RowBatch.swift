import HatoModel

/// The row operations of a write, in the order of execution, in two flat arrays: planning allocates nothing per row.
public struct RowBatch: Sendable {
    fileprivate enum Kind: UInt8 {
        case put
        case delete
        case deleteRange
    }

    /// The key (or lower bound) is `start..<middle`, the value (or upper bound) `middle..<end`.
    fileprivate struct Operation {
        var kind: Kind
        var start: Int
        var middle: Int
        var end: Int
    }

    fileprivate var bytes: [UInt8] = []
    fileprivate var operations: [Operation] = []

    public init() {}

    /// Whether it has no operations.
    public var isEmpty: Bool { operations.isEmpty }
    /// The number of operations.
    public var count: Int { operations.count }
    /// The bytes of the keys and values of all operations.
    public var byteCount: Int { bytes.count }

    /// Reserves memory for operations and their bytes.
    public mutating func reserve(operations count: Int, bytes byteCount: Int) {
        operations.reserveCapacity(count)
        bytes.reserveCapacity(byteCount)
    }

    /// Adds the operation that writes a row.
    public mutating func put(_ key: Span<UInt8>, _ value: Span<UInt8>) {
        let start = bytes.count
        append(key)
        let middle = bytes.count
        append(value)
        operations.append(Operation(kind: .put, start: start, middle: middle, end: bytes.count))
    }

    /// Adds the operation that deletes a row.
    public mutating func delete(_ key: Span<UInt8>) {
        let start = bytes.count
        append(key)
        operations.append(Operation(kind: .delete, start: start, middle: bytes.count, end: bytes.count))
    }

    /// Deletes all rows from `lower` (included) to `upper` (excluded).
    public mutating func deleteRange(_ lower: Span<UInt8>, _ upper: Span<UInt8>) {
        let start = bytes.count
        append(lower)
        let middle = bytes.count
        append(upper)
        operations.append(Operation(kind: .deleteRange, start: start, middle: middle, end: bytes.count))
    }

    /// Puts a row of the tree.
    mutating func put(_ key: [UInt8], _ leaf: TreeLeaf) {
        let start = bytes.count
        bytes.append(contentsOf: key)
        let middle = bytes.count
        TreeLeafCodec.append(leaf, to: &bytes)
        operations.append(Operation(kind: .put, start: start, middle: middle, end: bytes.count))
    }

    /// Puts a node as one row; returns false when it needs several rows.
    mutating func put(_ key: [UInt8], packing children: TreeChildren) -> Bool {
        let start = bytes.count
        bytes.append(contentsOf: key)
        let middle = bytes.count
        guard PackedNode.append(children, to: &bytes) else {
            bytes.removeLast(bytes.count - start)
            return false
        }
        operations.append(Operation(kind: .put, start: start, middle: middle, end: bytes.count))
        return true
    }

    /// Visits the keys of the rows that are put.
    func forEachPut(_ visit: (Span<UInt8>) -> Void) {
        for operation in operations where operation.kind == .put {
            visit(bytes.span.extracting(operation.start..<operation.middle))
        }
    }

    mutating func delete(_ key: some Collection<UInt8>) {
        let start = bytes.count
        bytes.append(contentsOf: key)
        operations.append(Operation(kind: .delete, start: start, middle: bytes.count, end: bytes.count))
    }

    /// Deletes all rows from a key on; a nil upper bound means to the end.
    mutating func deleteRange(_ lower: [UInt8], _ upper: [UInt8]?) {
        let start = bytes.count
        bytes.append(contentsOf: lower)
        let middle = bytes.count
        bytes.append(contentsOf: upper ?? [])
        operations.append(Operation(kind: .deleteRange, start: start, middle: middle, end: bytes.count))
    }

    /// A position in the batch to truncate to.
    struct Mark {
        fileprivate var operations: Int
        fileprivate var bytes: Int
    }

    var mark: Mark { Mark(operations: operations.count, bytes: bytes.count) }

    /// Removes what was added since `mark`.
    mutating func truncate(to mark: Mark) {
        operations.removeLast(operations.count - mark.operations)
        bytes.removeLast(bytes.count - mark.bytes)
    }

    /// Applies every operation to `target`, in order.
    public func apply(to target: some RowTarget) {
        let all = bytes.span
        for operation in operations {
            let first = all.extracting(operation.start..<operation.middle)
            switch operation.kind {
            case .put: target.put(first, all.extracting(operation.middle..<operation.end))
            case .delete: target.delete(first)
            case .deleteRange: target.deleteRange(first, all.extracting(operation.middle..<operation.end))
            }
        }
    }

    /// The keys of the rows that are put, in order.
    var putKeys: [[UInt8]] {
        operations.compactMap { $0.kind == .put ? Array(bytes[$0.start..<$0.middle]) : nil }
    }

    private mutating func append(_ part: Span<UInt8>) {
        part.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
    }
}

extension RowBatch {
    /// The same operations in parts, one for each section of the rows: first ranges, then single rows in rising order,
    /// each key once. Nil when too many ranges overlap to determine what they cover.
    ///
    /// - Parameter section: the number of bytes at the beginning of a key that identify its section.
    public func sorted(sections section: (Span<UInt8>) -> Int) -> [RowBatch]? {
        let ranges = sortedIndices { $0 == .deleteRange }
        guard let points = uncovered(sortedIndices { $0 != .deleteRange }, by: ranges) else { return nil }
        let all = bytes.span
        var parts: [(section: [UInt8], batch: RowBatch)] = []
        func part(of index: Int) -> Int {
            let key = all.extracting(operations[index].start..<operations[index].middle)
            let name = Array(bytes[operations[index].start..<operations[index].start + min(section(key), key.count)])
            if let last = parts.last, last.section == name { return parts.count - 1 }
            if let known = parts.firstIndex(where: { $0.section == name }) { return known }
            parts.append((name, RowBatch()))
            return parts.count - 1
        }
        for index in ranges { parts[part(of: index)].batch.append(operations[index], of: self) }
        for (position, index) in points.enumerated() {
            if position + 1 < points.count, compare(index, points[position + 1]) == 0 { continue }
            parts[part(of: index)].batch.append(operations[index], of: self)
        }
        return parts.map(\.batch)
    }

    /// In the order of their keys. Stable: of operations with the same key the last counts.
    private func sortedIndices(_ isWanted: (Kind) -> Bool) -> [Int] {
        operations.indices.filter { isWanted(operations[$0].kind) }.sorted { left, right in
            let order = compare(left, right)
            return order == 0 ? left < right : order < 0
        }
    }

    /// The rows that no later range deletes; both are in the order of their keys.
    private func uncovered(_ points: [Int], by ranges: [Int]) -> [Int]? {
        /// The ranges that begin before the row and may contain it.
        var open: [Int] = []
        var next = 0
        var found: [Int] = []
        for point in points {
            while next < ranges.count, compare(ranges[next], point) <= 0 {
                open.append(ranges[next])
                next += 1
            }
            open.removeAll { ends($0, before: point) }
            guard open.count <= Self.overlappingRangesMax else { return nil }
            if !open.contains(where: { $0 > point }) { found.append(point) }
        }
        return found
    }

    /// Every row is compared with the ranges around it.
    private static let overlappingRangesMax = 16

    private mutating func append(_ operation: Operation, of other: RowBatch) {
        let start = bytes.count
        bytes.append(contentsOf: other.bytes[operation.start..<operation.end])
        operations.append(
            Operation(
                kind: operation.kind, start: start, middle: start + operation.middle - operation.start,
                end: bytes.count))
    }

    private func compare(_ left: Int, _ right: Int) -> Int {
        bytes.withUnsafeBytes { bytes in
            let (left, right) = (operations[left], operations[right])
            let (count, other) = (left.middle - left.start, right.middle - right.start)
            for index in 0..<min(count, other) {
                let (one, two) = (bytes[left.start + index], bytes[right.start + index])
                if one != two { return one < two ? -1 : 1 }
            }
            return count - other
        }
    }

    private func ends(_ range: Int, before point: Int) -> Bool {
        let (range, point) = (operations[range], operations[point])
        let upper = bytes[range.middle..<range.end]
        return !upper.isEmpty && !bytes[point.start..<point.middle].lexicographicallyPrecedes(upper)
    }
}

/// The destination of rows: a transaction of the store, or a dictionary in tests.
public protocol RowTarget {
    func put(_ key: Span<UInt8>, _ value: Span<UInt8>)
    func delete(_ key: Span<UInt8>)
    /// Deletes from `lower` (included) to `upper` (excluded; empty: to the end of all rows).
    func deleteRange(_ lower: Span<UInt8>, _ upper: Span<UInt8>)
}
