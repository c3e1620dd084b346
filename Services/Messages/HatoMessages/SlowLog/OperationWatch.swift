import HatoModel
import HatoStorage

/// When one operation did what: made when it arrives, read when it is answered.
///
/// `@unchecked Sendable`: it goes from thread to thread with its operation, and is never used by two at a time.
final class OperationWatch: @unchecked Sendable {
    /// What an operation spends its time with, as the log says it.
    enum Phase: String, CaseIterable {
        case waiting = "waiting for its turn"
        /// A large write is looked at before its turn.
        case preparing
        case planning
        case rules
        /// Others were planned for the same sync.
        case group = "the commits beside it"
        case sync
        case telling = "telling listeners"
        case reading = "reading rows"
        case answering = "a big answer"
    }

    let method: String
    /// Where it reads or writes, as far as that is one place.
    var database: DatabaseName
    var path: TreePath?
    /// All times are of one clock that only goes forward.
    let start: Duration
    /// When its closure ran, on the writer's thread or a reader's.
    var began: Duration?
    var ended: Duration?
    /// When it was durable; nil for a read.
    var durable: Duration?
    /// Before it began.
    var preparation = Duration.zero
    var rules = Duration.zero
    var sync = Duration.zero
    let rows = RowCounter()
    /// Of an answer whose size is known.
    var answerBytes = 0

    /// An answer is a reason of its own from here on.
    private static let bigAnswerBytes = 1 << 20

    init(_ method: String, database: DatabaseName?, path: TreePath?, at start: Duration) {
        self.method = method
        self.database = database ?? .default
        self.path = path
        self.start = start
    }

    /// How long it spent with each, when it was answered at `end`.
    func phases(until end: Duration) -> [(phase: Phase, time: Duration)] {
        guard let began else { return [(.waiting, end - start)] }
        let ended = ended ?? end
        var phases: [(Phase, Duration)] = [(.waiting, began - start - preparation), (.preparing, preparation)]
        guard let durable else {
            phases.append((answerBytes >= Self.bigAnswerBytes ? .answering : .reading, end - began - rules))
            phases.append((.rules, rules))
            return phases
        }
        let sync = min(sync, durable - ended)
        phases += [
            (.planning, ended - began - rules), (.rules, rules), (.group, durable - ended - sync), (.sync, sync),
            (.telling, end - durable),
        ]
        return phases
    }
}

/// How many rows were read.
///
/// `@unchecked Sendable`: it goes from thread to thread with what reads, and is never used by two at a time.
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

/// A snapshot whose readers are counted; for one operation.
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
