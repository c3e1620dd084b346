import HatoStorage

/// Rows of applied transactions that RocksDB has not been given yet: in the order of their keys, each key once,
/// followed by those of the transaction that is being planned, in the order of writing.
///
/// They are sorted because a memtable inserts a row fastest right after the row before it, and because a transaction
/// that reads must know whether the rows it reads were written since.
struct PendingRows {
    /// Inserting a row moves those after it: beyond this number, sorting costs more than it saves.
    static let sortedMax = 4_096

    enum Found {
        case value([UInt8])
        case deleted
        /// Nothing was written to this key.
        case untouched
    }

    private enum Kind {
        case put
        case delete
        case deleteRange
    }

    /// The key (or lower bound) is `start..<middle` of the bytes, the value (or upper bound) `middle..<end`.
    private struct Row {
        var kind: Kind
        var start: Int
        var middle: Int
        var end: Int
    }

    private var bytes: [UInt8] = []
    private var rows: [Row] = []
    /// The number of rows and bytes of applied transactions.
    private var applied = (rows: 0, bytes: 0)
    /// Indices in `rows` of the applied ones, in the order of their keys.
    private var order: [Int32] = []
    /// The position in `order` of the previous row.
    private var lastIndex = 0

    // MARK: The transaction that is being planned

    mutating func put(_ key: Span<UInt8>, _ value: Span<UInt8>) { append(.put, key, value) }

    mutating func delete(_ key: Span<UInt8>) { append(.delete, key, Span()) }

    mutating func deleteRange(_ lower: Span<UInt8>, _ upper: Span<UInt8>) { append(.deleteRange, lower, upper) }

    private mutating func append(_ kind: Kind, _ first: Span<UInt8>, _ second: Span<UInt8>) {
        let start = bytes.count
        first.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
        let middle = bytes.count
        second.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
        rows.append(Row(kind: kind, start: start, middle: middle, end: bytes.count))
    }

    /// Discards what the transaction wrote.
    mutating func discard() {
        rows.removeLast(rows.count - applied.rows)
        bytes.removeLast(bytes.count - applied.bytes)
    }

    /// Applies what the transaction wrote. Returns false when it cannot be kept in order: then `handOver` must follow.
    mutating func apply() -> Bool {
        let written = applied.rows..<rows.count
        guard rows.count <= Self.sortedMax, !rows[written].contains(where: { $0.kind == .deleteRange }) else {
            return false
        }
        for row in written { sort(row) }
        applied = (rows.count, bytes.count)
        return true
    }

    private mutating func sort(_ row: Int) {
        let (index, isTaken) = index(of: row)
        if isTaken { order[index] = Int32(row) } else { order.insert(Int32(row), at: index) }
        lastIndex = index
    }

    private func index(of row: Int) -> (Int, isTaken: Bool) {
        let row = rows[row]
        let key = bytes.span.extracting(row.start..<row.middle)
        let index = lowerBound(of: key, near: lastIndex + 1)
        return (index, index < order.count && compare(order[index], key) == 0)
    }

    // MARK: Reading what was applied

    func find(_ wanted: Span<UInt8>) -> Found {
        let index = lowerBound(of: wanted)
        guard index < order.count, compare(order[index], wanted) == 0 else { return .untouched }
        let row = rows[Int(order[index])]
        return row.kind == .put ? .value(Array(bytes[row.middle..<row.end])) : .deleted
    }

    /// Whether anything in the range was written.
    func touches(_ range: KeyRange) -> Bool {
        let index = lowerBound(of: range.lower.span)
        guard index < order.count else { return false }
        guard let upper = range.upper else { return true }
        return compare(order[index], upper.span) < 0
    }

    /// The first position whose key is not before `wanted`.
    private func lowerBound(of wanted: Span<UInt8>, near guess: Int = 0) -> Int {
        var (low, high) = (0, order.count)
        // Rows of one node follow each other.
        if guess > 0, guess <= high, compare(order[guess - 1], wanted) < 0 {
            low = guess
            if low == high || compare(order[low], wanted) >= 0 { return low }
        }
        while low < high {
            let middle = (low + high) / 2
            if compare(order[middle], wanted) < 0 { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Negative, zero or positive: the key of the row is before, equal to, after `key`.
    private func compare(_ row: Int32, _ key: Span<UInt8>) -> Int {
        let row = rows[Int(row)]
        return bytes.span.extracting(row.start..<row.middle).compare(key)
    }

    // MARK: Handing over

    /// Adds everything to the batch: the applied rows in order, then those that `apply` left in the order of writing.
    func handOver(to batch: borrowing WriteBatch) {
        for row in order { hand(rows[Int(row)], to: batch) }
        for row in rows[applied.rows...] { hand(row, to: batch) }
    }

    /// Called when the rows have been handed over and can be read from RocksDB.
    mutating func removeAll() {
        order.removeAll(keepingCapacity: true)
        // Compares capacities, since discarded rows leave theirs behind.
        rows.removeAll(keepingCapacity: rows.capacity <= 4 * Self.sortedMax)
        bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptBytesMax)
        applied = (0, 0)
        lastIndex = 0
    }

    /// A larger buffer is freed, and so is a batch: few groups are as large, and there are two of each.
    static let keptBytesMax = 4 << 20

    /// The capacity of the buffer of keys and values.
    var bufferBytes: Int { bytes.capacity }

    private func hand(_ row: Row, to batch: borrowing WriteBatch) {
        let (first, second) = (
            bytes.span.extracting(row.start..<row.middle), bytes.span.extracting(row.middle..<row.end)
        )
        switch row.kind {
        case .put: batch.put(first, second)
        case .delete: batch.delete(first)
        case .deleteRange: batch.deleteRange(first, second)
        }
    }
}
