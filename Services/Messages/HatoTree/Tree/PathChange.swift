public import HatoModel

/// What one write did at one path: complete nodes, so that who listens, indexes or follows need not read.
public struct PathChange: Sendable, Hashable {
    /// The written path; it may mean a priority, then `before` and `after` are that priority as a leaf.
    public var path: TreePath
    /// What was there; nil when it was too large to keep.
    public var before: TreeNode?
    /// What is there now; nil only as a record keeps the change, when it was too large to keep.
    public var after: TreeNode?
    /// How many leading keys of `path` named nodes that were there before the write. `path.depth` when the node itself
    /// was.
    public var existedDepth: Int
    /// How many leading keys of `path` name nodes that are there after it: a removed last child takes its parents with
    /// it.
    public var existsDepth: Int
    /// The depth of the ancestor that was a leaf and became an object, if there was one.
    public var replacedLeafDepth: Int?
    /// Whether the write below the root, or one beside it in the same commit, made the first node of the tree or took
    /// the last. The depths do not tell: the root is not counted, so they are 0 whether it was there or not. Records
    /// of earlier versions know nothing.
    public var rootCameOrWent = false
    private var seldom: Seldom?

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

    /// Whether a value before or after the change was too large to keep.
    public var isTruncated: Bool { before == nil || after == nil }

    /// Whether the write leaves nothing at the path.
    var isRemoval: Bool { if case .empty? = after { true } else { false } }
}

// MARK: - What few changes have

extension PathChange {
    /// Behind one reference: changes are copied for everybody who is told of them.
    private final class Seldom: Sendable, Hashable {
        let beforeSkeleton: NodeSkeleton?
        let afterSkeleton: NodeSkeleton?
        let standing: TreeNode?

        init?(_ beforeSkeleton: NodeSkeleton?, _ afterSkeleton: NodeSkeleton?, _ standing: TreeNode?) {
            if beforeSkeleton == nil, afterSkeleton == nil, standing == nil { return nil }
            self.beforeSkeleton = beforeSkeleton
            self.afterSkeleton = afterSkeleton
            self.standing = standing
        }

        static func == (left: Seldom, right: Seldom) -> Bool {
            left.beforeSkeleton == right.beforeSkeleton && left.afterSkeleton == right.afterSkeleton
                && left.standing == right.standing
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(beforeSkeleton)
            hasher.combine(afterSkeleton)
            hasher.combine(standing)
        }
    }

    /// What is known of `before` where that is nil; records of format 1 know nothing.
    public var beforeSkeleton: NodeSkeleton? {
        get { seldom?.beforeSkeleton }
        set { seldom = Seldom(newValue, afterSkeleton, standing) }
    }

    /// What is known of `after` where that is nil.
    public var afterSkeleton: NodeSkeleton? {
        get { seldom?.afterSkeleton }
        set { seldom = Seldom(beforeSkeleton, newValue, standing) }
    }

    /// What `before` does not tell of what was there: of a change of a priority the node that has it, without it, if
    /// nothing else of that was written; of the first change below a replaced leaf, that leaf with its priority. Nil
    /// when it was too large to keep, too; records before format 3 know nothing.
    public var standing: TreeNode? {
        get { seldom?.standing }
        set { seldom = Seldom(beforeSkeleton, afterSkeleton, newValue) }
    }
}
