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
    private(set) var all: [Match] = []
    /// More nodes matched than are told one by one.
    private(set) var areTooMany = false
    /// The node above all changes that the pattern has to do with.
    private(set) var commonPath: TreePath?
    /// The node above all places of which it is not known whether they match.
    private(set) var unknownPath: TreePath?
    /// Where in `all` the node at a path is that was written below.
    private var parts: [TreePath: Int] = [:]

    init(_ pattern: FeedPattern, matchesMax: Int) {
        self.pattern = pattern
        self.matchesMax = matchesMax
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
        if all.count < matchesMax { all.append(match) } else { areTooMany = true }
    }

    private static func above(_ path: TreePath?, _ other: TreePath) -> TreePath {
        path.map { $0.prefix($0.sharedDepth(with: other)) } ?? other
    }

    // MARK: Written below the node

    /// Several writes of one commit are one change of the node.
    private mutating func addPart(of change: PathChange, _ parameters: [FeedPattern.Parameter], depth: Int) {
        let path = change.path.prefix(depth)
        guard let relative = change.path.relative(to: path) else { return }
        if let place = parts[path] {
            let known = Self.known((all[place].before, all[place].after), and: change, at: relative, below: depth)
            all[place].before = known.before
            all[place].after = known.after
            return
        }
        parts[path] = all.count
        // Nothing of the node is unknown when all that was written is its priority.
        let isWhole = change.path.isPriority && change.path.depth == depth && change.standing != nil
        let known = Self.known((.empty, .empty), and: change, at: relative, below: depth)
        append(
            Match(
                path: path, parameters: parameters, before: known.before, after: known.after,
                type: Self.kind(of: change, below: depth), isPartial: !isWhole))
    }

    private static func kind(of change: PathChange, below depth: Int) -> Messages.Change.EntryType {
        if depth == 0, change.rootCameOrWent { return change.after?.isEmpty == true ? .deleted : .created }
        return change.existedDepth < depth ? .created : change.existsDepth < depth ? .deleted : .updated
    }

    /// What is known of a node before and after a commit; nil where something was too large to keep.
    private typealias Known = (before: TreeNode?, after: TreeNode?)

    /// `known` with what a change tells, where `path` is from the node; that is at `depth`.
    private static func known(
        _ known: Known, and change: PathChange, at path: TreePath, below depth: Int
    ) -> Known {
        let after = merged(known.after, change.after, change.standing, at: path)
        guard let leafDepth = change.replacedLeafDepth, leafDepth >= depth else {
            return (merged(known.before, change.before, change.standing, at: path), after)
        }
        let place = path.prefix(leafDepth - depth)
        guard let before = known.before else { return (nil, after) }
        let told = before.node(at: place)
        // The first change below the leaf has told of it.
        if told.leaf != nil { return (before, after) }
        // Records of an earlier version kept the leaf without its priority.
        let leaf = change.standing.map { $0.withPriority($0.priority ?? told.priority) }
        let whole = merged(before, leaf, nil, at: place)
        // The object keeps the priority of the leaf, unless a change of that has been told.
        guard told.priority == nil, let priority = leaf?.priority else { return (whole, after) }
        let priorityPath = TreePath(uncheckedKeys: place.keys, isPriority: true)
        return (whole, after?.setting(.leaf(priority.leaf), at: priorityPath))
    }

    /// - Parameter standing: the node whose priority `part` is, if it is known.
    private static func merged(
        _ node: TreeNode?, _ part: TreeNode?, _ standing: TreeNode?, at path: TreePath
    ) -> TreeNode? {
        guard let node, let part else { return nil }
        let place = path.node
        if path.isPriority, node.node(at: place).isEmpty {
            let priority = part.leaf.flatMap(TreePriority.init)
            if let standing { return node.setting(standing.withPriority(priority), at: place) }
            // Of what is not known, the priority alone: an object such as no tree holds.
            return priority.map { node.setting(.object(TreeChildren(sorted: []), priority: $0), at: place) } ?? node
        }
        // Removing nothing must not remove a priority that stands alone.
        return part.isEmpty && node.node(at: path).isEmpty ? node : node.setting(part, at: path)
    }

    // MARK: Written above the node

    /// One place inside what was written, before and after.
    private struct Place {
        var path: TreePath
        var before: KeptNode
        var after: KeptNode
        var parameters: [FeedPattern.Parameter]

        func child(_ key: TreeKey, as name: String?) -> Place {
            Place(
                path: TreePath(uncheckedKeys: path.keys + [key]), before: before.child(key), after: after.child(key),
                parameters: name.map { parameters + [FeedPattern.Parameter($0, key)] } ?? parameters)
        }
    }

    /// Every node inside that the pattern means and that differs.
    private mutating func addInside(_ change: PathChange, _ parameters: [FeedPattern.Parameter]) {
        let place = Place(
            path: change.path, before: KeptNode(change.before, change.beforeSkeleton),
            after: KeptNode(change.after, change.afterSkeleton), parameters: parameters)
        addInside(place, pattern.segments.dropFirst(change.path.depth))
    }

    private mutating func addInside(_ place: Place, _ rest: ArraySlice<FeedPattern.Segment>) {
        if areTooMany || place.before.isEmpty && place.after.isEmpty { return }
        guard let segment = rest.first else {
            guard !place.before.isSurelySame(as: place.after) else { return }
            let (before, after) = (place.before.whole, place.after.whole)
            return append(
                Match(
                    path: place.path, parameters: place.parameters, before: before, after: after,
                    type: .of(before, after)))
        }
        guard let old = place.before.childKeys, let new = place.after.childKeys else {
            unknownPath = Self.above(unknownPath, place.path)
            return
        }
        switch segment {
        case .key(let key): addInside(place.child(key, as: nil), rest.dropFirst())
        case .any(let name):
            for key in Set(old).union(new).sorted() {
                if areTooMany { return }
                addInside(place.child(key, as: name), rest.dropFirst())
            }
        }
    }
}

/// A node as a change keeps it.
private enum KeptNode {
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
    func child(_ key: TreeKey) -> KeptNode {
        switch self {
        case .whole(let node): .whole(node.child(key))
        case .skeleton(let skeleton): skeleton.child(key).map { .skeleton($0) } ?? .whole(.empty)
        case .unknown: .unknown
        }
    }

    func isSurelySame(as other: KeptNode) -> Bool {
        switch (self, other) {
        case (.whole(let node), .whole(let other)): node == other
        case (.skeleton(let skeleton), .skeleton(let other)): skeleton.isSurelySame(as: other)
        case (.whole(let node), .skeleton(let skeleton)), (.skeleton(let skeleton), .whole(let node)):
            !node.isEmpty && NodeSkeleton(of: node).isSurelySame(as: skeleton)
        case (.unknown, _), (_, .unknown): false
        }
    }
}
