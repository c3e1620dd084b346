import HatoModel
public import HatoRules

extension RulesReadSet {
    /// Whether one of the changes of a commit may have changed something that was read: what was judged with it must
    /// then be judged again. A new message does not touch whether its chat exists.
    public func isTouched(by changes: [PathChange]) -> Bool {
        if isOverflowing { return !changes.isEmpty }
        return changes.contains { change in reads.contains { $0.isTouched(by: change) } }
    }
}

/// Many reads, asked about many commits: each change costs a few look-ups, however many reads there are.
public struct RulesReadIndex: Sendable {
    private let reads: RulesReadSet
    /// The nodes above the places that were read.
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

    /// The same as of the set.
    public func isTouched(by changes: [PathChange]) -> Bool {
        if reads.isOverflowing { return !changes.isEmpty }
        return changes.contains(where: isTouched)
    }

    private func isTouched(by change: PathChange) -> Bool {
        let node = change.path.node
        // Something below the change was read: it may be any other now, unless only a priority has changed.
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
    /// - Parameter depth: of the place that was read, which lies above the change, at it or below it.
    func isTouched(at depth: Int, by change: PathChange) -> Bool {
        if change.path.isPriority {
            // A priority matters to who asked for it, and comes and goes with its node.
            return self == .priority && change.path.depth == depth
        }
        // At or above the place: the node may be any other now.
        guard change.path.depth > depth else { return true }
        // Below it: the node is another for these reads only when it came, went, or was a leaf.
        // (Of the root, depths do not tell whether it was there.)
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
