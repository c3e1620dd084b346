import HatoModel

/// Finds out what is stored at a path before a write, in as few reads as possible.
struct NodeLocator {
    let reader: TreeRows
    let codec: TreeKeyCodec
    /// Nil before the turn of the write.
    let turn: Turn?
    /// A larger node is not kept.
    let bytesMax: Int
    let budget: ReplacementBudget

    /// Reads the node at a path, which of its ancestors exist, and whether one of them is a leaf.
    ///
    /// Usually this takes one seek. Only a priority can be stored between a leaf and a path below it, so the row before
    /// the path shows a leaf above it; and a row next to the path with the same parent proves all its ancestors. For a
    /// path that is expected to be new (a push: the greatest key of its parent) the row before is looked up first,
    /// otherwise the node itself with the row after it. The cache of parents saves even that for a push.
    ///
    /// - Parameter isRemoval: whether it is enough to know that the node is missing, without its ancestors: beside
    ///   removed nodes are their tombstones, and a read of the row before the path may have to step over all of them.
    func locate(_ place: EncodedPath, isNew: Bool, isRemoval: Bool = false) throws -> LocatedNode {
        if isNew, place.path.depth > 0, let turn, try isFree(place, turn) {
            // For the root, the cache may be outdated: its last child may have been removed.
            return LocatedNode(existedDepth: place.path.depth - 1, rootIsThere: place.path.depth > 1)
        }
        if isRemoval {
            var located = LocatedNode(existedDepth: 0)
            guard try lookAt(place, &located) else { return located }
            located.packedDepth = try packedDepth(above: place, located)
            return located
        }
        var located = try look(for: place, isNew: isNew)
        located.packedDepth = try packedDepth(above: place, located)
        return located
    }

    /// The depth of the packed node that contains the path. It exists and contains only leaves: so it is the deepest
    /// existing node on the path, or its parent when that is a leaf.
    private func packedDepth(above place: EncodedPath, _ located: LocatedNode) throws -> Int? {
        var depth = located.existedDepth
        if let leafDepth = located.leafDepth {
            depth = leafDepth - 1
        } else if depth == place.path.depth {
            guard located.rowCount == 1, located.ownRow == nil else { return nil }
            depth -= 1
        }
        guard depth >= 0 else { return nil }
        return try reader.packed(at: place.key.span.extracting(0..<place.ends[depth])) == nil ? nil : depth
    }

    private func look(for place: EncodedPath, isNew: Bool) throws -> LocatedNode {
        var located = LocatedNode(existedDepth: 0)
        if isNew, place.path.depth > 0 {
            if try !lookBefore(place, &located) { return located }
            if located.existedDepth < place.path.depth {
                try lookBehind(place, &located)
                return located
            }
        }
        if try lookAt(place, &located) { return located }
        if try lookBefore(place, &located) { try lookBehind(place, &located) }
        return located
    }

    /// Whether the parent certainly has children, and the path is free. If not, the usual reads determine the state.
    private func isFree(_ place: EncodedPath, _ turn: Turn) throws -> Bool {
        if let isFree = turn.isFree(place) { return isFree }
        let parent = place.ends[place.path.depth - 1]
        var last: [UInt8]?
        try reader.scan(
            lower: codec.prefix, upper: place.upperBound(ofDepth: place.path.depth - 1), reverse: true
        ) { row, _ in
            guard place.sharedDepth(with: row) == place.path.depth - 1, row.count > parent,
                row[parent] != TreeKeyCodec.priorityMark, let end = TreeKeyCodec.endOfKey(in: row, from: parent)
            else { return .stop }
            last = row.extracting(parent..<end).withUnsafeBufferPointer { Array($0) }
            return .stop
        }
        // Writing into a packed node unpacks it.
        guard let last, last.lexicographicallyPrecedes(place.component(place.path.depth - 1)),
            try reader.packed(at: place.key.span.extracting(0..<parent)) == nil
        else { return false }
        turn.cacheGreatestChild(last, besides: place)
        return true
    }

    /// Reads the node; returns true when that is enough, because it exists. It reads nothing else: otherwise the
    /// transaction would have to see the rows that others of its group have just put beside the path.
    private func lookAt(_ place: EncodedPath, _ located: inout LocatedNode) throws -> Bool {
        let depth = place.path.depth
        if let value = try reader.stored.get(place.key.span) {
            located = try locatedRow(value, at: place)
            return true
        }
        var cursor = RowCursor(base: place.key)
        var builder: TreeNodeBuilder? = TreeNodeBuilder()
        var isKept = true
        var found = LocatedNode(existedDepth: 0)
        try reader.scan(lower: place.key, upper: place.upperBound, reverse: false) { row, value in
            found.rowCount += 1
            found.byteCount += row.count - place.key.count + value.count
            if found.byteCount > budget.keptBytesMax(bytesMax, rows: found.rowCount) {
                (builder, isKept) = (nil, false)
                found.isWhole =
                    found.rowCount <= budget.singleDeletesMax && found.byteCount <= budget.countedBytes
                return found.isWhole ? .next : .stop
            }
            guard found.rowCount <= Self.builtAtOnceMax else {
                builder = nil
                return .next
            }
            let kept = try cursor.advance(to: row)
            try builder?.append(value, at: cursor, kept: kept)
            return .next
        }
        if let builder {
            found.before = builder.finish()
        } else {
            found.before = isKept ? try NodeReader(reader, codec: codec).node(at: place.path) : nil
        }
        found.existedDepth = found.rowCount > 0 ? depth : 0
        found.rootIsThere = found.rowCount > 0
        located = found
        return found.rowCount > 0 || depth == 0
    }

    /// The rows of a larger node are counted first: most are too large to keep, and building the node takes three times
    /// as long as counting.
    private static let builtAtOnceMax = 2_048

    /// A replaced node is usually one row, and a look-up costs a quarter of starting a scan.
    private func locatedRow(_ value: [UInt8], at place: EncodedPath) throws -> LocatedNode {
        var found = LocatedNode(existedDepth: place.path.depth)
        found.rootIsThere = true
        if PackedNode.isPacked(value.span) {
            found.ownRow = .packed
            let children = try PackedNode.children(in: value.span)
            found.rowCount = children.count
            found.byteCount = value.count
            if found.byteCount <= bytesMax { found.before = .object(TreeChildren(sorted: children)) }
        } else {
            found.ownRow = .leaf
            let priority = try reader.stored.get((place.key + [TreeKeyCodec.priorityMark]).span)
            found.rowCount = priority == nil ? 1 : 2
            found.byteCount = value.count + (priority?.count ?? 0)
            if found.byteCount <= bytesMax {
                let leaf = try TreeLeafCodec.decode(value.span)
                found.before = .leaf(
                    leaf, priority: try priority.flatMap { TreePriority(try TreeLeafCodec.decode($0.span)) })
            } else {
                found.largeLeaf = LocatedNode.LeafRows(value: value, priority: priority)
            }
        }
        if found.byteCount > bytesMax { found.before = nil }
        return found
    }

    /// Reads the row before the path (or its last one); returns false when that is enough.
    private func lookBefore(_ place: EncodedPath, _ located: inout LocatedNode) throws -> Bool {
        let depth = place.path.depth
        var shared = 0
        var length = 0
        var isPriority = false
        try reader.scan(lower: codec.prefix, upper: place.upperBound, reverse: true) { row, _ in
            shared = place.sharedDepth(with: row)
            length = row.count
            isPriority = row[length - 1] == TreeKeyCodec.priorityMark
            return .stop
        }
        located.existedDepth = shared
        if length > 0 { located.rootIsThere = true }
        // The node itself exists and must be read, or nothing was found.
        if shared == depth { return true }
        if length == place.ends[shared] {
            located.leafDepth = shared
        } else if isPriority, length == place.ends[shared] + 1 {
            if try reader.get(place.key.span.extracting(0..<place.ends[shared])) != nil { located.leafDepth = shared }
        }
        return located.leafDepth == nil && shared < depth - 1
    }

    /// Reads the row after the path for ancestors that the row before it did not prove.
    private func lookBehind(_ place: EncodedPath, _ located: inout LocatedNode) throws {
        guard let lower = place.upperBound, located.existedDepth + 1 < place.path.depth else { return }
        var shared = located.existedDepth
        let upper = place.upperBound(ofDepth: shared + 1)
        try reader.scan(lower: lower, upper: upper, reverse: false) { row, _ in
            shared = max(shared, place.sharedDepth(with: row))
            return .stop
        }
        located.existedDepth = shared
    }
}
