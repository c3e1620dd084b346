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
    func locate(_ encodedPath: EncodedPath, isNew: Bool, isRemoval: Bool = false) throws -> LocatedNode {
        if isNew, encodedPath.path.depth > 0, let turn, try isFree(encodedPath, turn) {
            // For the root, the cache may be outdated: its last child may have been removed.
            return LocatedNode(existedDepth: encodedPath.path.depth - 1, rootIsThere: encodedPath.path.depth > 1)
        }
        if isRemoval {
            var located = LocatedNode(existedDepth: 0)
            guard try lookAt(encodedPath, &located) else { return located }
            located.packedDepth = try packedDepth(above: encodedPath, located)
            return located
        }
        var located = try look(for: encodedPath, isNew: isNew)
        located.packedDepth = try packedDepth(above: encodedPath, located)
        return located
    }

    /// The depth of the packed node that contains the path. It exists and contains only leaves: so it is the deepest
    /// existing node on the path, or its parent when that is a leaf.
    private func packedDepth(above encodedPath: EncodedPath, _ located: LocatedNode) throws -> Int? {
        var depth = located.existedDepth
        if let leafDepth = located.leafDepth {
            depth = leafDepth - 1
        } else if depth == encodedPath.path.depth {
            guard located.rowCount == 1, located.ownRow == nil else { return nil }
            depth -= 1
        }
        guard depth >= 0 else { return nil }
        return try reader.packed(at: encodedPath.key.span.extracting(0..<encodedPath.ends[depth])) == nil ? nil : depth
    }

    private func look(for encodedPath: EncodedPath, isNew: Bool) throws -> LocatedNode {
        var located = LocatedNode(existedDepth: 0)
        if isNew, encodedPath.path.depth > 0 {
            if try !lookBefore(encodedPath, &located) { return located }
            if located.existedDepth < encodedPath.path.depth {
                try lookBehind(encodedPath, &located)
                return located
            }
        }
        if try lookAt(encodedPath, &located) { return located }
        if try lookBefore(encodedPath, &located) { try lookBehind(encodedPath, &located) }
        return located
    }

    /// Whether the parent certainly has children, and the path is free. If not, the usual reads determine the state.
    private func isFree(_ encodedPath: EncodedPath, _ turn: Turn) throws -> Bool {
        if let isFree = turn.isFree(encodedPath) { return isFree }
        let parent = encodedPath.ends[encodedPath.path.depth - 1]
        var last: [UInt8]?
        try reader.scan(
            lower: codec.prefix, upper: encodedPath.upperBound(ofDepth: encodedPath.path.depth - 1), reverse: true
        ) { row, _ in
            guard encodedPath.sharedDepth(with: row) == encodedPath.path.depth - 1, row.count > parent,
                row[parent] != TreeKeyCodec.priorityMark, let end = TreeKeyCodec.endOfKey(in: row, from: parent)
            else { return .stop }
            last = row.extracting(parent..<end).withUnsafeBufferPointer { Array($0) }
            return .stop
        }
        // Writing into a packed node unpacks it.
        guard let last, last.lexicographicallyPrecedes(encodedPath.component(encodedPath.path.depth - 1)),
            try reader.packed(at: encodedPath.key.span.extracting(0..<parent)) == nil
        else { return false }
        turn.cacheGreatestChild(last, besides: encodedPath)
        return true
    }

    /// Reads the node; returns true when that is enough, because it exists. It reads nothing else: otherwise the
    /// transaction would have to see the rows that others of its group have just put beside the path.
    private func lookAt(_ encodedPath: EncodedPath, _ located: inout LocatedNode) throws -> Bool {
        let depth = encodedPath.path.depth
        if let value = try reader.stored.get(encodedPath.key.span) {
            located = try locatedRow(value, at: encodedPath)
            return true
        }
        var cursor = RowCursor(base: encodedPath.key)
        var builder: TreeNodeBuilder? = TreeNodeBuilder()
        var isKept = true
        var found = LocatedNode(existedDepth: 0)
        try reader.scan(lower: encodedPath.key, upper: encodedPath.upperBound, reverse: false) { row, value in
            found.rowCount += 1
            found.byteCount += row.count - encodedPath.key.count + value.count
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
            found.before = isKept ? try NodeReader(reader, codec: codec).node(at: encodedPath.path) : nil
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
    private func locatedRow(_ value: [UInt8], at encodedPath: EncodedPath) throws -> LocatedNode {
        var found = LocatedNode(existedDepth: encodedPath.path.depth)
        found.rootIsThere = true
        if PackedNode.isPacked(value.span) {
            found.ownRow = .packed
            let children = try PackedNode.children(in: value.span)
            found.rowCount = children.count
            found.byteCount = value.count
            if found.byteCount <= bytesMax { found.before = .object(TreeChildren(sorted: children)) }
        } else {
            found.ownRow = .leaf
            let priority = try reader.stored.get((encodedPath.key + [TreeKeyCodec.priorityMark]).span)
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
    private func lookBefore(_ encodedPath: EncodedPath, _ located: inout LocatedNode) throws -> Bool {
        let depth = encodedPath.path.depth
        var shared = 0
        var length = 0
        var isPriority = false
        try reader.scan(lower: codec.prefix, upper: encodedPath.upperBound, reverse: true) { row, _ in
            shared = encodedPath.sharedDepth(with: row)
            length = row.count
            isPriority = row[length - 1] == TreeKeyCodec.priorityMark
            return .stop
        }
        located.existedDepth = shared
        if length > 0 { located.rootIsThere = true }
        // The node itself exists and must be read, or nothing was found.
        if shared == depth { return true }
        if length == encodedPath.ends[shared] {
            located.leafDepth = shared
        } else if isPriority, length == encodedPath.ends[shared] + 1 {
            if try reader.get(encodedPath.key.span.extracting(0..<encodedPath.ends[shared])) != nil {
                located.leafDepth = shared
            }
        }
        return located.leafDepth == nil && shared < depth - 1
    }

    /// Reads the row after the path for ancestors that the row before it did not prove.
    private func lookBehind(_ encodedPath: EncodedPath, _ located: inout LocatedNode) throws {
        guard let lower = encodedPath.upperBound, located.existedDepth + 1 < encodedPath.path.depth else { return }
        var shared = located.existedDepth
        let upper = encodedPath.upperBound(ofDepth: shared + 1)
        try reader.scan(lower: lower, upper: upper, reverse: false) { row, _ in
            shared = max(shared, encodedPath.sharedDepth(with: row))
            return .stop
        }
        located.existedDepth = shared
    }
}
