import HatoStorage

/// One closure's transaction: it reads the newest state, which only its own thread extends, and adds its writes to the
/// writer's pending rows.
final class RocksTransaction: CommitTransaction {
    let nextVersion: UInt64
    private(set) var phase = TransactionPhase()
    private(set) var writtenBytes = 0
    private(set) var recorded: [UInt8] = []
    private(set) var note: (any Sendable)?
    let derived: (any StoreDerived)?
    private(set) var newDerived: (any StoreDerived)?
    /// Whether it deletes a range.
    private(set) var deletesRange = false
    private(set) var prepared: [RocksPreparedRows] = []
    private var hasRecorded = false
    private let writer: RocksWriter

    init(nextVersion: UInt64, derived: (any StoreDerived)?, writer: RocksWriter) {
        self.nextVersion = nextVersion
        self.derived = derived
        self.writer = writer
    }

    func finish() { phase.finish() }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        phase.willRead()
        return try writer.get(key)
    }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        phase.willRead()
        try writer.scan(range, reverse: reverse, visit)
    }

    func put(_ key: Span<UInt8>, _ value: Span<UInt8>) {
        guard phase.willWrite(key: key) else { return }
        writtenBytes += key.count + value.count
        writer.gathering.rows.put(key, value)
    }

    func delete(_ key: Span<UInt8>) {
        guard phase.willWrite(key: key) else { return }
        writtenBytes += key.count
        writer.gathering.rows.delete(key)
    }

    func deleteRange(_ range: KeyRange) {
        guard !range.isEmpty, phase.willWrite(key: range.lower.span) else { return }
        writtenBytes += range.lower.count
        deletesRange = true
        let upper = range.upper ?? RocksDatabase.endOfKeys
        writer.gathering.rows.deleteRange(range.lower.span, upper.span)
    }

    func take(_ rows: [any PreparedRows]) {
        phase.willWrite()
        precondition(prepared.isEmpty, "a transaction takes prepared rows once")
        for rows in rows {
            guard let rows = rows as? RocksPreparedRows else { preconditionFailure("prepared by another store") }
            prepared.append(rows)
            // Their bytes do not count towards the group.
            writtenBytes += 1
        }
    }

    func record(_ bytes: Span<UInt8>) {
        phase.willWrite()
        precondition(!hasRecorded, "a transaction records once")
        hasRecorded = true
        writtenBytes += bytes.count
        recorded = Array(bytes)
    }

    func attach(_ note: any Sendable) { self.note = note }

    func setDerived(_ derived: any StoreDerived) {
        precondition(newDerived == nil, "a transaction sets what is derived once")
        newDerived = derived
    }
}
