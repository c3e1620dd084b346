import HatoModel

extension PathChange {
    /// The highest path that the write determined: the written one, or the leaf above it that became an object, or the
    /// highest parent that vanished with its last child.
    ///
    /// Setting the current nodes at the settled paths of some commits, on a state from before them, gives the current
    /// state. Setting them at the written paths would not: it leaves a leaf that was replaced and removed, or a
    /// priority that vanished with its node.
    var settledPath: TreePath {
        // The root vanished with its priority, which the depths do not show.
        if rootCameOrWent, after?.isEmpty == true { return .root }
        var depth = path.keys.count
        if let replacedLeafDepth { depth = min(depth, replacedLeafDepth) }
        if existsDepth < min(existedDepth, depth) { depth = min(depth, existsDepth + 1) }
        return depth == path.keys.count ? path : path.prefix(depth)
    }
}
