/// The rows of a tree in the form for readers: one for each leaf and each priority, also where a node is stored in one
/// row (`PackedNode`). Rows outside of the tree, such as those of indexes, are unchanged.
public final class TreeRows: TreeReader {
    /// The rows as stored.
    let stored: any TreeReader
    private let prefix: [UInt8]

    public init(_ stored: any TreeReader, codec: TreeKeyCodec) {
        self.stored = stored
        prefix = codec.prefix
    }

    /// The value of the row of the packed node with this key; nil when there is none.
    func packed(at key: Span<UInt8>) throws -> [UInt8]? {
        guard let value = try stored.get(key), PackedNode.isPacked(value.span) else { return nil }
        return value
    }

    public func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        if let value = try stored.get(key) { return isOfTree(key) && PackedNode.isPacked(value.span) ? nil : value }
        return try packedLeaf(key)
    }

    /// Whether there is a leaf or a packed node with this key.
    func holds(_ key: Span<UInt8>) throws -> Bool {
        if try stored.get(key) != nil { return true }
        return try packedLeaf(key) != nil
    }

    private func packedLeaf(_ key: Span<UInt8>) throws -> [UInt8]? {
        guard isOfTree(key), let parent = parentEnd(of: key), let value = try packed(at: key.extracting(0..<parent))
        else { return nil }
        let name = key.extracting(parent..<key.count)
        var end = 1
        while let leaf = try PackedNode.next(in: value.span, after: &end) {
            guard value.span.extracting(leaf.key).isEqual(to: name) else { continue }
            return Array(value[leaf.value])
        }
        return nil
    }

    public func scan(
        lower: [UInt8], upper: [UInt8]?, reverse: Bool,
        _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> TreeScanStep
    ) throws {
        guard isOfTree(lower.span) else {
            return try stored.scan(lower: lower, upper: upper, reverse: reverse, visit)
        }
        if reverse {
            try scanBackwards(lower, upper, visit)
        } else {
            try scanForwards(lower, upper, visit)
        }
    }

    /// Visits the rows of the node with this key in order, for a node that is probably packed: a look-up costs a
    /// quarter of starting a scan.
    func scanNode(_ key: [UInt8], _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep) throws {
        let upper = TreeKeyCodec.upperBound(of: key)
        guard let value = try packed(at: key.span) else {
            return try scan(lower: key, upper: upper, reverse: false, visit)
        }
        var leaves = PackedLeaves(lower: key, upper: upper)
        _ = try leaves.visit(key.span, value.span, visit)
    }

    // MARK: Forwards

    /// Besides the rows from `lower` on, a packed node whose row is before `lower` may have leaves in the range. A
    /// packed node has no other rows: if a row after `lower` begins with a node's key, that node is not packed. The
    /// same applies to every target of a seek.
    private func scanForwards(
        _ lower: [UInt8], _ upper: [UInt8]?, _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws {
        var leaves = PackedLeaves(lower: lower, upper: upper)
        /// The number of leading bytes of the current position that are known to lead only through nodes that are not
        /// packed.
        var known: Int? = 0
        var isStopped = false
        func end(_ step: TreeScanStep, at row: Span<UInt8>) -> TreeScanStep {
            if case .stop = step { isStopped = true }
            guard case .seek(let target) = step else { return step }
            leaves.lower = target
            known = Self.shared(target.span, row)
            return step
        }
        try stored.scan(lower: lower, upper: upper, reverse: false) { row, value in
            if let before = known {
                known = nil
                let shared = max(before, Self.shared(leaves.lower.span, row))
                if let packed = try self.packedAbove(leaves.lower, upTo: upper, knownTo: shared) {
                    switch try leaves.visit(packed.key.span, packed.value.span, visit) {
                    case .next: break
                    case .stop: return end(.stop, at: row)
                    case .seek(let target):
                        if target.span.isBehind(row) {
                            // The row itself may be the packed node that contains the target.
                            known = 0
                            return .seek(target)
                        }
                    }
                }
            }
            guard PackedNode.isPacked(value) else { return end(try visit(row, value), at: row) }
            return end(try leaves.visit(row, value, visit), at: row)
        }
        guard !isStopped, let known, let packed = try packedAbove(leaves.lower, upTo: upper, knownTo: known) else {
            return
        }
        _ = try leaves.visit(packed.key.span, packed.value.span, visit)
    }

    /// The packed node above `place`, if there is one. It is looked up key by key: a scan of all rows before the place
    /// would have to see the rows that other transactions of the group have just put.
    ///
    /// - Parameter count: the number of leading bytes of `place` that lead only through nodes that are not packed.
    private func packedAbove(
        _ place: [UInt8], upTo upper: [UInt8]?, knownTo count: Int
    ) throws -> (key: [UInt8], value: [UInt8])? {
        let ends = nodes(above: place.span, behind: count)
        for (index, end) in ends.enumerated().reversed() {
            // Leaves of a node further up that are after the place are also after everything below the next node on the
            // path.
            if index + 1 < ends.count, let upper, upper.starts(with: place[..<ends[index + 1]]) { return nil }
            guard let value = try stored.get(place.span.extracting(0..<end)) else { continue }
            return PackedNode.isPacked(value.span) ? (Array(place[..<end]), value) : nil
        }
        return nil
    }

    // MARK: Backwards

    private func scanBackwards(
        _ lower: [UInt8], _ upper: [UInt8]?, _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws {
        var leaves = PackedLeaves(lower: lower, upper: upper)
        var known = 0
        var isStopped = false
        func end(_ step: TreeScanStep) -> TreeScanStep {
            switch step {
            case .next: break
            case .stop: isStopped = true
            case .seek(let target): leaves.last = target
            }
            return step
        }
        try stored.scan(lower: lower, upper: upper, reverse: true) { row, value in
            known = max(known, Self.shared(lower.span, row))
            guard PackedNode.isPacked(value) else { return end(try visit(row, value)) }
            return end(try leaves.visitBackwards(row, value, visit))
        }
        guard !isStopped, let packed = try packedAbove(lower, upTo: upper, knownTo: known) else { return }
        _ = try leaves.visitBackwards(packed.key.span, packed.value.span, visit)
    }

    // MARK: Keys

    private func isOfTree(_ key: Span<UInt8>) -> Bool {
        let prefix = prefix
        return key.begins(with: prefix.span)
    }

    /// The end of the key of a node's parent; nil for the root, a priority, and bytes that are no row's key.
    private func parentEnd(of key: Span<UInt8>) -> Int? {
        var start = prefix.count
        while start < key.count, key[start] != TreeKeyCodec.priorityMark,
            let end = TreeKeyCodec.endOfKey(in: key, from: start)
        {
            if end == key.count { return start }
            start = end
        }
        return nil
    }

    /// The lengths of the keys of nodes that are proper prefixes of `place` with more than `count` bytes.
    private func nodes(above place: Span<UInt8>, behind count: Int) -> [Int] {
        var ends: [Int] = []
        var end = prefix.count
        while end < place.count {
            if end > count { ends.append(end) }
            guard place[end] != TreeKeyCodec.priorityMark, let next = TreeKeyCodec.endOfKey(in: place, from: end) else {
                break
            }
            end = next
        }
        return ends
    }

    private static func shared(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Int {
        let limit = min(left.count, right.count)
        var index = 0
        while index < limit, left[index] == right[index] { index += 1 }
        return index
    }
}

/// The part of a scan inside packed nodes.
private struct PackedLeaves {
    /// Included: the start of the scan, or the target of a seek.
    var lower: [UInt8]
    /// Excluded.
    let upper: [UInt8]?
    /// Backwards: the target of a seek, included.
    var last: [UInt8]?
    /// The key of the visited leaf.
    private var key: [UInt8] = []

    init(lower: [UInt8], upper: [UInt8]?) {
        self.lower = lower
        self.upper = upper
    }

    /// The step after the row.
    mutating func visit(
        _ row: Span<UInt8>, _ value: Span<UInt8>, _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws -> TreeScanStep {
        begin(row)
        // The keys of the leaves begin with that of the row: most rows are compared with the bounds as a whole.
        var isCut = !row.isBehind(lower.span)
        let isUpperInside = upper.map { !$0.span.isBehind(row) || $0.span.begins(with: row) } ?? false
        var isSeeking = false
        var end = 1
        while let leaf = try PackedNode.next(in: value, after: &end) {
            place(value.extracting(leaf.key), behind: row.count)
            if isCut, lower.span.isBehind(key.span) { continue }
            if isUpperInside, let upper, !upper.span.isBehind(key.span) { return .stop }
            isSeeking = false
            switch try visit(key.span, value.extracting(leaf.value)) {
            case .next: break
            case .stop: return .stop
            case .seek(let target):
                lower = target
                isCut = true
                isSeeking = true
            }
        }
        // Rows after this one do not belong to the node.
        if !isSeeking || lower.span.begins(with: row) { return .next }
        return TreeKeyCodec.upperBound(of: row.copied) == lower ? .next : .seek(lower)
    }

    mutating func visitBackwards(
        _ row: Span<UInt8>, _ value: Span<UInt8>, _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws -> TreeScanStep {
        begin(row)
        var target: [UInt8]?
        for leaf in try PackedNode.leaves(in: value).reversed() {
            place(value.extracting(leaf.key), behind: row.count)
            if let last, key.span.isBehind(last.span) { continue }
            if let upper, !upper.span.isBehind(key.span) { continue }
            if lower.span.isBehind(key.span) { return .stop }
            target = nil
            switch try visit(key.span, value.extracting(leaf.value)) {
            case .next: break
            case .stop: return .stop
            case .seek(let place):
                last = place
                target = place
            }
        }
        guard let target, TreeKeyCodec.lastBefore(row.copied).span.isBehind(target.span) else { return .next }
        return .seek(target)
    }

    private mutating func begin(_ row: Span<UInt8>) {
        key.removeAll(keepingCapacity: true)
        row.withUnsafeBufferPointer { key.append(contentsOf: $0) }
    }

    private mutating func place(_ name: Span<UInt8>, behind count: Int) {
        key.removeLast(key.count - count)
        name.withUnsafeBufferPointer { key.append(contentsOf: $0) }
    }
}

extension Span<UInt8> {
    fileprivate var copied: [UInt8] { withUnsafeBufferPointer { Array($0) } }

    /// Whether it comes after `other` in the order of rows.
    func isBehind(_ other: Span<UInt8>) -> Bool {
        let order = compareShared(with: other)
        return order == 0 ? count > other.count : order > 0
    }
}
