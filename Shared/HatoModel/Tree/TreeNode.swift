/// A node of the tree, with everything below it (spec realtime-database §2).
///
/// An object has at least one child and no empty ones; a node without a value has no priority either. The factories
/// below guarantee this; code that uses the cases directly must guarantee it itself.
public enum TreeNode: Sendable, Hashable {
    case empty
    case leaf(TreeLeaf, priority: TreePriority? = nil)
    case object(TreeChildren, priority: TreePriority? = nil)
}

/// The primitive value of a leaf. Numbers are finite and never -0.
public enum TreeLeaf: Sendable {
    case bool(Bool)
    case number(Double)
    case string(String)
}

/// The priority of a node, its default order: a number or a string.
public enum TreePriority: Sendable {
    case number(Double)
    case string(String)
}

/// A child of a node, with its key.
public struct TreeChild: Sendable, Hashable {
    /// The key.
    public var key: TreeKey
    /// The node at the key.
    public var node: TreeNode

    public init(key: TreeKey, node: TreeNode) {
        self.key = key
        self.node = node
    }
}

/// The children of an object, in key order, each key once, none empty.
public struct TreeChildren: Sendable, Hashable, RandomAccessCollection {
    /// The children as an array: iterating it by index copies none of them.
    public private(set) var sorted: [TreeChild]

    /// Takes children that are already in key order.
    public init(sorted: [TreeChild]) { self.sorted = sorted }

    /// Takes children in any order, each key once.
    public init(unsorted children: consuming [TreeChild]) {
        sorted = consume children
        if sorted.count > 12 {
            sorted.sort { $0.key < $1.key }
        } else {
            sortFew()
        }
    }

    /// Usually the children are few and in order: insertion sort needs no scratch memory and stops early.
    private mutating func sortFew() {
        for index in sorted.indices.dropFirst() {
            var position = index
            while position > 0, sorted[position].key < sorted[position - 1].key {
                sorted.swapAt(position, position - 1)
                position -= 1
            }
        }
    }

    public var startIndex: Int { 0 }
    public var endIndex: Int { sorted.count }
    /// The child at a position in key order.
    public subscript(position: Int) -> TreeChild { sorted[position] }

    /// The child with a key; nil when there is none.
    public subscript(key: TreeKey) -> TreeNode? {
        let position = position(of: key)
        return position.isFound ? sorted[position.index].node : nil
    }

    /// The children with `node` at `key`; an empty node removes the child.
    public func setting(_ key: TreeKey, to node: TreeNode) -> TreeChildren {
        var copy = self
        let position = position(of: key)
        switch (position.isFound, node.isEmpty) {
        case (true, true): copy.sorted.remove(at: position.index)
        case (true, false): copy.sorted[position.index].node = node
        case (false, true): break
        case (false, false): copy.sorted.insert(TreeChild(key: key, node: node), at: position.index)
        }
        return copy
    }

    private func position(of key: TreeKey) -> (index: Int, isFound: Bool) {
        var low = 0
        var high = sorted.count
        while low < high {
            let middle = (low + high) / 2
            let order = KeyOrder.compare(sorted[middle].key.text, key.text)
            if order == 0 { return (middle, true) }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return (low, false)
    }
}

extension TreeNode {
    /// An object of these children, or empty when there are none (then its priority is removed too).
    public static func object(unsorted children: consuming [TreeChild], priority: TreePriority? = nil) -> TreeNode {
        if children.isEmpty { return .empty }
        return .object(TreeChildren(unsorted: consume children), priority: priority)
    }

    /// Whether there is neither a value nor children.
    public var isEmpty: Bool { if case .empty = self { true } else { false } }

    public var leaf: TreeLeaf? { if case .leaf(let leaf, _) = self { leaf } else { nil } }

    /// The children, when it is an object.
    public var children: TreeChildren? { if case .object(let children, _) = self { children } else { nil } }

    public var priority: TreePriority? {
        switch self {
        case .empty: nil
        case .leaf(_, let priority), .object(_, let priority): priority
        }
    }

    /// The child at `key`, empty when there is none.
    public func child(_ key: TreeKey) -> TreeNode {
        if case .object(let children, _) = self { return children[key] ?? .empty }
        return .empty
    }

    /// The node at the path relative to this node; for a priority path its value as a leaf.
    public func node(at path: TreePath) -> TreeNode {
        let node = node(at: path.keys[...])
        return path.isPriority ? node.priority.map { .leaf($0.leaf) } ?? .empty : node
    }

    /// The node at these keys relative to this node.
    public func node(at keys: ArraySlice<TreeKey>) -> TreeNode {
        guard let key = keys.first else { return self }
        var node = child(key)
        for key in keys.dropFirst() {
            if node.isEmpty { return .empty }
            node = node.child(key)
        }
        return node
    }

    /// The same node with another priority; an empty one stays empty.
    public func withPriority(_ priority: TreePriority?) -> TreeNode {
        switch self {
        case .empty: .empty
        case .leaf(let leaf, _): .leaf(leaf, priority: priority)
        case .object(let children, _): .object(children, priority: priority)
        }
    }

    /// This node after `node` was set at `path` (spec §2): leaves above it become objects and keep their priority,
    /// nodes left without children disappear, an empty node below a leaf changes nothing. At a priority path, `node` is
    /// the priority as a leaf.
    public func setting(_ node: TreeNode, at path: TreePath) -> TreeNode {
        setting(node, at: path.keys[...], isPriority: path.isPriority)
    }

    private func setting(_ node: TreeNode, at keys: ArraySlice<TreeKey>, isPriority: Bool) -> TreeNode {
        guard let key = keys.first else {
            return isPriority ? withPriority(node.leaf.flatMap(TreePriority.init)) : node
        }
        let child = child(key).setting(node, at: keys.dropFirst(), isPriority: isPriority)
        switch self {
        case .object(let children, let priority):
            let changed = children.setting(key, to: child)
            return changed.isEmpty ? .empty : .object(changed, priority: priority)
        case .empty, .leaf:
            if child.isEmpty { return self }
            return .object(TreeChildren(sorted: [TreeChild(key: key, node: child)]), priority: priority)
        }
    }
}

extension TreeLeaf: Hashable {
    public static func == (left: TreeLeaf, right: TreeLeaf) -> Bool {
        switch (left, right) {
        case (.bool(let left), .bool(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)): left.hasSameBytes(as: right)
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .bool(let value): hasher.combine(value)
        case .number(let value): hasher.combine(value)
        case .string(let value): value.utf8.span.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
    }
}

extension TreeLeaf {
    public var json: JSONValue {
        switch self {
        case .bool(let value): .bool(value)
        case .number(let value): .number(value)
        case .string(let value): .string(value)
        }
    }
}

extension TreePriority: Hashable {
    /// Nil for a boolean, which is no priority.
    public init?(_ leaf: TreeLeaf) {
        switch leaf {
        case .bool: return nil
        case .number(let value): self = .number(value)
        case .string(let value): self = .string(value)
        }
    }

    /// The priority as a leaf.
    public var leaf: TreeLeaf {
        switch self {
        case .number(let value): .number(value)
        case .string(let value): .string(value)
        }
    }

    public static func == (left: TreePriority, right: TreePriority) -> Bool { left.leaf == right.leaf }

    public func hash(into hasher: inout Hasher) { leaf.hash(into: &hasher) }
}
