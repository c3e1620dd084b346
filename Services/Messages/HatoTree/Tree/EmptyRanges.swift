import HatoModel
import Synchronization

/// Caches key ranges of the tree without rows, so that slow reads over them are not repeated.
///
/// Where nodes are often created and removed (who is typing, who is online, a queue), a store keeps tombstones of every
/// removal until compaction, and a read of the row before a path steps over all of them: without this cache each write
/// would take longer than the previous one.
///
/// A range is cached when reading past it was slow, or when it touches a cached one: so the hole that a removal inside
/// one leaves is closed by the next read. The cache is correct for the same reason as `ParentMemory`: every write of
/// the database is planned with it, in the order of application; only what was read is cached, and a plan can only
/// invalidate.
///
/// The cache is bounded: when there are too many ranges, the least recently used half is evicted.
final class EmptyRanges: Sendable {
    /// Some 300 bytes each.
    private static let countMax = 1_024
    /// Several times the duration of a read where nothing was removed.
    private static let slowLook = Duration.microseconds(200)
    /// Longer keys are not cached.
    fileprivate static let keyBytesMax = 1_024

    /// The keys from `lower` (included) to `upper` (excluded).
    struct Stretch {
        var lower: [UInt8]
        var upper: [UInt8]
        fileprivate var lastUse = 0
        /// Whether it begins, or ends, at a row that was put since.
        fileprivate var isCut = (below: false, above: false)
    }

    fileprivate struct State {
        /// In rising order; no two of them touch.
        var stretches: [Stretch] = []
        var uses = 0
    }

    private let slowLook: Duration
    /// The time since some fixed moment.
    fileprivate let uptime: @Sendable () -> Duration
    private let countMax: Int
    private let state = Mutex(State())

    init(
        slowLook: Duration = EmptyRanges.slowLook, countMax: Int = EmptyRanges.countMax,
        uptime: @escaping @Sendable () -> Duration
    ) {
        self.slowLook = slowLook
        self.uptime = uptime
        self.countMax = countMax
    }

    /// The last range that begins before a key.
    func last(beginningBefore key: [UInt8]) -> Stretch? {
        state.withLock { state in
            let index = Self.firstIndex(in: state.stretches) { !$0.lower.lexicographicallyPrecedes(key) } - 1
            return index < 0 ? nil : state.use(index)
        }
    }

    /// The first range that ends after a key.
    func first(endingBehind key: [UInt8]) -> Stretch? {
        state.withLock { state in
            let index = Self.firstIndex(in: state.stretches) { key.lexicographicallyPrecedes($0.upper) }
            return index == state.stretches.count ? nil : state.use(index)
        }
    }

    /// Notes that there is no row from `lower` to `upper`, as a read of this duration found.
    func note(from lower: [UInt8], to upper: [UInt8], after duration: Duration) {
        guard lower.lexicographicallyPrecedes(upper), max(lower.count, upper.count) <= Self.keyBytesMax else { return }
        state.withLock { state in
            let touching = Self.touching(lower, upper, state.stretches)
            guard duration >= slowLook || !touching.isEmpty else { return }
            var stretch = Stretch(lower: lower, upper: upper)
            for known in state.stretches[touching] {
                if known.lower.lexicographicallyPrecedes(stretch.lower) { stretch.lower = known.lower }
                if stretch.upper.lexicographicallyPrecedes(known.upper) { stretch.upper = known.upper }
            }
            state.stretches.replaceSubrange(touching, with: CollectionOfOne(stretch))
            _ = state.use(touching.lowerBound)
            state.bound(to: countMax)
        }
    }

    var isEmpty: Bool { state.withLock { $0.stretches.isEmpty } }

    /// Invalidates a key at which a row will be put.
    func forget(_ key: Span<UInt8>) {
        state.withLock { state in
            if state.stretches.isEmpty { return }
            // Called for every row that is put: most are in no range, and need not be copied.
            let isInside = key.withUnsafeBufferPointer { key in
                let index = Self.firstIndex(in: state.stretches) { key.lexicographicallyPrecedes($0.upper) }
                return index < state.stretches.count
                    && !key.lexicographicallyPrecedes(state.stretches[index].lower)
            }
            guard isInside else { return }
            let key = key.withUnsafeBufferPointer { Array($0) }
            state.cut(from: key, to: key + [0])
        }
    }

    /// Invalidates the keys from `lower` to `upper` (nil: to the end), where rows will be put.
    func forget(from lower: [UInt8], to upper: [UInt8]?) {
        state.withLock { state in
            if state.stretches.isEmpty { return }
            guard let upper else { return state.stretches = [] }
            state.cut(from: lower, to: upper)
        }
    }

    // MARK: Searching

    /// The ranges that overlap a range or touch one of its ends.
    fileprivate static func touching(_ lower: [UInt8], _ upper: [UInt8], _ stretches: [Stretch]) -> Range<Int> {
        let first = firstIndex(in: stretches) { !$0.upper.lexicographicallyPrecedes(lower) }
        let end = firstIndex(in: stretches) { upper.lexicographicallyPrecedes($0.lower) }
        return first..<max(first, end)
    }

    /// The first that is `beyond`, as all after it are.
    private static func firstIndex(in stretches: [Stretch], _ beyond: (Stretch) -> Bool) -> Int {
        var (low, high) = (0, stretches.count)
        while low < high {
            let middle = (low + high) / 2
            if beyond(stretches[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

extension EmptyRanges.State {
    fileprivate mutating func use(_ index: Int) -> EmptyRanges.Stretch {
        uses += 1
        stretches[index].lastUse = uses
        return stretches[index]
    }

    fileprivate mutating func cut(from lower: [UInt8], to upper: [UInt8]) {
        let cut = EmptyRanges.touching(lower, upper, stretches)
        var rest: [EmptyRanges.Stretch] = []
        for stretch in stretches[cut] {
            var (left, right) = (stretch, stretch)
            if lower.lexicographicallyPrecedes(left.upper) { (left.upper, left.isCut.above) = (lower, true) }
            if right.lower.lexicographicallyPrecedes(upper) { (right.lower, right.isCut.below) = (upper, true) }
            // A range between two new rows is useless: where keys rise, each push would leave such a piece.
            rest += [left, right].filter {
                $0.lower.lexicographicallyPrecedes($0.upper) && !($0.isCut.below && $0.isCut.above)
                    && max($0.lower.count, $0.upper.count) <= EmptyRanges.keyBytesMax
            }
        }
        stretches.replaceSubrange(cut, with: rest)
    }

    fileprivate mutating func bound(to countMax: Int) {
        guard stretches.count > countMax else { return }
        let uses = stretches.map(\.lastUse).sorted()
        let oldest = uses[uses.count / 2]
        stretches.removeAll { $0.lastUse < oldest }
    }
}

/// Reads rows in the turn of a write, and skips the ranges that are known to be empty.
final class EmptyRangesReader: TreeReader {
    private let stored: any TreeReader
    private let ranges: EmptyRanges

    init(_ stored: any TreeReader, _ ranges: EmptyRanges) {
        self.stored = stored
        self.ranges = ranges
    }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? { try stored.get(key) }

    func scan(
        lower: [UInt8], upper: [UInt8]?, reverse: Bool,
        _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> TreeScanStep
    ) throws {
        guard let upper else { return try stored.scan(lower: lower, upper: nil, reverse: reverse, visit) }
        var (start, end) = (lower, upper)
        while start.lexicographicallyPrecedes(end) {
            if reverse {
                guard try scanBackwards(start, &end, visit) else { return }
            } else {
                guard try scanForwards(&start, end, visit) else { return }
            }
        }
    }

    /// Scans down to the next empty range, and skips it; returns false at the end.
    private func scanBackwards(
        _ lower: [UInt8], _ upper: inout [UInt8], _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws -> Bool {
        let empty = ranges.last(beginningBefore: upper)
        let end = empty.map { $0.upper.lexicographicallyPrecedes(lower) ? lower : $0.upper } ?? lower
        if end.lexicographicallyPrecedes(upper) {
            switch try look(end, upper, reverse: true, visit) {
            case .stop: return false
            case .next: break
            case .seek(let target):
                let behind = target + [0]
                if let empty, behind.lexicographicallyPrecedes(empty.lower) {
                    upper = behind
                    return true
                }
            }
        }
        guard let empty else { return false }
        upper = empty.lower
        return true
    }

    private func scanForwards(
        _ lower: inout [UInt8], _ upper: [UInt8], _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws -> Bool {
        let empty = ranges.first(endingBehind: lower)
        let end = empty.map { upper.lexicographicallyPrecedes($0.lower) ? upper : $0.lower } ?? upper
        if lower.lexicographicallyPrecedes(end) {
            switch try look(lower, end, reverse: false, visit) {
            case .stop: return false
            case .next: break
            case .seek(let target):
                if let empty, empty.upper.lexicographicallyPrecedes(target) {
                    lower = target
                    return true
                }
            }
        }
        guard let empty else { return false }
        lower = empty.upper
        return true
    }

    /// Visits rows, and notes the empty range before the first of them. Returns the last step of the visitor.
    private func look(
        _ lower: [UInt8], _ upper: [UInt8], reverse: Bool,
        _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws -> TreeScanStep {
        var first: [UInt8]?
        var step = TreeScanStep.next
        let began = ranges.uptime()
        var duration = Duration.zero
        try stored.scan(lower: lower, upper: upper, reverse: reverse) { row, value in
            if first == nil {
                duration = ranges.uptime() - began
                first = row.withUnsafeBufferPointer { Array($0) }
            }
            step = try visit(row, value)
            return step
        }
        if let first {
            let (from, to) = reverse ? (first + [0], upper) : (lower, first)
            ranges.note(from: from, to: to, after: duration)
        } else {
            ranges.note(from: lower, to: upper, after: ranges.uptime() - began)
        }
        return step
    }
}
