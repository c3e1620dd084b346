public import HatoModel

/// A node that is set at many paths, one after the other, and built once: a path costs its depth, where
/// `TreeNode.setting` copies the children of every node above it.
public struct TreeNodeDraft {
    private enum Content {
        case built(TreeNode)
        case object([TreeKey: TreeNodeDraft], priority: TreePriority?)
    }

    private var content: Content

    public init(_ node: TreeNode) { content = .built(node) }

    /// The node, with everything that was set.
    public var node: TreeNode {
        switch content {
        case .built(let node): node
        case .object(let children, let priority):
            .object(unsorted: children.map { TreeChild(key: $0.key, node: $0.value.node) }, priority: priority)
        }
    }

    /// What is known of the node at a path without building it. At a priority path, the priority is the leaf.
    public struct Summary {
        /// Whether there is neither a value nor children.
        public var isEmpty = true
        /// The primitive; nil when the node is missing or an object.
        public var leaf: TreeLeaf?
        /// The priority; nil when there is none.
        public var priority: TreePriority?
    }

    /// What is at a path now.
    public func summary(at path: TreePath) -> Summary {
        let summary = summary(at: path.keys[...])
        guard path.isPriority else { return summary }
        return Summary(isEmpty: summary.priority == nil, leaf: summary.priority?.leaf)
    }

    private func summary(at keys: ArraySlice<TreeKey>) -> Summary {
        switch content {
        case .built(let node):
            let node = node.node(at: keys)
            return Summary(isEmpty: node.isEmpty, leaf: node.leaf, priority: node.priority)
        case .object(let children, let priority):
            guard let key = keys.first else { return Summary(isEmpty: false, priority: priority) }
            return children[key]?.summary(at: keys.dropFirst()) ?? Summary()
        }
    }

    /// Sets a node at a path, like `TreeNode.setting`.
    public mutating func set(_ node: TreeNode, at path: TreePath) {
        set(node, at: path.keys[...], isPriority: path.isPriority)
    }

    private mutating func set(_ node: TreeNode, at keys: ArraySlice<TreeKey>, isPriority: Bool) {
        guard let key = keys.first else {
            if isPriority { setPriority(node.leaf.flatMap(TreePriority.init)) } else { content = .built(node) }
            return
        }
        if case .built(.object(let children, let priority)) = content {
            let drafts = children.sorted.map { ($0.key, TreeNodeDraft($0.node)) }
            content = .object(Dictionary(drafts) { $1 }, priority: priority)
        }
        switch content {
        case .built(let leaf):
            var child = TreeNodeDraft(.empty)
            child.set(node, at: keys.dropFirst(), isPriority: isPriority)
            if !child.isEmpty { content = .object([key: child], priority: leaf.priority) }
        case .object(var children, let priority):
            // With one reference to the children, none of them is copied.
            content = .built(.empty)
            children[key, default: TreeNodeDraft(.empty)].set(node, at: keys.dropFirst(), isPriority: isPriority)
            if children[key]?.isEmpty == true { children[key] = nil }
            if !children.isEmpty { content = .object(children, priority: priority) }
        }
    }

    private mutating func setPriority(_ priority: TreePriority?) {
        switch content {
        case .built(let node): content = .built(node.withPriority(priority))
        case .object(let children, _): content = .object(children, priority: priority)
        }
    }

    private var isEmpty: Bool { if case .built(.empty) = content { true } else { false } }
}
