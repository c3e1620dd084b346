import HatoModel
import HatoTree

/// What one commit did to the nodes that a pattern means, gathered change by change.
struct FeedMatches {
    /// What happened to one node; a nil node was too large to keep.
    struct Match {
        var path: TreePath
        var parameters: [FeedPattern.Parameter]
        var before: TreeNode?
        var after: TreeNode?
        var type: Messages.Change.EntryType
        /// Only what was written below the node is known.
        var isPartial = false
    }

    let pattern: FeedPattern
    private let matchesMax: Int
    private var matches: [Match] = []
    /// More nodes matched than are sent one by one.
    private(set) var areTooMany = false
    /// The node above all changes that the pattern has to do with.
    private(set) var commonPath: TreePath?
    /// The node above all places of which it is not known whether they match.
    private(set) var unknownPath: TreePath?
    /// The nodes that were written below, by their paths.
    private var parts: [TreePath: Parts] = [:]

    init(_ pattern: FeedPattern, matchesMax: Int) {
        self.pattern = pattern
        self.matchesMax = matchesMax
    }

    /// In the order of the changes, with all of them.
    var all: [Match] {
        var all = matches
        for parts in parts.values where parts.index < all.count {
            all[parts.index].before = parts.before?.node
            all[parts.index].after = parts.after?.node
        }
        return all
    }

    mutating func add(_ change: PathChange) {
        let match = pattern.match(change.path)
        if case nil = match { return }
        if case .above? = match, change.path.isPriority { return }
        commonPath = Self.above(commonPath, change.path.node)
        // Those that follow still say where all of them are.
        if areTooMany { return }
        switch match {
        case nil: return
        case .exact(let parameters)? where !change.path.isPriority:
            append(
                Match(
                    path: change.path, parameters: parameters, before: change.before, after: change.after,
                    type: .of(change.before, change.after)))
        case .exact(let parameters)?: addPart(of: change, parameters, depth: change.path.depth)
        case .below(let parameters, let depth)?: addPart(of: change, parameters, depth: depth)
        case .above(let parameters)?: addInside(change, parameters)
        }
    }

    private mutating func append(_ match: Match) {
        if matches.count < matchesMax { matches.append(match) } else { areTooMany = true }
    }

    private static func above(_ path: TreePath?, _ other: TreePath) -> TreePath {
        path.map { $0.prefix($0.sharedDepth(with: other)) } ?? other
    }

    // MARK: Written below the node

    /// Several writes of one commit are one change of the node.
    private mutating func addPart(of change: PathChange, _ parameters: [FeedPattern.Parameter], depth: Int) {
        let path = change.path.prefix(depth)
        guard let relative = change.path.relative(to: path) else { return }
        let isFirst = parts[path] == nil
        parts[path, default: Parts(index: matches.count)].add(change, at: relative, below: depth)
        guard isFirst else { return }
        // Nothing of the node is unknown when all that was written is its priority.
        let isWhole = change.path.isPriority && change.path.depth == depth && change.standing != nil
        append(
            Match(
                path: path, parameters: parameters, before: .empty, after: .empty,
                type: Self.kind(of: change, below: depth), isPartial: !isWhole))
    }

    private static func kind(of change: PathChange, below depth: Int) -> Messages.Change.EntryType {
        if depth == 0, change.rootCameOrWent { return change.after?.isEmpty == true ? .deleted : .created }
        return change.existedDepth < depth ? .created : change.existsDepth < depth ? .deleted : .updated
    }

    /// What is known of a node that a commit wrote below.
    private struct Parts {
        /// Of the match.
        let index: Int
        /// The node before and after the commit; nil where something was too large to keep.
        var before: TreeNodeDraft? = TreeNodeDraft(.empty)
        var after: TreeNodeDraft? = TreeNodeDraft(.empty)

        init(index: Int) { self.index = index }

        /// Adds a change, where `path` is from the node; that is at `depth`.
        mutating func add(_ change: PathChange, at path: TreePath, below depth: Int) {
            Self.merge(change.after, change.standing, at: path, into: &after)
            guard let leafDepth = change.replacedLeafDepth, leafDepth >= depth else {
                return Self.merge(change.before, change.standing, at: path, into: &before)
            }
            let pair = path.prefix(leafDepth - depth)
            // The first change below the leaf has added it.
            guard let summary = before?.summary(at: pair), summary.leaf == nil else { return }
            // Records of an earlier version kept the leaf without its priority.
            let leaf = change.standing.map { $0.withPriority($0.priority ?? summary.priority) }
            Self.merge(leaf, nil, at: pair, into: &before)
            // The object keeps the priority of the leaf, unless a change of that came before.
            guard summary.priority == nil, let priority = leaf?.priority else { return }
            after?.set(.leaf(priority.leaf), at: TreePath(uncheckedKeys: pair.keys, isPriority: true))
        }

        /// - Parameter standing: the node whose priority `part` is, if it is known.
        private static func merge(
            _ part: TreeNode?, _ standing: TreeNode?, at path: TreePath, into draft: inout TreeNodeDraft?
        ) {
            guard let part, let isFree = draft?.summary(at: path.node).isEmpty else {
                draft = nil
                return
            }
            if path.isPriority, isFree {
                let priority = part.leaf.flatMap(TreePriority.init)
                if let standing {
                    draft?.set(standing.withPriority(priority), at: path.node)
                } else if let priority {
                    // Of what is not known, the priority alone: an object such as no tree holds.
                    draft?.set(.object(TreeChildren(sorted: []), priority: priority), at: path.node)
                }
                return
            }
            // Removing nothing must not remove a priority that stands alone.
            if part.isEmpty, isFree { return }
            draft?.set(part, at: path)
        }
    }

    // MARK: Written above the node

    /// One place inside what was written, before and after.
    private struct NodePair {
        var path: TreePath
        var before: RecordedNode
        var after: RecordedNode
        var parameters: [FeedPattern.Parameter]

        func child(_ key: TreeKey, as name: String?) -> NodePair {
            NodePair(
                path: TreePath(uncheckedKeys: path.keys + [key]), before: before.child(key), after: after.child(key),
                parameters: name.map { parameters + [FeedPattern.Parameter($0, key)] } ?? parameters)
        }
    }

    /// Every node inside that the pattern means and that differs.
    private mutating func addInside(_ change: PathChange, _ parameters: [FeedPattern.Parameter]) {
        let pair = NodePair(
            path: change.path, before: RecordedNode(change.before, change.beforeSkeleton),
            after: RecordedNode(change.after, change.afterSkeleton), parameters: parameters)
        addInside(pair, pattern.segments.dropFirst(change.path.depth))
    }

    private mutating func addInside(_ pair: NodePair, _ rest: ArraySlice<FeedPattern.Segment>) {
        if areTooMany || pair.before.isEmpty && pair.after.isEmpty { return }
        guard let segment = rest.first else {
            guard !pair.before.isSurelySame(as: pair.after) else { return }
            let (before, after) = (pair.before.whole, pair.after.whole)
            return append(
                Match(
                    path: pair.path, parameters: pair.parameters, before: before, after: after,
                    type: .of(before, after)))
        }
        guard let old = pair.before.childKeys, let new = pair.after.childKeys else {
            unknownPath = Self.above(unknownPath, pair.path)
            return
        }
        switch segment {
        case .key(let key): addInside(pair.child(key, as: nil), rest.dropFirst())
        case .any(let name):
            for key in Set(old).union(new).sorted() {
                if areTooMany { return }
                addInside(pair.child(key, as: name), rest.dropFirst())
            }
        }
    }
}

/// A node as a change keeps it.
private enum RecordedNode {
    case whole(TreeNode)
    case skeleton(NodeSkeleton)
    /// Something was there; a record of the first format keeps no more of it.
    case unknown

    init(_ node: TreeNode?, _ skeleton: NodeSkeleton?) {
        if let node { self = .whole(node) } else { self = skeleton.map { .skeleton($0) } ?? .unknown }
    }

    var isEmpty: Bool { if case .whole(.empty) = self { true } else { false } }

    /// Nil when only its keys are known.
    var whole: TreeNode? { if case .whole(let node) = self { node } else { nil } }

    /// Nil when they are not known.
    var childKeys: [TreeKey]? {
        switch self {
        case .whole(let node): node.children?.map(\.key) ?? []
        case .skeleton(let skeleton): skeleton.childKeys
        case .unknown: nil
        }
    }

    /// Of a node whose `childKeys` are known.
    func child(_ key: TreeKey) -> RecordedNode {
        switch self {
        case .whole(let node): .whole(node.child(key))
        case .skeleton(let skeleton): skeleton.child(key).map { .skeleton($0) } ?? .whole(.empty)
        case .unknown: .unknown
        }
    }

    func isSurelySame(as other: RecordedNode) -> Bool {
        switch (self, other) {
        case (.whole(let node), .whole(let other)): node == other
        case (.skeleton(let skeleton), .skeleton(let other)): skeleton.isSurelySame(as: other)
        case (.whole(let node), .skeleton(let skeleton)), (.skeleton(let skeleton), .whole(let node)):
            !node.isEmpty && NodeSkeleton(of: node).isSurelySame(as: skeleton)
        case (.unknown, _), (_, .unknown): false
        }
    }
}
