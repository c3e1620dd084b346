/// Follows rows in key order and determines which keys of the path changed from one row to the next.
struct RowCursor {
    /// The number of bytes before the first key.
    private(set) var base: Int
    private(set) var row: [UInt8]
    /// The end of each key of the current row.
    private(set) var ends: [Int] = []
    /// Whether the current row is the priority of the node its keys name.
    private(set) var isPriority = false

    init(base: [UInt8]) {
        self.base = base.count
        row = base
    }

    /// Begins again with another base, and keeps the buffers.
    mutating func restart(base: [UInt8]) {
        self.base = base.count
        row.removeAll(keepingCapacity: true)
        row.append(contentsOf: base)
        ends.removeAll(keepingCapacity: true)
        isPriority = false
    }

    /// The number of keys of the current row after the base.
    var depth: Int { ends.count }

    /// Moves to a row that begins with the base; returns the number of keys it shares with the previous row.
    mutating func advance(to key: Span<UInt8>) throws -> Int {
        let shared = sharedCount(with: key)
        while let end = ends.last, end > shared { ends.removeLast() }
        let kept = ends.count
        var start = ends.last ?? base
        row.removeSubrange(start...)
        key.extracting(start..<key.count).withUnsafeBufferPointer { row.append(contentsOf: $0) }
        isPriority = false
        while start < key.count {
            if key[start] == TreeKeyCodec.priorityMark, start == key.count - 1 {
                isPriority = true
                break
            }
            guard let end = TreeKeyCodec.endOfKey(in: key, from: start) else {
                throw TreeError.corrupted("a row whose key ends too early")
            }
            ends.append(end)
            start = end
        }
        return kept
    }

    /// The number of bytes of the current row's keys after the first `kept`.
    func newBytes(after kept: Int) -> Int { kept < depth ? row.count - range(kept).lowerBound : 0 }

    /// The bytes of key number `index` of the current row.
    func range(_ index: Int) -> Range<Int> {
        (index == 0 ? base : ends[index - 1])..<ends[index]
    }

    private func sharedCount(with key: Span<UInt8>) -> Int {
        let known = row.span
        let limit = min(known.count, key.count)
        var index = base
        while index < limit, known[index] == key[index] { index += 1 }
        return index
    }
}
