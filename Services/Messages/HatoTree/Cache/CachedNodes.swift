import HatoModel

/// The nodes of a tree with cached facts or children: a tree itself.
///
/// Rules read nodes one after the other beside and below the path of a write: each walk starts at the common part with
/// the previous walk. Nodes are evicted by generations: when half of the limit was used in the present one, the nodes
/// that were not are evicted. (Tracking the exact order would cost each write more.)
struct CachedNodes {
    /// Longer paths are not cached.
    private static let pathBytesMax = 1_024

    /// One node. Belongs to one `CachedNodes`, whose mutating methods alone use it, none inside another's change of it:
    /// the checks of that, at each of its properties, would take as long as the search for the nodes of a write.
    private final class Node {
        let key: TreeKey
        @exclusivity(unchecked) var facts = NodeFacts()
        /// Of a node that is known to have children, and not to be packed.
        @exclusivity(unchecked) var newest: NewestChildren?
        @exclusivity(unchecked) var children: [TreeKey: Node] = [:]
        /// The generation in which it was used last; its ancestors were used in that one or a later one.
        @exclusivity(unchecked) var generation: UInt64

        init(_ key: TreeKey, _ generation: UInt64) {
            self.key = key
            self.generation = generation
        }

        var isNeedless: Bool { facts.isEmpty && newest == nil && children.isEmpty }
    }

    /// What is cached of a fact.
    enum Found<Value: Sendable>: Sendable {
        case known(Value)
        /// The ancestor at this depth, or the node itself, is missing.
        case missing(depth: Int)
        case unknown
    }

    private let limits: NodeCache.Limits
    private let root = Node(TreeKey(unchecked: ""), 0)
    /// The nodes of the last walk below the root: each is a child of the previous one.
    private var trail: [Node] = []
    private var generation: UInt64 = 0
    /// The number of nodes that were used in this generation, without the root.
    private var usedCount = 0
    /// The number of children that are held individually.
    private var childCount = 0
    /// Bytes of the last encoded key.
    private var encoded: [UInt8] = []

    init(_ limits: NodeCache.Limits) { self.limits = limits }

    // MARK: Facts

    mutating func look<Value>(up fact: NodeFact<Value>, at path: TreePath) -> Found<Value> {
        let depth = walk(path.keys, to: path.depth)
        if depth == path.depth, let value = fact.read(node(depth).facts) {
            use(depth)
            return .known(value)
        }
        // Usually only the last node is new.
        var above = min(depth, path.depth - 1)
        while above >= 0 {
            if node(above).newest?.lack(childKey(path.keys[above])) == true { return .missing(depth: above + 1) }
            above -= 1
        }
        return .unknown
    }

    mutating func set<Value>(_ fact: NodeFact<Value>, _ value: Value, at path: TreePath) {
        if let node = make(path.keys, path.depth) { fact.write(&node.facts, value) }
    }

    // MARK: Children

    /// Whether the parent of a path exists and has no child with its key; nil: not known.
    mutating func isFree(_ path: TreePath) -> Bool? {
        let parent = path.depth - 1
        guard parent >= 0, walk(path.keys, to: parent) == parent, let newest = node(parent).newest else { return nil }
        use(parent)
        return newest.lack(childKey(path.keys[parent]))
    }

    /// Caches the greatest child of the parent of a path.
    mutating func setGreatestChild(_ key: ChildKey, besides path: TreePath) {
        guard let parent = make(path.keys, path.depth - 1) else { return }
        childCount -= parent.newest?.count ?? 0
        parent.newest = NewestChildren(after: key)
    }

    private mutating func childKey(_ key: TreeKey) -> ChildKey {
        encoded.removeAll(keepingCapacity: true)
        TreeKeyCodec.append(key, to: &encoded)
        return ChildKey(encoded[...])
    }

    // MARK: Walking

    private func node(_ depth: Int) -> Node { depth == 0 ? root : trail[depth - 1] }

    /// The number of cached nodes along the first `limit` keys; they are the first ones of the trail.
    private mutating func walk(_ keys: [TreeKey], to limit: Int) -> Int {
        let shared = min(limit, trail.count)
        var depth = 0
        while depth < shared, trail[depth].key == keys[depth] { depth += 1 }
        if depth == limit { return depth }
        var last = node(depth)
        var isCut = depth == trail.count
        while depth < limit, let next = last.children[keys[depth]] {
            if !isCut { trail.removeSubrange(depth...) }
            isCut = true
            trail.append(next)
            last = next
            depth += 1
        }
        return depth
    }

    /// The node at the first `limit` keys, which is added unless it is there; nil when they are too long.
    private mutating func make(_ keys: [TreeKey], _ limit: Int) -> Node? {
        guard keys[..<limit].reduce(0, { $0 + $1.text.utf8.count }) <= Self.pathBytesMax else { return nil }
        if usedCount >= limits.nodesMax / 2 { evictUnused() }
        var depth = walk(keys, to: limit)
        use(depth)
        var last = node(depth)
        // The last walk may have taken another branch from here.
        if depth < limit { trail.removeSubrange(depth...) }
        while depth < limit {
            let next = Node(keys[depth], generation)
            last.children[next.key] = next
            trail.append(next)
            usedCount += 1
            depth += 1
            last = next
        }
        return last
    }

    // MARK: Evicting

    /// Marks the first nodes of the trail as used in this generation.
    private mutating func use(_ depth: Int) {
        guard depth > 0, trail[depth - 1].generation != generation else { return }
        for node in trail[..<depth] where node.generation != generation {
            node.generation = generation
            usedCount += 1
        }
    }

    /// Begins a generation with the nodes that were used in the last one.
    private mutating func evictUnused() {
        trail = []
        childCount = root.newest?.count ?? 0
        evictUnused(below: root)
        generation += 1
        usedCount = 0
    }

    private mutating func evictUnused(below node: Node) {
        node.children = node.children.filter { $0.value.generation == generation }
        for child in node.children.values {
            childCount += child.newest?.count ?? 0
            evictUnused(below: child)
        }
    }

    /// Drops at least half of the children held individually, when they are too many. It visits all nodes, but only
    /// after as many writes as half the children that may be held; children that are being written stay.
    private mutating func boundChildren() {
        guard childCount > limits.allChildrenMax else { return }
        childCount = 0
        evictOlderChildren(atOrBelow: root)
    }

    private mutating func evictOlderChildren(atOrBelow node: Node) {
        node.newest?.evictOlderHalf()
        childCount += node.newest?.count ?? 0
        for child in node.children.values { evictOlderChildren(atOrBelow: child) }
    }

    // MARK: Invalidating

    /// Invalidates what a committed change may have changed.
    mutating func invalidate(_ change: PathChange) {
        let (keys, target) = (change.path.keys, change.path.depth)
        let depth = walk(keys, to: target)
        for above in 0...depth { node(above).facts.invalidate(change, depth: above) }
        // The priority of a node affects neither its children nor what is below them.
        if !change.path.isPriority {
            for above in 0..<min(depth + 1, target) { updateChildren(at: above, change) }
            if depth == target { invalidateBelow(depth) }
            boundChildren()
        }
        removeNeedless(from: depth)
    }

    /// A change below the node at a depth of the trail.
    private mutating func updateChildren(at depth: Int, _ change: PathChange) {
        let node = node(depth)
        guard node.newest != nil else { return }
        if change.existsDepth < depth {
            dropChildren(of: node)
        } else if !change.isRemoval {
            use(depth)
            let key = childKey(change.path.keys[depth])
            childCount += node.newest?.insert(key, max: limits.childrenMax) ?? 0
        }
    }

    private mutating func dropChildren(of node: Node) {
        childCount -= node.newest?.count ?? 0
        node.newest = nil
    }

    /// Drops the children of a node that was written, and everything below it.
    private mutating func invalidateBelow(_ depth: Int) {
        let node = node(depth)
        dropChildren(of: node)
        if node.children.isEmpty { return }
        for child in node.children.values { release(child) }
        node.children = [:]
        trail.removeSubrange(depth...)
    }

    private mutating func release(_ node: Node) {
        if node.generation == generation { usedCount -= 1 }
        childCount -= node.newest?.count ?? 0
        for child in node.children.values { release(child) }
    }

    /// Removes nodes of which nothing is known, from the last of the trail's first `depth` upwards.
    private mutating func removeNeedless(from depth: Int) {
        var left = depth
        while left > 0, trail[left - 1].isNeedless {
            release(trail[left - 1])
            node(left - 1).children[trail[left - 1].key] = nil
            left -= 1
        }
        if left < depth { trail.removeSubrange(left...) }
    }
}
