import HatoModel

/// A write plan in the making.
struct PlanDraft {
    /// Replaced nodes with more rows than this are deleted by range: a range tombstone slows every read near it, so it
    /// must be worthwhile (measured: many small ones slow reads down severely).
    static let singleDeletesMax = 1024
    /// Replaced nodes are kept for listeners, indexes and followers up to this many bytes in one write; of larger ones
    /// a skeleton.
    static let beforeBytesMax = 1024 * 1024
    /// A node up to this size is kept whole when only its priority changes: reordering a list must not cost its
    /// contents.
    static let standingBytesMax = 16 * 1024

    let reader: TreeRows
    let codec: TreeKeyCodec
    /// Nil before the turn of the write.
    private let turn: Turn?
    var rows = RowBatch()
    var changes: [PathChange] = []
    /// The key of the row being written.
    private var key: [UInt8] = []
    /// The remaining bytes for replaced nodes.
    private(set) var beforeBytesLeft: Int
    private var budget: ReplacementBudget
    var skeletons = SkeletonBudget()

    /// The keys of the leaves that became objects and are part of the changes.
    private var replacedLeaves: Set<[UInt8]> = []

    /// The packed nodes that were unpacked because a part of them is written: by the keys of their rows.
    private var unpacked: [[UInt8]: TreePath] = [:]

    /// Whether a located path has shown that the tree was not empty.
    private var rootIsThere = false

    /// The key of a missing node, and the location for paths in it.
    private var absent: (key: [UInt8], located: LocatedNode)?

    init(
        reader: any TreeReader, codec: TreeKeyCodec, turn: Turn?, beforeBytesMax: Int, rowsInTurnMax: Int
    ) {
        beforeBytesLeft = beforeBytesMax
        budget = ReplacementBudget(rowsInTurn: rowsInTurnMax)
        self.reader = TreeRows(reader, codec: codec)
        self.codec = codec
        self.turn = turn
        rows.reserve(operations: 4, bytes: Self.rowBytesExpected)
    }

    func plan(at time: Int64) -> WritePlan {
        WritePlan(rows: rows, changes: changes, time: time, etag: nil, unpacked: Array(unpacked.values))
    }

    /// A message with its index row fits without reallocation.
    private static let rowBytesExpected = 512

    mutating func write(_ targets: [WriteTarget]) throws {
        for index in targets.indices where !targets[index].path.isPriority {
            let target = targets[index]
            guard budget.rowsInTurn > 0 else { throw TooLargeForTurn() }
            let encodedPath = EncodedPath(target.path, codec)
            let located =
                target.node.isEmpty
                ? try locate(encodedPath, isNew: false, isRemoval: true)
                : try locateOnce(encodedPath, isNew: target.isNew)
            try replace(encodedPath, located, with: target.node)
        }
        let vanished = try removeVanished()
        if targets.indices.contains(where: { targets[$0].path.isPriority }) {
            try setPriorities(targets, vanished: vanished)
        }
        try noteRoot(vanished: vanished)
        if targets.count > 1 { sortChanges(like: targets) }
    }

    /// A push with a key of the client; returns false when an earlier attempt has already written the same.
    mutating func push(_ target: WriteTarget, unless earlier: EarlierPush) throws -> Bool {
        let encodedPath = EncodedPath(target.path, codec)
        let located = try locate(encodedPath, isNew: true)
        guard located.existedDepth == target.path.depth else {
            try replace(encodedPath, located, with: target.node)
            try noteRoot(vanished: [])
            return true
        }
        let isSame = try earlier.isSame(as: target) {
            try located.before ?? NodeReader(reader, codec: codec).node(at: target.path, bytesMax: $0)
        }
        guard isSame else { throw TreeError.keyExists(target.path) }
        return false
    }

    private func locate(_ encodedPath: EncodedPath, isNew: Bool, isRemoval: Bool = false) throws -> LocatedNode {
        try NodeLocator(reader: reader, codec: codec, turn: turn, bytesMax: beforeBytesLeft, budget: budget)
            .locate(encodedPath, isNew: isNew, isRemoval: isRemoval)
    }

    /// Nothing exists below a node that is known to be missing: an import of new nodes reads once for each of them.
    private mutating func locateOnce(_ encodedPath: EncodedPath, isNew: Bool) throws -> LocatedNode {
        if let absent, encodedPath.key.starts(with: absent.key) { return absent.located }
        let located = try locate(encodedPath, isNew: isNew)
        if located.existedDepth < encodedPath.path.depth {
            absent = (encodedPath.ancestor(located.existedDepth + 1), located)
        }
        return located
    }

    // MARK: Nodes

    private mutating func replace(_ encodedPath: EncodedPath, _ located: LocatedNode, with after: TreeNode) throws {
        let depth = encodedPath.path.depth
        budget.take(located)
        if located.rootIsThere { rootIsThere = true }
        var skeleton: NodeSkeleton?
        if let before = located.before {
            if before == after { return }
            beforeBytesLeft -= located.byteCount
        } else {
            skeleton = try self.skeleton(at: encodedPath, located)
        }
        if let depth = located.packedDepth { try unpack(encodedPath.ancestor(depth), encodedPath.path.prefix(depth)) }
        if let leafDepth = located.leafDepth { rows.delete(encodedPath.key[..<encodedPath.ends[leafDepth]]) }
        key = encodedPath.key
        if located.existedDepth < depth || located.rowCount == 0 {
            put(after)
        } else {
            try replaceRows(encodedPath, located, with: after)
        }
        var change = PathChange(
            path: encodedPath.path, before: located.before, after: after,
            depths: (located.existedDepth, after.isEmpty ? 0 : depth), replacedLeafDepth: located.leafDepth)
        if let skeleton { change.beforeSkeleton = skeleton }
        if let leafDepth = located.leafDepth { change.standing = try replacedLeaf(encodedPath, depth: leafDepth) }
        changes.append(change)
    }

    private mutating func skeleton(at encodedPath: EncodedPath, _ located: LocatedNode) throws -> NodeSkeleton {
        if let rows = located.largeLeaf { return NodeSkeleton(of: rows, &skeletons) }
        return try NodeReader(reader, codec: codec).skeleton(
            at: encodedPath.path, &skeletons, rowsMin: located.rowCount)
    }

    /// A leaf that becomes an object because of writes below it; returned once for all of them.
    private mutating func replacedLeaf(_ encodedPath: EncodedPath, depth: Int) throws -> TreeNode? {
        let (nodes, path) = (NodeReader(reader, codec: codec), encodedPath.path.prefix(depth))
        guard replacedLeaves.insert(encodedPath.ancestor(depth)).inserted, let leaf = try nodes.leaf(at: path) else {
            return nil
        }
        let node = TreeNode.leaf(leaf, priority: try nodes.priority(at: path))
        guard node.byteCount <= beforeBytesLeft else { return nil }
        beforeBytesLeft -= node.byteCount
        return node
    }

    private mutating func replaceRows(_ encodedPath: EncodedPath, _ located: LocatedNode, with after: TreeNode) throws {
        if located.ownRow == .packed { return replaceRow(with: after) }
        if let leaf = located.largeLeaf {
            if leaf.priority != nil, after.priority == nil {
                var deletes = 1
                deletePriority(&deletes)
            }
            return replaceRow(with: after)
        }
        let isDeletedSingly = located.isWhole && located.rowCount <= budget.singleDeletesMax
        // The nodes of a removed object need not be compared with new ones.
        if let before = located.before, before.leaf != nil || !after.isEmpty || !isDeletedSingly {
            let mark = rows.mark
            var deletes = PlanDraft.singleDeletesMax
            if try replace(before, with: after, deletes: &deletes) { return }
            rows.truncate(to: mark)
            key = encodedPath.key
        } else if isDeletedSingly {
            if located.packedDepth == nil {
                budget.singleDeletes -= located.rowCount
                try deleteEachRow(of: encodedPath)
            } else {
                // Its row was put by this plan, when the node above was unpacked.
                rows.delete(encodedPath.key)
            }
            put(after)
            return
        }
        rows.deleteRange(encodedPath.key, encodedPath.upperBound)
        put(after)
    }

    private mutating func deleteEachRow(of encodedPath: EncodedPath) throws {
        var batch = rows
        rows = RowBatch()
        try reader.stored.scan(lower: encodedPath.key, upper: encodedPath.upperBound, reverse: false) { row, _ in
            batch.delete(row)
            return .next
        }
        rows = batch
    }

    /// Puts the rows of a node whose path is `key`.
    private mutating func put(_ node: TreeNode) {
        switch node {
        case .empty: return
        case .leaf(let leaf, let priority):
            rows.put(key, leaf)
            putPriority(priority)
        case .object(let children, let priority):
            if priority == nil, rows.put(key, packing: children) { return }
            putPriority(priority)
            for child in children { atChild(child.key) { $0.put(child.node) } }
        }
    }

    /// Writes only the rows that differ; returns false when that takes more than `deletes` deletions.
    private mutating func replace(_ before: TreeNode, with after: TreeNode, deletes: inout Int) throws -> Bool {
        if before.canBePacked, try reader.packed(at: key.span) != nil {
            deletes -= 1
            replaceRow(with: after)
            return deletes >= 0
        }
        if before.leaf != after.leaf {
            if let leaf = after.leaf { rows.put(key, leaf) } else { delete(&deletes) }
        }
        if before.priority != after.priority {
            if after.priority != nil { putPriority(after.priority) } else { deletePriority(&deletes) }
        }
        let (old, new) = (before.children ?? TreeChildren(sorted: []), after.children ?? TreeChildren(sorted: []))
        var (oldIndex, newIndex) = (0, 0)
        while oldIndex < old.count || newIndex < new.count {
            if deletes < 0 { return false }
            let order = PlanDraft.order(old, oldIndex, new, newIndex)
            if order < 0 {
                let child = old[oldIndex]
                var fits = true
                try atChild(child.key) { fits = try $0.replace(child.node, with: .empty, deletes: &deletes) }
                if !fits { return false }
            } else if order > 0 {
                let child = new[newIndex]
                atChild(child.key) { $0.put(child.node) }
            } else if old[oldIndex].node != new[newIndex].node {
                var fits = true
                try atChild(old[oldIndex].key) {
                    fits = try $0.replace(old[oldIndex].node, with: new[newIndex].node, deletes: &deletes)
                }
                if !fits { return false }
            }
            if order <= 0 { oldIndex += 1 }
            if order >= 0 { newIndex += 1 }
        }
        return deletes >= 0
    }

    /// Which of two lists of children comes first at the given indexes; a finished list comes last.
    private static func order(_ old: TreeChildren, _ oldIndex: Int, _ new: TreeChildren, _ newIndex: Int) -> Int {
        if newIndex == new.count { return -1 }
        if oldIndex == old.count { return 1 }
        return KeyOrder.compare(old[oldIndex].key.text, new[newIndex].key.text)
    }

    private mutating func atChild(_ child: TreeKey, _ body: (inout PlanDraft) throws -> Void) rethrows {
        let end = key.count
        TreeKeyCodec.append(child, to: &key)
        try body(&self)
        key.removeLast(key.count - end)
    }

    // MARK: Packed nodes

    /// Puts the replacement of a node that is one row, without its priority.
    private mutating func replaceRow(with after: TreeNode) {
        if case .object(let children, nil) = after, rows.put(key, packing: children) { return }
        // A leaf uses the same row.
        if after.leaf == nil { rows.delete(key) }
        put(after)
    }

    /// Puts the leaves of a packed node as rows of their own; writes to the node follow them.
    private mutating func unpack(_ node: [UInt8], _ path: TreePath) throws {
        guard unpacked[node] == nil, let value = try reader.packed(at: node.span) else { return }
        unpacked[node] = path
        rows.delete(node)
        var end = 1
        while let leaf = try PackedNode.next(in: value.span, after: &end) {
            let key = node + value[leaf.key]
            rows.put(key.span, value.span.extracting(leaf.value))
        }
    }

    private mutating func delete(_ deletes: inout Int) {
        rows.delete(key)
        deletes -= 1
    }

    private mutating func putPriority(_ priority: TreePriority?) {
        guard let priority else { return }
        key.append(TreeKeyCodec.priorityMark)
        rows.put(key, priority.leaf)
        key.removeLast()
    }

    private mutating func deletePriority(_ deletes: inout Int) {
        key.append(TreeKeyCodec.priorityMark)
        delete(&deletes)
        key.removeLast()
    }

    // MARK: Priorities

    private mutating func setPriorities(_ targets: [WriteTarget], vanished: Set<[UInt8]>) throws {
        var existedDepths: [[UInt8]: Int] = [:]
        for change in changes where change.after?.isEmpty == false {
            existedDepths[codec.key(of: change.path)] = change.existedDepth
        }
        let written = SortedKeys(Array(existedDepths.keys))
        let named = SortedKeys(targets.map { codec.key(of: $0.path.node) })
        for target in targets where target.path.isPriority {
            let key = codec.key(of: target.path.node)
            let nodes = NodeReader(reader, codec: codec)
            let existed = try nodes.exists(at: target.path.node)
            var existedDepth = target.path.depth
            if let below = written.first(beginningWith: key) {
                if !existed { existedDepth = min(existedDepth, existedDepths[written.keys[below]] ?? 0) }
            } else if !existed || vanished.contains(key) {
                continue
            }
            try setPriority(
                target, at: key, existedDepth: existedDepth, isAlone: named.countOfTwo(beginningWith: key) == 1)
        }
    }

    /// - Parameter isAlone: whether the write changes nothing else of the node.
    private mutating func setPriority(
        _ target: WriteTarget, at node: [UInt8], existedDepth: Int, isAlone: Bool
    ) throws {
        let path = target.path.node
        let before = try NodeReader(reader, codec: codec).priority(at: path)
        let after = target.node.leaf.flatMap(TreePriority.init)
        guard before != after else { return }
        // A priority has a row of its own, so its node needs one too.
        try unpack(node, path)
        if let parent = path.parent { try unpack(codec.key(of: parent), parent) }
        key = node
        var deletes = 1
        if after != nil { putPriority(after) } else { deletePriority(&deletes) }
        var change = PathChange(
            path: target.path, before: before.map { .leaf($0.leaf) } ?? .empty, after: target.node,
            depths: (existedDepth, path.depth))
        if isAlone { change.standing = try standingNode(at: path) }
        changes.append(change)
    }

    /// A node whose priority changes; nil when it is too large.
    private mutating func standingNode(at path: TreePath) throws -> TreeNode? {
        let bytesMax = min(Self.standingBytesMax, beforeBytesLeft)
        guard bytesMax > 0 else { return nil }
        do {
            let node = try NodeReader(reader, codec: codec).node(at: path, bytesMax: bytesMax)
            beforeBytesLeft = max(0, beforeBytesLeft - node.byteCount)
            return node.withPriority(nil)
        } catch TreeError.tooBig {
            beforeBytesLeft -= bytesMax
            return nil
        }
    }

    /// Restores the order of the request, since values are written before priorities.
    private mutating func sortChanges(like targets: [WriteTarget]) {
        guard targets.contains(where: \.path.isPriority), targets.contains(where: { !$0.path.isPriority }) else {
            return
        }
        var indexes: [TreePath: Int] = [:]
        for (index, target) in targets.enumerated() { indexes[target.path] = index }
        changes.sort { indexes[$0.path, default: 0] < indexes[$1.path, default: 0] }
    }

    // MARK: Nodes that vanish with their last child

    /// Deletes the priorities of nodes that lost their last child, sets the depth up to which that reached, and returns
    /// the keys of those nodes.
    private mutating func removeVanished() throws -> Set<[UInt8]> {
        let removes = changes.indices.contains { changes[$0].isRemoval && changes[$0].path.depth > 0 }
        guard removes else { return [] }
        let survey = try EmptiedNodeFinder(changes, reader: reader, codec: codec)
        for index in changes.indices where changes[index].isRemoval {
            changes[index].existsDepth = survey.remainingDepth(above: changes[index].path)
        }
        for node in survey.vanished {
            let row = node + [TreeKeyCodec.priorityMark]
            if try reader.get(row.span) != nil { rows.delete(row) }
        }
        return survey.vanished
    }

    // MARK: The root

    /// Runs before the changes are sorted: those of nodes come first.
    private mutating func noteRoot(vanished: Set<[UInt8]>) throws {
        if vanished.isEmpty, rootIsThere { return }
        guard let first = changes.first, first.path.depth > 0 else { return }
        if !vanished.contains(codec.key(of: .root)) {
            guard !rootIsThere, first.existedDepth == 0, first.replacedLeafDepth == nil, first.before?.isEmpty == true,
                try isTreeEmpty()
            else { return }
        }
        for index in changes.indices { changes[index].rootCameOrWent = true }
    }

    private func isTreeEmpty() throws -> Bool {
        let root = codec.key(of: .root)
        var isEmpty = true
        // From the end: where the oldest nodes are removed one by one, their tombstones are at the beginning.
        try reader.scan(lower: root, upper: TreeKeyCodec.upperBound(of: root), reverse: true) { _, _ in
            isEmpty = false
            return .stop
        }
        return isEmpty
    }
}
