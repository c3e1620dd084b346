public import HatoModel

/// The change of one write at one path: complete nodes, so that listeners, indexes and followers need not read.
public struct PathChange: Sendable, Hashable {
    /// The written path; it may be a priority path, then `before` and `after` are that priority as a leaf.
    public var path: TreePath
    /// The previous node; nil when it was too large to keep.
    public var before: TreeNode?
    /// The new node; nil only in a recorded change, when it was too large to keep.
    public var after: TreeNode?
    /// How many leading keys of `path` named existing nodes before the write. `path.depth` when the node itself
    /// existed.
    public var existedDepth: Int
    /// How many leading keys of `path` name existing nodes after the write: a removed last child removes its parents.
    public var existsDepth: Int
    /// The depth of the ancestor that was a leaf and became an object; nil when there was none.
    public var replacedLeafDepth: Int?
    /// Whether the write below the root, or one beside it in the same commit, made the first node of the tree or
    /// removed the last. The depths do not show it: the root is not counted, so they are 0 whether it existed or not.
    /// Records of earlier versions do not contain it.
    public var rootCameOrWent = false
    private var rare: RareParts?

    public init(
        path: TreePath, before: TreeNode?, after: TreeNode?, depths: (existed: Int, exists: Int),
        replacedLeafDepth: Int? = nil
    ) {
        self.path = path
        self.before = before
        self.after = after
        existedDepth = depths.existed
        existsDepth = depths.exists
        self.replacedLeafDepth = replacedLeafDepth
    }

    /// Whether a node before or after the change was too large to keep.
    public var isTruncated: Bool { before == nil || after == nil }

    /// Whether the write leaves nothing at the path.
    var isRemoval: Bool { if case .empty? = after { true } else { false } }
}

// MARK: - What few changes have

extension PathChange {
    /// Behind one reference: changes are copied for every receiver.
    private final class RareParts: Sendable, Hashable {
        let beforeSkeleton: NodeSkeleton?
        let afterSkeleton: NodeSkeleton?
        let standing: TreeNode?

        init?(_ beforeSkeleton: NodeSkeleton?, _ afterSkeleton: NodeSkeleton?, _ standing: TreeNode?) {
            if beforeSkeleton == nil, afterSkeleton == nil, standing == nil { return nil }
            self.beforeSkeleton = beforeSkeleton
            self.afterSkeleton = afterSkeleton
            self.standing = standing
        }

        static func == (left: RareParts, right: RareParts) -> Bool {
            left.beforeSkeleton == right.beforeSkeleton && left.afterSkeleton == right.afterSkeleton
                && left.standing == right.standing
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(beforeSkeleton)
            hasher.combine(afterSkeleton)
            hasher.combine(standing)
        }
    }

    /// The skeleton of `before` where that is nil; records of format 1 have none.
    public var beforeSkeleton: NodeSkeleton? {
        get { rare?.beforeSkeleton }
        set { rare = RareParts(newValue, afterSkeleton, standing) }
    }

    /// The skeleton of `after` where that is nil.
    public var afterSkeleton: NodeSkeleton? {
        get { rare?.afterSkeleton }
        set { rare = RareParts(beforeSkeleton, newValue, standing) }
    }

    /// Previous data that `before` does not contain: for a change of a priority, its node without the priority, if
    /// nothing else of the node was written; for the first change below a replaced leaf, that leaf with its priority.
    /// Nil also when it was too large to keep; records before format 3 have none.
    public var standing: TreeNode? {
        get { rare?.standing }
        set { rare = RareParts(beforeSkeleton, afterSkeleton, newValue) }
    }
}
