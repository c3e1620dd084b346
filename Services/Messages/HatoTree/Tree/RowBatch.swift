import HatoModel

/// What a write does to rows, in the order it must be done, in two flat arrays: planning allocates nothing for a row.
public struct RowBatch: Sendable {
    private enum Kind: UInt8 {
        case put
        case delete
        case deleteRange
    }

    /// The key (or lower bound) lies in `start..<middle`, the value (or upper bound) in `middle..<end`.
    private struct Operation {
        var kind: Kind
        var start: Int
        var middle: Int
        var end: Int
    }

    private var bytes: [UInt8] = []
    private var operations: [Operation] = []

    public init() {}

    public var isEmpty: Bool { operations.isEmpty }
    /// The number of operations.
    public var count: Int { operations.count }
    public var byteCount: Int { bytes.count }

    public mutating func reserve(operations count: Int, bytes byteCount: Int) {
        operations.reserveCapacity(count)
        bytes.reserveCapacity(byteCount)
    }

    public mutating func put(_ key: Span<UInt8>, _ value: Span<UInt8>) {
        let start = bytes.count
        append(key)
        let middle = bytes.count
        append(value)
        operations.append(Operation(kind: .put, start: start, middle: middle, end: bytes.count))
    }

    public mutating func delete(_ key: Span<UInt8>) {
        let start = bytes.count
        append(key)
        operations.append(Operation(kind: .delete, start: start, middle: bytes.count, end: bytes.count))
    }

    /// Deletes everything from `lower` (included) to `upper` (excluded).
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

    mutating func delete(_ key: some Collection<UInt8>) {
        let start = bytes.count
        bytes.append(contentsOf: key)
        operations.append(Operation(kind: .delete, start: start, middle: bytes.count, end: bytes.count))
    }

    /// Deletes everything below a key; nil as its upper bound: to the end.
    mutating func deleteRange(_ lower: [UInt8], _ upper: [UInt8]?) {
        let start = bytes.count
        bytes.append(contentsOf: lower)
        let middle = bytes.count
        bytes.append(contentsOf: upper ?? [])
        operations.append(Operation(kind: .deleteRange, start: start, middle: middle, end: bytes.count))
    }

    /// A point in the batch to come back to.
    struct Mark {
        fileprivate var operations: Int
        fileprivate var bytes: Int
    }

    var mark: Mark { Mark(operations: operations.count, bytes: bytes.count) }

    /// Takes back what was added since `mark`.
    mutating func truncate(to mark: Mark) {
        operations.removeLast(operations.count - mark.operations)
        bytes.removeLast(bytes.count - mark.bytes)
    }

    /// Hands every operation to `target`, in order.
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

/// Where rows go: a transaction of the store, or a dictionary in tests.
public protocol RowTarget {
    func put(_ key: Span<UInt8>, _ value: Span<UInt8>)
    func delete(_ key: Span<UInt8>)
    /// From `lower` (included) to `upper` (excluded; empty: to the end of all rows).
    func deleteRange(_ lower: Span<UInt8>, _ upper: Span<UInt8>)
}
