import HatoModel
import HatoStorage

/// Measures the phases of one operation, from its arrival to its response.
///
/// `@unchecked Sendable`: it passes from thread to thread with its operation; no two threads use it at the same time.
final class OperationWatch: @unchecked Sendable {
    /// The phases of an operation, with their names in the log.
    enum Phase: String, CaseIterable {
        case waiting = "waiting for its turn"
        /// A large write is examined before its turn.
        case preparing
        case planning
        case rules
        /// Other writes are planned for the same sync.
        case group = "other commits"
        case sync
        case events = "sending events"
        case reading = "reading rows"
        case response = "encoding the response"
    }

    let method: String
    var database: DatabaseName
    /// The path that it reads or writes; nil when there are several.
    var path: TreePath?
    /// When it arrived. All times are of one clock that only goes forward.
    let start: Duration
    /// When its closure began and ended, on the writer's thread or a reader's.
    var began: Duration?
    var ended: Duration?
    /// When it became durable; nil for a read.
    var durable: Duration?
    /// Work on a large write before its turn.
    var preparation = Duration.zero
    var rules = Duration.zero
    var sync = Duration.zero
    let rows = RowCounter()
    /// The bytes of the response, when they are known.
    var responseBytes = 0

    /// From this size on, the time of a read counts for its response.
    private static let largeResponseBytes = 1 << 20

    init(_ method: String, database: DatabaseName?, path: TreePath?, at start: Duration) {
        self.method = method
        self.database = database ?? .default
        self.path = path
        self.start = start
    }

    /// The time of each phase, when the response was sent at `end`.
    func phases(until end: Duration) -> [(phase: Phase, time: Duration)] {
        guard let began else { return [(.waiting, end - start)] }
        let ended = ended ?? end
        var phases: [(Phase, Duration)] = [(.waiting, began - start - preparation), (.preparing, preparation)]
        guard let durable else {
            phases.append((responseBytes >= Self.largeResponseBytes ? .response : .reading, end - began - rules))
            phases.append((.rules, rules))
            return phases
        }
        let sync = min(sync, durable - ended)
        phases += [
            (.planning, ended - began - rules), (.rules, rules), (.group, durable - ended - sync), (.sync, sync),
            (.events, end - durable),
        ]
        return phases
    }
}

/// Counts rows that are read.
///
/// `@unchecked Sendable`: it passes from thread to thread with the reader; no two threads use it at the same time.
final class RowCounter: @unchecked Sendable {
    var count = 0
}

/// Counts the rows that are read through it.
struct CountedReading: StoreReading {
    let reading: any StoreReading
    let counter: RowCounter

    func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        counter.count += 1
        return try reading.get(key)
    }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        var rows = 0
        defer { counter.count += rows }
        try reading.scan(range, reverse: reverse) { key, value in
            rows += 1
            return try visit(key, value)
        }
    }
}

/// Counts the rows that one operation reads of a snapshot.
final class CountedSnapshot: StoreSnapshot {
    private let snapshot: any StoreSnapshot
    private let counter: RowCounter

    var version: UInt64 { snapshot.version }
    var derived: (any StoreDerived)? { snapshot.derived }
    var uncached: any StoreSnapshot { CountedSnapshot(snapshot.uncached, counter) }

    init(_ snapshot: any StoreSnapshot, _ counter: RowCounter) {
        self.snapshot = snapshot
        self.counter = counter
    }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        try CountedReading(reading: snapshot, counter: counter).get(key)
    }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        try CountedReading(reading: snapshot, counter: counter).scan(range, reverse: reverse, visit)
    }

    func approximateBytes(of range: KeyRange) throws -> UInt64 { try snapshot.approximateBytes(of: range) }
}
