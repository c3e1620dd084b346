/// One closure's transaction on a memory store: it reads the rows as they were when it began, and keeps what it writes
/// until it is applied.
package final class MemoryTransaction: CommitTransaction {
    enum Change {
        case put(key: [UInt8], value: [UInt8])
        case delete(key: [UInt8])
        case deleteRange(KeyRange)
    }

    package let nextVersion: UInt64
    package private(set) var phase = TransactionPhase()
    package private(set) var writtenBytes = 0
    package private(set) var recorded: [UInt8] = []
    package private(set) var note: (any Sendable)?
    package let derived: (any StoreDerived)?
    package private(set) var newDerived: (any StoreDerived)?
    private var changes: [Change] = []
    private var hasRecorded = false
    private var rows: SortedRows

    init(nextVersion: UInt64, rows: SortedRows, derived: (any StoreDerived)?) {
        self.nextVersion = nextVersion
        self.derived = derived
        self.rows = rows
    }

    package func finish() {
        phase.finish()
        // While a copy shares the rows, changing them copies.
        rows = SortedRows()
    }

    func takeChanges() -> [Change] {
        defer { changes = [] }
        return changes
    }

    package func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        phase.willRead()
        return rows.value(of: key)
    }

    package func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        phase.willRead()
        try rows.scan(range, reverse: reverse, visit)
    }

    package func put(_ key: Span<UInt8>, _ value: Span<UInt8>) {
        guard phase.willWrite(key: key) else { return }
        writtenBytes += key.count + value.count
        changes.append(.put(key: Array(key), value: Array(value)))
    }

    package func delete(_ key: Span<UInt8>) {
        guard phase.willWrite(key: key) else { return }
        writtenBytes += key.count
        changes.append(.delete(key: Array(key)))
    }

    package func deleteRange(_ range: KeyRange) {
        guard !range.isEmpty, phase.willWrite(key: range.lower.span) else { return }
        writtenBytes += range.lower.count
        changes.append(.deleteRange(range))
    }

    package func take(_ rows: [any PreparedRows]) {
        phase.willWrite()
        for rows in rows {
            guard let rows = rows as? MemoryPreparedRows else { preconditionFailure("prepared by another store") }
            writtenBytes += rows.byteCount
            changes += rows.changes
        }
    }

    package func record(_ bytes: Span<UInt8>) {
        phase.willWrite()
        precondition(!hasRecorded, "a transaction records once")
        hasRecorded = true
        writtenBytes += bytes.count
        recorded = Array(bytes)
    }

    package func attach(_ note: any Sendable) { self.note = note }

    package func setDerived(_ derived: any StoreDerived) {
        precondition(newDerived == nil, "a transaction sets what is derived once")
        newDerived = derived
    }
}

extension Array<UInt8> {
    package init(_ bytes: Span<UInt8>) {
        self = bytes.withUnsafeBufferPointer { Array($0) }
    }
}
