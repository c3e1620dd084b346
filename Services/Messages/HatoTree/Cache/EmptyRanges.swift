import HatoModel

/// Ranges of keys of a tree without rows, so that slow reads over them are not repeated.
///
/// Where nodes are often created and removed (who is typing, who is online, a queue), a store keeps tombstones of every
/// removal until compaction, and a read of the row before a path steps over all of them: without this cache each write
/// would take longer than the previous one.
///
/// A range is cached when reading past it was slow, or when it touches a cached one: so the hole that a removal inside
/// one leaves is closed by the next read. When there are too many ranges, the least recently used half is evicted.
struct EmptyRanges {
    /// Longer keys are not cached.
    private static let keyBytesMax = 1_024

    /// The keys from `lower` (included) to `upper` (excluded).
    struct KeyRange: Sendable {
        var lower: [UInt8]
        var upper: [UInt8]
        fileprivate var lastUse = 0
        /// Whether it begins, or ends, at a row that was put since.
        fileprivate var isCut = (below: false, above: false)
    }

    private let countMax: Int
    private let slowRead: Duration
    /// In rising order; no two of them touch.
    private var ranges: [KeyRange] = []
    private var uses = 0

    init(_ limits: NodeCache.Limits) {
        countMax = limits.rangesMax
        slowRead = limits.slowRead
    }

    /// The last range that begins before a key.
    mutating func last(beginningBefore key: [UInt8]) -> KeyRange? {
        let index = firstIndex { !$0.lower.lexicographicallyPrecedes(key) } - 1
        return index < 0 ? nil : use(index)
    }

    /// The first range that ends after a key.
    mutating func first(endingAfter key: [UInt8]) -> KeyRange? {
        let index = firstIndex { key.lexicographicallyPrecedes($0.upper) }
        return index == ranges.count ? nil : use(index)
    }

    /// Caches that there is no row from `lower` to `upper`, as a read of this duration found.
    mutating func add(from lower: [UInt8], to upper: [UInt8], after duration: Duration) {
        guard lower.lexicographicallyPrecedes(upper), max(lower.count, upper.count) <= Self.keyBytesMax else { return }
        let touching = touching(lower, upper)
        guard duration >= slowRead || !touching.isEmpty else { return }
        var range = KeyRange(lower: lower, upper: upper)
        for known in ranges[touching] {
            if known.lower.lexicographicallyPrecedes(range.lower) { range.lower = known.lower }
            if range.upper.lexicographicallyPrecedes(known.upper) { range.upper = known.upper }
        }
        ranges.replaceSubrange(touching, with: CollectionOfOne(range))
        _ = use(touching.lowerBound)
        evictOlder()
    }

    /// Invalidates the keys at which a write puts rows: for more than `rowsMax` rows, all keys of the nodes in which it
    /// puts some.
    mutating func invalidate(_ plan: WritePlan, _ codec: TreeKeyCodec, rowsMax: Int) {
        if ranges.isEmpty { return }
        guard plan.rows.count > rowsMax else { return plan.rows.forEachPut { cut(at: $0) } }
        for path in plan.unpacked + plan.changes.map(\.path.node) {
            let key = codec.key(of: path)
            guard let upper = TreeKeyCodec.upperBound(of: key) else { return ranges = [] }
            cut(from: key, to: upper)
        }
    }

    /// Called for every row that is put: most are in no range, and need not be copied.
    private mutating func cut(at key: Span<UInt8>) {
        let inside: Int? = key.withUnsafeBufferPointer { key in
            let index = firstIndex { key.lexicographicallyPrecedes($0.upper) }
            return index < ranges.count && !key.lexicographicallyPrecedes(ranges[index].lower) ? index : nil
        }
        guard let inside else { return }
        let key = key.withUnsafeBufferPointer { Array($0) }
        guard ranges[inside].isCut.below, key.count < Self.keyBytesMax else { return cut(from: key, to: key + [0]) }
        // Where keys rise, each push begins the range anew: the piece before it is useless.
        ranges[inside].lower = key + [0]
        if !ranges[inside].lower.lexicographicallyPrecedes(ranges[inside].upper) { ranges.remove(at: inside) }
    }

    private mutating func cut(from lower: [UInt8], to upper: [UInt8]) {
        let cut = touching(lower, upper)
        var rest: [KeyRange] = []
        for range in ranges[cut] {
            var (left, right) = (range, range)
            if lower.lexicographicallyPrecedes(left.upper) { (left.upper, left.isCut.above) = (lower, true) }
            if right.lower.lexicographicallyPrecedes(upper) { (right.lower, right.isCut.below) = (upper, true) }
            // A range between two new rows is useless: where keys rise, each push would leave such a piece.
            rest += [left, right].filter {
                $0.lower.lexicographicallyPrecedes($0.upper) && !($0.isCut.below && $0.isCut.above)
                    && max($0.lower.count, $0.upper.count) <= Self.keyBytesMax
            }
        }
        ranges.replaceSubrange(cut, with: rest)
    }

    private mutating func use(_ index: Int) -> KeyRange {
        uses += 1
        ranges[index].lastUse = uses
        return ranges[index]
    }

    private mutating func evictOlder() {
        guard ranges.count > countMax else { return }
        let uses = ranges.map(\.lastUse).sorted()
        let oldest = uses[uses.count / 2]
        ranges.removeAll { $0.lastUse < oldest }
    }

    // MARK: Searching

    /// The ranges that overlap a range or touch one of its ends.
    private func touching(_ lower: [UInt8], _ upper: [UInt8]) -> Range<Int> {
        let first = firstIndex { !$0.upper.lexicographicallyPrecedes(lower) }
        let end = firstIndex { upper.lexicographicallyPrecedes($0.lower) }
        return first..<max(first, end)
    }

    /// The first that is `beyond`, as all after it are.
    private func firstIndex(_ beyond: (KeyRange) -> Bool) -> Int {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if beyond(ranges[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
