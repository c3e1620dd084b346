import HatoModel

extension PathChange {
    /// The highest place that the write settled: the written one, or the leaf above it that became an object, or the
    /// highest parent that went with its last child.
    ///
    /// Setting what is there later at all settled places of some commits, on a state from before them, gives the later
    /// state; setting it at the written places would not: it leaves a leaf that was replaced and removed, or a priority
    /// that vanished with its node.
    var settledPath: TreePath {
        // The root went with its priority, which the depths do not tell.
        if rootCameOrWent, after?.isEmpty == true { return .root }
        var depth = path.keys.count
        if let replacedLeafDepth { depth = min(depth, replacedLeafDepth) }
        if existsDepth < min(existedDepth, depth) { depth = min(depth, existsDepth + 1) }
        return depth == path.keys.count ? path : path.prefix(depth)
    }
}
