import HatoModel

/// A write that was planned before its turn, with what the plan rests on.
public struct AheadPlan: Sendable {
    /// What the write changes.
    public let plan: WritePlan
    /// What the plan rests on: it holds as long as that has not changed.
    public let basis: PlanBasis
    /// Of the node that the write's etag is compared with.
    let storedEtag: StoredEtag?
}

/// What a plan rests on: what was at, above and below the places that it writes, and which of the nodes above them were
/// there. As long as no commit touches that, planning again would give the same.
public struct PlanBasis: Sendable {
    /// The written nodes.
    private var places: Set<TreePath> = []
    /// The nodes above them.
    private var above: Set<TreePath> = []
    /// Of nodes that are removed: the nodes above that lose their last child with them …
    private var vanished: Set<TreePath> = []
    /// … and the first that does not.
    private var remaining: Set<TreePath> = []
    /// The nodes whose rows the plan replaces as it found them.
    let unpacked: [TreePath]

    init(_ targets: [TreePath], _ changes: [PathChange], unpacked: some Sequence<TreePath>) {
        self.unpacked = Array(unpacked)
        places.formUnion(unpacked)
        for target in targets {
            let node = target.node
            places.insert(node)
            for depth in (0..<node.depth).reversed() where !above.insert(node.prefix(depth)).inserted { break }
        }
        // Whatever else is written then, the root is there.
        if changes.contains(where: \.rootCameOrWent) { vanished.insert(.root) }
        // The priority of a leaf that becomes an object is told with it.
        for change in changes { if let depth = change.replacedLeafDepth { places.insert(change.path.prefix(depth)) } }
        for change in changes where change.after?.isEmpty == true && !change.path.isPriority && !change.path.isRoot {
            remaining.insert(change.path.prefix(change.existsDepth))
            for depth in change.existsDepth + 1..<max(change.path.depth, change.existsDepth + 1) {
                vanished.insert(change.path.prefix(depth))
            }
        }
    }

    /// Whether a plan may come out otherwise after a commit; true also where that would take long to tell.
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
            if places.contains(node) || vanished.contains(node) { return true }
            if isRemoval, remaining.contains(node) { return true }
            // The commit made this node, or it is gone by it, or it was a leaf.
            if lower < depth && depth <= upper || change.replacedLeafDepth == depth, above.contains(node) {
                return true
            }
        }
        return false
    }
}
