import HatoModel

extension QueryRunner {
    /// The part of the key order that a query selects.
    struct KeyRange {
        var start: TreeQuery.KeyCut
        var end: TreeQuery.KeyCut

        /// The range of a query by key.
        init(_ query: TreeQuery) {
            start = query.start?.key ?? .beforeAll
            end = query.end?.key ?? .afterAll
        }

        init(from start: TreeQuery.KeyCut, to end: TreeQuery.KeyCut) {
            self.start = start
            self.end = end
        }
    }

    // MARK: Key order

    /// Adds children in key order until enough are found, and skips their descendants.
    func addKeys(
        of path: TreePath, range: KeyRange, to found: inout Found,
        where isWanted: (TreeKey) throws -> Bool = { _ in true }
    ) throws {
        let base = nodes.codec.key(of: path)
        let (lower, upper) = bounds(base, range)
        guard !found.isFull, lower.lexicographicallyPrecedes(upper) else { return }
        let query = TreeQuery(order: .key, start: .init(.null, range.start), end: .init(.null, range.end))
        var child: [UInt8] = []
        try nodes.reader.scan(lower: lower, upper: upper, reverse: found.isReverse) { row, _ in
            // A step costs a tenth of a seek, and most children that are no leaves have more than two rows.
            if !child.isEmpty, row.begins(with: child.span) {
                return TreeKeyCodec.upperBound(of: child).map { .seek($0) } ?? .stop
            }
            guard let end = TreeKeyCodec.endOfKey(in: row, from: base.count),
                let key = TreeKeyCodec.decode(row.extracting(base.count..<end))
            else { throw TreeError.corrupted("a row whose key cannot be read") }
            let sortKey = SortKey(.null, key)
            if query.contains(sortKey), try isWanted(key) {
                try found.add(sortKey)
                if found.isFull { return .stop }
            }
            child.removeAll(keepingCapacity: true)
            row.extracting(0..<end).withUnsafeBufferPointer { child.append(contentsOf: $0) }
            guard found.isReverse else { return .next }
            defer { child.removeAll(keepingCapacity: true) }
            return .seek(TreeKeyCodec.lastBefore(child))
        }
    }

    private func bounds(_ base: [UInt8], _ range: KeyRange) -> (lower: [UInt8], upper: [UInt8]) {
        var lower = base
        switch range.start {
        case .before(let key) where TreeKeyCodec.keepsOrder(key):
            TreeKeyCodec.append(key, to: &lower)
        case .after(let key) where TreeKeyCodec.keepsOrder(key):
            TreeKeyCodec.append(key, to: &lower)
            lower = TreeKeyCodec.upperBound(of: lower) ?? lower
        case .afterAll: lower.append(0xFF)
        case .before, .after, .beforeAll: lower.append(TreeKeyCodec.priorityMark + 1)
        }
        var upper = base
        switch range.end {
        case .before(let key) where TreeKeyCodec.keepsOrder(key):
            TreeKeyCodec.append(key, to: &upper)
        case .after(let key) where TreeKeyCodec.keepsOrder(key):
            TreeKeyCodec.append(key, to: &upper)
            upper = TreeKeyCodec.upperBound(of: upper) ?? upper
        case .beforeAll: upper.append(TreeKeyCodec.priorityMark + 1)
        case .before, .after, .afterAll: upper.append(0xFF)
        }
        return (lower, upper)
    }

    // MARK: Index order

    /// Adds children in the order of index rows until enough are found.
    func addRows(of collection: [UInt8], at path: TreePath, to found: inout Found) throws {
        let query = found.query
        let bounds = IndexKeyCodec.bounds(collection, query)
        guard !found.isFull, bounds.lower.lexicographicallyPrecedes(bounds.upper) else { return }
        if bounds.isExact, try addNewest(of: collection, upTo: bounds.upper, to: &found) { return }
        var ties = Ties(found.rest)
        // If a text among these rows is truncated, a forward read would end there each time.
        var isPlain = true
        try nodes.reader.scan(lower: bounds.lower, upper: bounds.upper, reverse: found.isReverse) { row, _ in
            guard let entry = IndexKeyCodec.decode(row, from: collection.count) else {
                throw TreeError.corrupted("an index row that cannot be read")
            }
            if !ties.isEmpty, !entry.isTruncated || ties.text != entry.sortKey.value {
                try settle(&ties, into: &found)
                if found.isFull { return .stop }
            }
            if entry.isTruncated {
                isPlain = false
                ties.text = entry.sortKey.value
                if let sortKey = try sortKey(of: entry.sortKey.key, at: path, in: query), query.contains(sortKey) {
                    try ties.sortKeys.add(sortKey)
                }
                return .next
            }
            if bounds.isExact || query.contains(entry.sortKey) { try found.add(entry.sortKey) }
            guard found.isFull else { return .next }
            if isPlain, let newest, let limit = newest.limit(of: query) {
                newest.note(row, startOf: collection, limit)
            }
            return .stop
        }
        try settle(&ties, into: &found)
    }

    /// Rows whose texts have the same beginning: their order is that of the whole texts.
    private struct Ties {
        var text: SortValue?
        var sortKeys: LimitSelection

        init(_ sortKeys: LimitSelection) { self.sortKeys = sortKeys }

        var isEmpty: Bool { sortKeys.isEmpty }
    }

    private func settle(_ ties: inout Ties, into found: inout Found) throws(TreeError) {
        let sortKeys = try ties.sortKeys.inOrder()
        for sortKey in found.isReverse ? sortKeys.reversed() : sortKeys where !found.isFull { try found.add(sortKey) }
        ties = Ties(found.rest)
    }

    // MARK: Priority order

    /// Children without a priority come before all others, in key order.
    func addByPriority(at path: TreePath, to found: inout Found) throws {
        let collection = indexCodec.prefix(of: IndexKeyCodec.priorities, collection: path.keys)
        if found.isReverse {
            try addRows(of: collection, at: path, to: &found)
            try addWithoutPriority(at: path, to: &found)
        } else {
            try addWithoutPriority(at: path, to: &found)
            try addRows(of: collection, at: path, to: &found)
        }
    }

    private func addWithoutPriority(at path: TreePath, to found: inout Found) throws {
        var range = KeyRange(from: .beforeAll, to: .afterAll)
        if let start = found.query.start {
            guard start.value == .null else { return }
            range.start = start.key
        }
        if let end = found.query.end, end.value == .null { range.end = end.key }
        try addKeys(of: path, range: range, to: &found) { key in
            try nodes.priority(at: TreePath(uncheckedKeys: path.keys + [key])) == nil
        }
    }
}

extension TreeKeyCodec {
    /// A key after every row before `prefix` and before every row that begins with it; `prefix` is the encoded keys of
    /// a node.
    static func lastBefore(_ prefix: [UInt8]) -> [UInt8] {
        var bytes = prefix
        guard let last = bytes.popLast() else { return [] }
        // A row before X 00 is X at most; a row before X n begins with at most X n-1, and no row continues with FF.
        if last > 0 {
            bytes.append(last - 1)
            bytes.append(0xFF)
        }
        return bytes
    }
}
