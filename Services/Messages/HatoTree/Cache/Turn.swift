public import HatoModel

/// The turn of a write: between the commit of the write before it and its own. It reads the rows of that state through
/// the database's cache, and nothing else fills the cache.
///
/// - Precondition: Nothing is read after `commit`, nor after the next turn has begun: such a read could fill the cache
///   with what the write is about to change, and traps.
public final class Turn: TreeReader {
    private let stored: any TreeReader
    private let codec: TreeKeyCodec
    /// Nil: nothing is cached.
    private let cache: NodeCache?
    private let number: UInt64
    private var isOver = false
    /// A path with nothing at or below it, usually that of the write itself: the node of a push never existed, and need
    /// not be cached node by node.
    private var missing: TreePath?

    init(_ stored: any TreeReader, codec: TreeKeyCodec, cache: NodeCache?) {
        self.stored = stored
        self.codec = codec
        self.cache = cache
        number = cache?.openTurn() ?? 0
    }

    /// Ends the turn: what the write changes is invalidated. Called before its rows are applied; a write that is
    /// refused does not commit.
    public func commit(_ plan: WritePlan) {
        let cache = openCache
        isOver = true
        cache?.commit(plan, codec: codec, in: number)
    }

    private var openCache: NodeCache? {
        precondition(!isOver, "the turn of this write is over")
        return cache
    }

    // MARK: Facts

    /// The cached fact about a node, or what `read` returns, which is then cached.
    func fact<Value>(
        _ fact: NodeFact<Value>, at path: TreePath, _ read: () throws -> Value
    ) rethrows -> Value {
        guard let cache = openCache else { return try read() }
        if missing?.isAtOrAbove(path) == true { return fact.ofNothing }
        switch cache.access(in: number, { $0.nodes.look(up: fact, at: path) }) {
        case .known(let value): return value
        case .missing(let depth):
            missing = path.prefix(depth)
            return fact.ofNothing
        case .unknown: break
        }
        let value = try read()
        if fact.isCached(value) { cache.access(in: number) { $0.nodes.set(fact, value, at: path) } }
        return value
    }

    // MARK: Children

    /// Whether a path is known to be free below a parent that exists; nil: not known.
    func isFree(_ path: EncodedPath) -> Bool? {
        guard let cache = openCache else { return nil }
        return cache.access(in: number) { $0.nodes.isFree(path.path) }
    }

    /// Caches the greatest child of the parent of a path.
    func cacheGreatestChild(_ key: [UInt8], besides path: EncodedPath) {
        openCache?.access(in: number) { $0.nodes.setGreatestChild(ChildKey(key[...]), besides: path.path) }
    }

    // MARK: Rows

    public func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        precondition(!isOver, "the turn of this write is over")
        return try stored.get(key)
    }

    /// Visits rows as `TreeReader` says, and steps over no cached empty range.
    public func scan(
        lower: [UInt8], upper: [UInt8]?, reverse: Bool,
        _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> TreeScanStep
    ) throws {
        guard let cache = openCache, let uptime = cache.uptime, let upper else {
            return try stored.scan(lower: lower, upper: upper, reverse: reverse, visit)
        }
        var (start, end) = (lower, upper)
        let ranges = TurnRanges(stored: stored, cache: cache, turn: number, uptime: uptime)
        while start.lexicographicallyPrecedes(end) {
            if reverse {
                guard try ranges.scanBackwards(start, &end, visit) else { return }
            } else {
                guard try ranges.scanForwards(&start, end, visit) else { return }
            }
        }
    }
}

/// Scans rows between cached empty ranges, and caches those that it finds.
private struct TurnRanges {
    let stored: any TreeReader
    let cache: NodeCache
    let turn: UInt64
    let uptime: @Sendable () -> Duration

    /// Scans down to the next empty range, and skips it; returns false at the end.
    func scanBackwards(
        _ lower: [UInt8], _ upper: inout [UInt8], _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws -> Bool {
        let empty = cache.access(in: turn) { [upper] in $0.ranges.last(beginningBefore: upper) }
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

    /// Scans up to the next empty range, and skips it; returns false at the end.
    func scanForwards(
        _ lower: inout [UInt8], _ upper: [UInt8], _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws -> Bool {
        let empty = cache.access(in: turn) { [lower] in $0.ranges.first(endingAfter: lower) }
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

    /// Visits rows, and caches the empty range before the first of them. Returns the last step of the visitor.
    private func look(
        _ lower: [UInt8], _ upper: [UInt8], reverse: Bool,
        _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws -> TreeScanStep {
        var first: [UInt8]?
        var step = TreeScanStep.next
        let began = uptime()
        var duration = Duration.zero
        try stored.scan(lower: lower, upper: upper, reverse: reverse) { row, value in
            if first == nil {
                duration = uptime() - began
                first = row.withUnsafeBufferPointer { Array($0) }
            }
            step = try visit(row, value)
            return step
        }
        guard let first else {
            add(lower, upper, after: uptime() - began)
            return step
        }
        if reverse { add(first + [0], upper, after: duration) } else { add(lower, first, after: duration) }
        return step
    }

    private func add(_ lower: [UInt8], _ upper: [UInt8], after duration: Duration) {
        cache.access(in: turn) { $0.ranges.add(from: lower, to: upper, after: duration) }
    }
}
