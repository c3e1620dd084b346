public import HatoModel

/// What a change keeps of a node whose values are too many to keep: all its keys, and of each value a fingerprint. It
/// tells which nodes were there, and which of them a write has changed, without what was in them.
///
/// Of a node with too many keys even for that, only the upper ones are kept, without fingerprints (`isShallow`): a node
/// in it may be *folded*, then what is below is not known. The limits are those of `SkeletonBudget`.
public struct NodeSkeleton: Sendable, Hashable {
    /// The node with a number in the place of each value and priority: its fingerprint. In a shallow one every leaf is
    /// a boolean, true where a node is folded.
    let tree: TreeNode
    let isShallow: Bool

    private static let folded = TreeNode.leaf(.bool(true))
    private static let unread = TreeNode.leaf(.bool(false))

    /// Takes a tree as `tree` describes it.
    init(tree: TreeNode) {
        self.tree = tree
        var first = tree
        while let child = first.children?.first { first = child.node }
        if case .bool? = first.leaf { isShallow = true } else { isShallow = false }
    }

    /// The skeleton of a node at hand, for comparing it with one that was kept.
    public init(of node: TreeNode) {
        var budget = SkeletonBudget()
        self.init(of: node, &budget)
    }

    init(of node: TreeNode, _ budget: inout SkeletonBudget) {
        if budget.take(node) {
            self.init(tree: NodeSkeleton.fingerprinted(node))
        } else {
            self = NodeSkeleton(shallow: &budget) { path, keysMax in
                let children = node.node(at: path).children
                guard let children else { return [] }
                return children.count <= keysMax ? children.map(\.key) : nil
            }
        }
    }

    /// Of a leaf at hand as its rows; it takes no look at them to know that nothing is below.
    init(of leaf: LocatedNode.LeafRows, _ budget: inout SkeletonBudget) {
        let (rows, bytes) = (leaf.priority == nil ? 1 : 2, leaf.value.count + (leaf.priority?.count ?? 0))
        guard rows <= budget.rows, bytes <= budget.rowBytes else {
            self.init(tree: NodeSkeleton.unread)
            return
        }
        budget.rows -= rows
        budget.rowBytes -= bytes
        let priority = leaf.priority.map { TreePriority.number(NodeSkeleton.fingerprint($0.span)) }
        self.init(tree: .leaf(.number(NodeSkeleton.fingerprint(leaf.value.span)), priority: priority))
    }

    /// The upper keys of a node, breadth first.
    ///
    /// - Parameter childKeys: the keys of the children of the node at a path; nil when there are more than it is told.
    init(
        shallow budget: inout SkeletonBudget, childKeys: (_ path: TreePath, _ keysMax: Int) throws -> [TreeKey]?
    ) rethrows {
        var found: [TreePath: [TreeKey]] = [:]
        var queue = [TreePath.root]
        var next = 0
        while next < queue.count, budget.keys > 0 {
            let path = queue[next]
            next += 1
            let keysMax = min(budget.keys, SkeletonBudget.childrenMax)
            let keys = try childKeys(path, keysMax)
            budget.keys -= max(keys?.count ?? keysMax, 1)
            guard let keys else { continue }
            found[path] = keys
            queue += keys.map { TreePath(uncheckedKeys: path.keys + [$0]) }
        }
        tree = NodeSkeleton.assembled(.root, found)
        isShallow = true
    }

    private static func assembled(_ path: TreePath, _ found: [TreePath: [TreeKey]]) -> TreeNode {
        guard let keys = found[path] else { return folded }
        if keys.isEmpty { return unread }
        return .object(
            TreeChildren(
                sorted: keys.map { key in
                    TreeChild(key: key, node: assembled(TreePath(uncheckedKeys: path.keys + [key]), found))
                }))
    }

    private static func fingerprinted(_ node: TreeNode) -> TreeNode {
        let priority = node.priority.map { TreePriority.number(fingerprint(of: $0.leaf)) }
        switch node {
        case .empty: return .empty
        case .leaf(let leaf, _): return .leaf(.number(fingerprint(of: leaf)), priority: priority)
        case .object(let children, _):
            let children = children.map { TreeChild(key: $0.key, node: fingerprinted($0.node)) }
            return .object(TreeChildren(sorted: children), priority: priority)
        }
    }

    // MARK: Reading

    /// Nil where nothing was.
    public func child(_ key: TreeKey) -> NodeSkeleton? {
        let child = tree.child(key)
        return child.isEmpty ? nil : NodeSkeleton(tree: child)
    }

    /// In key order, empty for a leaf; nil: the node is folded.
    public var childKeys: [TreeKey]? {
        if tree == NodeSkeleton.folded { return nil }
        return tree.children?.map(\.key) ?? []
    }

    /// Whether a node below it may have a priority.
    var mayHavePrioritiesBelow: Bool {
        if isShallow { return childKeys?.isEmpty != true }
        return tree.children?.contains { NodeSkeleton.hasPriority($0.node) } ?? false
    }

    private static func hasPriority(_ node: TreeNode) -> Bool {
        node.priority != nil || node.children?.contains { hasPriority($0.node) } ?? false
    }

    /// Whether both are surely of the same node; false also when that cannot be told.
    public func isSurelySame(as other: NodeSkeleton) -> Bool { !isShallow && !other.isShallow && tree == other.tree }

    // MARK: Fingerprints

    static func fingerprint(of leaf: TreeLeaf) -> Double { fingerprint(TreeLeafCodec.encode(leaf).span) }

    /// Of the bytes of a row's value: an integer below 2^53. Stands in change records, so it stays as it is.
    ///
    /// Eight bytes a step (a removal may read megabytes on the writer's thread), ended like MurmurHash3. Two values
    /// have the same by a chance of one in 10^16, or by intent, which hides from followers only that the second took
    /// the place of the first.
    static func fingerprint(_ bytes: Span<UInt8>) -> Double {
        func mixed(_ hash: UInt64, _ word: UInt64) -> UInt64 {
            let product = (hash ^ word) &* 0xFF51_AFD7_ED55_8CCD
            return product ^ product >> 32
        }
        // The length goes through a step of its own: it tells values apart that end in zeros.
        var hash = mixed(0x9E37_79B9_7F4A_7C15, UInt64(bytes.count))
        bytes.withUnsafeBytes { raw in
            var index = 0
            while index + 8 <= raw.count {
                hash = mixed(hash, UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
                index += 8
            }
            var rest: UInt64 = 0
            for byte in raw[index...] { rest = rest << 8 | UInt64(byte) }
            hash = mixed(hash, rest)
        }
        hash = (hash ^ hash >> 33) &* 0xC4CE_B9FE_1A85_EC53
        return Double((hash ^ hash >> 33) >> 11)
    }
}

/// How much the skeletons of one write may take: of the writer's time, during which every other write waits, and of the
/// record.
///
/// Each limit is far above what a mebibyte of values needs, or a thousand matches, which is all that followers are told
/// one by one. Reading rows and taking their keys apart costs about a microsecond a row (some 0.15 for the step, 0.4 to
/// 0.6 for the keys), a jump to the next child some 2.3: all of it, with the mebibyte of rows that was read before one
/// knew that the node is large, stays under 50 ms.
public struct SkeletonBudget: Sendable {
    /// Rows, or values and priorities of a node at hand.
    public var rows = 12_288
    /// Bytes of rows that are read.
    public var rowBytes = 8 * 1024 * 1024
    /// Bytes of the keys that are kept.
    public var keyBytes = 4 * 1024 * 1024
    /// Keys of shallow skeletons.
    public var keys = 4_096
    /// A node with more children is folded in a shallow skeleton.
    static let childrenMax = 1_024

    public init() {}

    /// Takes what a node at hand needs; false, and nothing taken, when that is more than is left.
    mutating func take(_ node: TreeNode) -> Bool {
        var (rows, keyBytes) = (rows, keyBytes)
        guard SkeletonBudget.count(node, &rows, &keyBytes) else { return false }
        (self.rows, self.keyBytes) = (rows, keyBytes)
        return true
    }

    private static func count(_ node: TreeNode, _ rows: inout Int, _ keyBytes: inout Int) -> Bool {
        if node.leaf != nil { rows -= 1 }
        if node.priority != nil { rows -= 1 }
        guard rows >= 0, keyBytes >= 0 else { return false }
        for child in node.children ?? TreeChildren(sorted: []) {
            keyBytes -= child.key.text.utf8.count
            guard count(child.node, &rows, &keyBytes) else { return false }
        }
        return true
    }
}

extension NodeReader {
    /// The skeleton of the node at `path`, which is there: one scan of it, or the upper keys when it is too large.
    ///
    /// - Parameter rowsMin: so many rows it is known to have.
    func skeleton(at path: TreePath, _ budget: inout SkeletonBudget, rowsMin: Int = 1) throws -> NodeSkeleton {
        if rowsMin <= budget.rows, let whole = try wholeSkeleton(at: path, &budget) { return whole }
        return try NodeSkeleton(shallow: &budget) { below, keysMax in
            var keys: [TreeKey] = []
            try forEachChildKey(of: TreePath(uncheckedKeys: path.keys + below.keys)) { key in
                keys.append(key)
                return keys.count <= keysMax
            }
            return keys.count <= keysMax ? keys : nil
        }
    }

    /// Nil when the budget does not suffice; then the rows and bytes that were read are spent.
    private func wholeSkeleton(at path: TreePath, _ budget: inout SkeletonBudget) throws -> NodeSkeleton? {
        let base = codec.key(of: path)
        var cursor = RowCursor(base: base)
        var builder: TreeNodeBuilder? = TreeNodeBuilder()
        var left = budget
        try scan(base) { row, value in
            left.rows -= 1
            left.rowBytes -= row.count - base.count + value.count
            let kept = try cursor.advance(to: row)
            left.keyBytes -= cursor.newBytes(after: kept)
            guard left.rows >= 0, left.rowBytes >= 0, left.keyBytes >= 0 else {
                builder = nil
                return .stop
            }
            try builder?.append(.number(NodeSkeleton.fingerprint(value)), at: cursor, kept: kept)
            return .next
        }
        if builder == nil { left.keyBytes = budget.keyBytes }
        budget = left
        budget.rows = max(budget.rows, 0)
        return builder.map { NodeSkeleton(tree: $0.finish()) }
    }
}
