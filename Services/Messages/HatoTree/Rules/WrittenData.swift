public import HatoModel
public import HatoRules

/// The tree after a write, for rules: the stored tree with the targets of the write laid over it. Nothing is copied;
/// each read uses the targets, the stored tree, or both.
///
/// No target is at or above another; `WritePlanner` guarantees that.
public struct WrittenData: RulesData {
    /// The relation of a path to the targets.
    private enum Relation {
        /// At or below a target, which determines all of it.
        case inside(TreeNode)
        /// Above these targets.
        case above(Range<Int>)
        case apart
    }

    private struct Target {
        var path: TreePath
        /// The common prefix of its rows; empty until it is needed when there is a single target, which is the usual
        /// case.
        var key: [UInt8]
        var node: TreeNode
    }

    private let stored: StoredData
    private let codec: TreeKeyCodec
    /// In the order of their keys, so that the targets below a path are adjacent.
    private let targets: [Target]
    /// What is known about the nodes above several targets; nil when there is one target, which is the usual case.
    private let ancestors: AncestorCache?
    /// Priorities that are set separately, by the path of their node.
    private let priorities: [TreePath: TreePriority?]

    /// The data as it is after `targets` are written over `stored`.
    public init(_ targets: [RulesTarget], over stored: StoredData) {
        self.stored = stored
        let codec = stored.nodes.codec
        self.codec = codec
        var nodes: [Target] = []
        var priorities: [TreePath: TreePriority?] = [:]
        nodes.reserveCapacity(targets.count)
        for target in targets {
            if target.path.isPriority {
                priorities.updateValue(target.node.leaf.flatMap(TreePriority.init), forKey: target.path.node)
            } else {
                let key = targets.count > 1 ? codec.key(of: target.path) : []
                nodes.append(Target(path: target.path, key: key, node: target.node))
            }
        }
        if nodes.count > 1 { nodes.sort { $0.key.lexicographicallyPrecedes($1.key) } }
        self.targets = nodes
        ancestors = nodes.count > 1 ? AncestorCache(of: nodes.lazy.map(\.node.isEmpty)) : nil
        self.priorities = priorities
    }

    public func leaf(at path: TreePath) throws -> TreeLeaf? {
        switch relation(of: path) {
        case .inside(let node): node.leaf
        case .above(let range): bringsSomething(range) ? nil : try stored.leaf(at: path)
        case .apart: try stored.leaf(at: path)
        }
    }

    public func exists(at path: TreePath) throws -> Bool {
        switch relation(of: path) {
        case .inside(let node): !node.isEmpty
        case .above(let range): try bringsSomething(range) || keepsSomething(at: path, without: range)
        case .apart: try stored.exists(at: path)
        }
    }

    public func hasChildren(at path: TreePath) throws -> Bool {
        switch relation(of: path) {
        case .inside(let node): return node.children != nil
        case .above(let range):
            if bringsSomething(range) { return true }
            return try stored.leaf(at: path) == nil && keepsSomething(at: path, without: range)
        case .apart: return try stored.hasChildren(at: path)
        }
    }

    public func priority(at path: TreePath) throws -> TreePriority? {
        if let priority = priorities[path] { return try exists(at: path) ? priority : nil }
        switch relation(of: path) {
        case .inside(let node): return node.priority
        case .above: return try exists(at: path) ? stored.priority(at: path) : nil
        case .apart: return try stored.priority(at: path)
        }
    }

    private func relation(of path: TreePath) -> Relation {
        if targets.count == 1 { return relation(of: path, to: targets[0]) }
        if targets.isEmpty { return .apart }
        let key = codec.key(of: path)
        let index = lowerBound(of: key)
        if index < targets.count, targets[index].key.starts(with: key) {
            if targets[index].key.count == key.count { return .inside(targets[index].node) }
            let end = TreeKeyCodec.upperBound(of: key).map { lowerBound(of: $0) } ?? targets.count
            return .above(index..<end)
        }
        // A target above the path is the previous one: no target is inside another.
        guard index > 0, key.starts(with: targets[index - 1].key) else { return .apart }
        let target = targets[index - 1]
        return .inside(target.node.node(at: path.keys[target.path.depth...]))
    }

    private func relation(of path: TreePath, to target: Target) -> Relation {
        let shared = target.path.sharedDepth(with: path)
        if shared == target.path.depth { return .inside(target.node.node(at: path.keys[shared...])) }
        return shared == path.depth ? .above(0..<1) : .apart
    }

    private func lowerBound(of key: [UInt8]) -> Int {
        var low = 0
        var high = targets.count
        while low < high {
            let middle = (low + high) / 2
            if targets[middle].key.lexicographicallyPrecedes(key) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Whether one of the targets is written with a value.
    private func bringsSomething(_ range: Range<Int>) -> Bool {
        guard let ancestors else { return targets[range].contains { !$0.node.isEmpty } }
        return ancestors.hasValues(in: range)
    }

    /// Whether any part of a stored node is left when the targets are removed. This may cost a seek for each of the
    /// targets, and the rules of the node are evaluated for each of them: so it is found out once.
    private func keepsSomething(at path: TreePath, without range: Range<Int>) throws -> Bool {
        guard let ancestors else { return try findsKept(at: path, without: range) }
        if let known = ancestors.keepsSomething[path] { return known }
        let found = try findsKept(at: path, without: range)
        ancestors.keepsSomething[path] = found
        return found
    }

    private func findsKept(at path: TreePath, without range: Range<Int>) throws -> Bool {
        let base = codec.key(of: path)
        var isFound = false
        var next = range.lowerBound
        try stored.nodes.scan(base) { row, _ in
            while next < range.upperBound {
                let removed = targets[next].key.isEmpty ? codec.key(of: targets[next].path) : targets[next].key
                if row.begins(with: removed.span) {
                    return TreeKeyCodec.upperBound(of: removed).map { .seek($0) } ?? .stop
                }
                // Rows and targets are both in order: a target before the row is done.
                guard removed.lexicographicallyPrecedes(row.withUnsafeBufferPointer { Array($0) }) else { break }
                next += 1
            }
            // A priority alone keeps no node.
            if codec.isPriority(row) { return .next }
            isFound = true
            return .stop
        }
        return isFound
    }
}

/// What `WrittenData` has found out about the nodes above its targets. One authoriser uses it, on one thread; it has at
/// most an entry for each node between the root and a target.
private final class AncestorCache {
    /// The number of targets before each one, and before the end, that are written with a value.
    private let valuesBefore: [Int]
    var keepsSomething: [TreePath: Bool] = [:]

    /// - Parameter removals: for each target, in order, whether it is removed.
    init(of removals: some Sequence<Bool>) {
        var count = 0
        valuesBefore =
            [0]
            + removals.map { isRemoved in
                if !isRemoved { count += 1 }
                return count
            }
    }

    func hasValues(in range: Range<Int>) -> Bool { valuesBefore[range.upperBound] > valuesBefore[range.lowerBound] }
}

extension TreeKeyCodec {
    /// Whether a row of this database is the priority of a node.
    func isPriority(_ row: Span<UInt8>) -> Bool {
        var start = prefix.count
        while start < row.count {
            if row[start] == TreeKeyCodec.priorityMark { return true }
            guard let end = TreeKeyCodec.endOfKey(in: row, from: start) else { return false }
            start = end
        }
        return false
    }
}
