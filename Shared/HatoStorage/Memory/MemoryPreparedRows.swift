/// Prepared rows of a memory store: the changes themselves.
final class MemoryPreparedRows: PreparedRows {
    let changes: [MemoryTransaction.Change]
    let byteCount: Int

    init(_ rows: (any StoreWriting) throws -> Void) throws {
        let list = List()
        try rows(list)
        if let problem = list.phase.problem { throw problem }
        (changes, byteCount) = (list.changes, list.byteCount)
    }

    private final class List: StoreWriting {
        var changes: [MemoryTransaction.Change] = []
        var byteCount = 0
        var phase = TransactionPhase()
        private var order = PreparedOrder()

        func put(_ key: Span<UInt8>, _ value: Span<UInt8>) {
            guard phase.willWrite(key: key) else { return }
            order.check(key)
            byteCount += key.count + value.count
            changes.append(.put(key: Array(key), value: Array(value)))
        }

        func delete(_ key: Span<UInt8>) {
            guard phase.willWrite(key: key) else { return }
            order.check(key)
            byteCount += key.count
            changes.append(.delete(key: Array(key)))
        }

        func deleteRange(_ range: KeyRange) {
            guard !range.isEmpty, phase.willWrite(key: range.lower.span) else { return }
            order.checkRange()
            byteCount += range.lower.count
            changes.append(.deleteRange(range))
        }
    }
}

/// Checks the order in which rows are prepared: ranges first, then rows in rising order, each once. Another order is a
/// programmer error and traps.
package struct PreparedOrder {
    private var last: [UInt8] = []
    private var isFirst = true

    package init() {}

    package mutating func check(_ key: Span<UInt8>) {
        precondition(isFirst || last.span.precedes(key), "prepared rows come in rising order of their keys, each once")
        isFirst = false
        last.removeAll(keepingCapacity: true)
        key.withUnsafeBufferPointer { last.append(contentsOf: $0) }
    }

    package func checkRange() { precondition(isFirst, "prepared ranges come before the rows") }
}
