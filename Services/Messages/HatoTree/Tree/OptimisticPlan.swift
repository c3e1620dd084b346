import HatoModel

/// A write that was planned before its turn, with the basis of the plan.
public struct OptimisticPlan: Sendable {
    /// What the write changes.
    public let plan: WritePlan
    /// The basis: the plan is valid as long as it has not changed.
    public let basis: PlanBasis
    /// The stored etag of the node for the write's etag condition.
    let storedEtag: StoredEtag?
    /// For a push whose key is taken: whether the stored node is what it pushes; nil: the key is free.
    let isStored: Bool?
}

/// The basis of a plan: what was at, above and below the written paths, and which of the nodes above them existed. As
/// long as no commit changes that, planning again would give the same result.
public struct PlanBasis: Sendable {
    /// The written nodes.
    private var written: Set<TreePath> = []
    /// The nodes above them.
    private var above: Set<TreePath> = []
    /// For removed nodes: the ancestors that lose their last child with them …
    private var vanished: Set<TreePath> = []
    /// … and the first ancestor that does not.
    private var remaining: Set<TreePath> = []

    init(_ targets: [TreePath], _ plan: WritePlan) {
        let changes = plan.changes
        // Their rows are replaced as they were read.
        written.formUnion(plan.unpacked)
        for target in targets {
            let node = target.node
            written.insert(node)
            for depth in (0..<node.depth).reversed() where !above.insert(node.prefix(depth)).inserted { break }
        }
        // Whatever else is written then, the root exists.
        if changes.contains(where: \.rootCameOrWent) { vanished.insert(.root) }
        // The priority of a leaf that becomes an object is part of the change.
        for change in changes { if let depth = change.replacedLeafDepth { written.insert(change.path.prefix(depth)) } }
        for change in changes where change.after?.isEmpty == true && !change.path.isPriority && !change.path.isRoot {
            remaining.insert(change.path.prefix(change.existsDepth))
            for depth in change.existsDepth + 1..<max(change.path.depth, change.existsDepth + 1) {
                vanished.insert(change.path.prefix(depth))
            }
        }
    }

    /// Whether a commit may change the result of the plan; also true where that would take long to determine.
    public func isTouched(by changes: [PathChange]) -> Bool { changes.contains(where: isTouched) }

    private func isTouched(by change: PathChange) -> Bool {
        let path = change.path.node
        if above.contains(path), !change.path.isPriority || !remaining.isEmpty { return true }
        if change.rootCameOrWent, above.contains(.root) { return true }
        let isRemoval = change.after?.isEmpty == true
        let (lower, upper) = (
            min(change.existedDepth, change.existsDepth), max(change.existedDepth, change.existsDepth)
        )
        for depth in 0...path.depth {
            let node = path.prefix(depth)
            if written.contains(node) || vanished.contains(node) { return true }
            if isRemoval, remaining.contains(node) { return true }
            // The commit created or removed this node, or it was a leaf.
            if lower < depth && depth <= upper || change.replacedLeafDepth == depth, above.contains(node) {
                return true
            }
        }
        return false
    }
}
