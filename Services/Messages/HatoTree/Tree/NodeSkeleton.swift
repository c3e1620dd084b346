public import HatoModel

/// The part that a change keeps of a node whose values are too large: all its keys, and a fingerprint of each value. It
/// shows which nodes existed, and which of them a write has changed, without their values.
///
/// Of a node with too many keys even for that, only the upper ones are kept, without fingerprints (`isShallow`): a node
/// in it may be *folded*, then its children are unknown. The limits are those of `SkeletonBudget`.
public struct NodeSkeleton: Sendable, Hashable {
    /// The node with a number in place of each value and priority: its fingerprint. In a shallow skeleton every leaf is
    /// a boolean, true where a node is folded.
    let tree: TreeNode
    let isShallow: Bool

    private static let folded = TreeNode.leaf(.bool(true))
    private static let unread = TreeNode.leaf(.bool(false))

    /// Takes a tree in the form of `tree`.
    init(tree: TreeNode) {
        self.tree = tree
        var first = tree
        while let child = first.children?.first { first = child.node }
        if case .bool? = first.leaf { isShallow = true } else { isShallow = false }
    }

    /// The skeleton of a node in memory, for comparing it with a stored one.
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

    /// The skeleton of a leaf from its rows, without reading that nothing is below.
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
    /// - Parameter childKeys: the keys of the children of the node at a path; nil when there are more than `keysMax`.
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

    /// Nil when there is no child.
    public func child(_ key: TreeKey) -> NodeSkeleton? {
        let child = tree.child(key)
        return child.isEmpty ? nil : NodeSkeleton(tree: child)
    }

    /// The keys in key order, empty for a leaf; nil: the node is folded.
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

    /// Whether both certainly describe equal nodes; false also when that is unknown.
    public func isSurelySame(as other: NodeSkeleton) -> Bool { !isShallow && !other.isShallow && tree == other.tree }

    // MARK: Fingerprints

    static func fingerprint(of leaf: TreeLeaf) -> Double { fingerprint(TreeLeafCodec.encode(leaf).span) }

    /// The fingerprint of a row's value: an integer below 2^53. It is part of change records, so it must not change.
    ///
    /// Eight bytes a step (a removal may read megabytes on the writer's thread), finished like MurmurHash3. Two values
    /// have the same fingerprint with a probability of one in 10^16, or by intent; that only hides from followers that
    /// the second replaced the first.
    static func fingerprint(_ bytes: Span<UInt8>) -> Double {
        func mixed(_ hash: UInt64, _ word: UInt64) -> UInt64 {
            let product = (hash ^ word) &* 0xFF51_AFD7_ED55_8CCD
            return product ^ product >> 32
        }
        // The length is mixed in its own step: it distinguishes values that end in zeros.
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

/// The limits of the skeletons of one write: of the writer's time, during which every other write waits, and of the
/// record.
///
/// Each limit is far above the need of a mebibyte of values, or of a thousand matches, the maximum that followers are
/// sent individually. Reading rows and decoding their keys costs about a microsecond per row (some 0.15 for the step,
/// 0.4 to 0.6 for the keys), a seek to the next child some 2.3: all of it, with the mebibyte of rows that was read
/// before the node was known to be large, takes less than 50 ms.
public struct SkeletonBudget: Sendable {
    /// Rows, or values and priorities of a node in memory.
    public var rows = 12_288
    /// Bytes of rows to read.
    public var rowBytes = 8 * 1024 * 1024
    /// Bytes of keys to keep.
    public var keyBytes = 4 * 1024 * 1024
    /// Keys of shallow skeletons.
    public var keys = 4_096
    /// A node with more children is folded in a shallow skeleton.
    static let childrenMax = 1_024

    public init() {}

    /// Deducts the need of a node in memory; returns false, without deducting, when that exceeds the rest.
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
    /// The skeleton of the existing node at `path`: one scan of it, or the upper keys when it is too large.
    ///
    /// - Parameter rowsMin: a known lower bound of its number of rows.
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

    /// Nil when the budget is not enough; the rows and bytes that were read are deducted.
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
