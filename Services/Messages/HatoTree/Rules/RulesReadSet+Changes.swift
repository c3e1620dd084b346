import HatoModel
public import HatoRules

extension RulesReadSet {
    /// Whether one of the changes of a commit may have changed something that was read: then a verdict based on it must
    /// be evaluated again. A new message does not affect whether its chat exists.
    public func isTouched(by changes: [PathChange]) -> Bool {
        if isOverflowing { return !changes.isEmpty }
        return changes.contains { change in reads.contains { $0.isTouched(by: change) } }
    }
}

/// Many reads, matched against many commits: each change costs a few look-ups, whatever the number of reads.
public struct RulesReadIndex: Sendable {
    private let reads: RulesReadSet
    /// The ancestors of the nodes that were read.
    private var above: Set<TreePath> = []

    /// A matcher of changes against what an evaluation has read.
    public init(_ reads: RulesReadSet) {
        self.reads = reads
        for read in reads.reads {
            for depth in (0..<read.path.depth).reversed() where !above.insert(read.path.node.prefix(depth)).inserted {
                break
            }
        }
    }

    /// Like `RulesReadSet.isTouched(by:)`.
    public func isTouched(by changes: [PathChange]) -> Bool {
        if reads.isOverflowing { return !changes.isEmpty }
        return changes.contains(where: isTouched)
    }

    private func isTouched(by change: PathChange) -> Bool {
        let node = change.path.node
        // A node below the change was read: it may have changed, unless only a priority has.
        if !change.path.isPriority, above.contains(node) { return true }
        for depth in 0...node.depth {
            let place = node.prefix(depth)
            for aspect in RulesRead.Aspect.allCases
            where reads.reads.contains(RulesRead(path: place, aspect: aspect))
                && aspect.isTouched(at: depth, by: change)
            {
                return true
            }
        }
        return false
    }
}

extension RulesRead {
    /// Whether a change may change what was read.
    public func isTouched(by change: PathChange) -> Bool {
        guard change.path.sharedDepth(with: path) == min(path.depth, change.path.depth) else { return false }
        return aspect.isTouched(at: path.depth, by: change)
    }
}

extension RulesRead.Aspect {
    /// - Parameter depth: the depth of the node that was read; it is above, at or below the change.
    func isTouched(at depth: Int, by change: PathChange) -> Bool {
        if change.path.isPriority {
            // A priority affects only reads of that priority, and is set and removed with its node.
            return self == .priority && change.path.depth == depth
        }
        // The change is at or above the node, so the node may have changed completely.
        guard change.path.depth > depth else { return true }
        // The change is below the node: these reads change only when the node was created, was removed, or was a leaf.
        // (For the root, depths do not show whether it existed.)
        let cameOrWent =
            depth == 0
            ? change.existedDepth == 0 || change.existsDepth == 0
            : (change.existedDepth >= depth) != (change.existsDepth >= depth)
        switch self {
        case .existence, .priority: return cameOrWent
        case .children, .value: return cameOrWent || change.replacedLeafDepth == depth
        }
    }
}
