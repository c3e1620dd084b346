public import HatoModel

/// What rules can be evaluated over: a tree, asked path by path, so that a look at one child never reads its
/// siblings.
///
/// Paths name nodes, never priorities. What these throw ends the whole evaluation: it is no answer of the rules.
public protocol RulesData {
    /// The primitive at `path`; nil where there is nothing or an object.
    func leaf(at path: TreePath) throws -> TreeLeaf?
    /// Whether there is anything at or below `path`.
    func exists(at path: TreePath) throws -> Bool
    /// Whether there is an object at `path`.
    func hasChildren(at path: TreePath) throws -> Bool
    func priority(at path: TreePath) throws -> TreePriority?
}

extension TreeNode: RulesData {
    public func leaf(at path: TreePath) -> TreeLeaf? { node(at: path).leaf }
    public func exists(at path: TreePath) -> Bool { !node(at: path).isEmpty }
    public func hasChildren(at path: TreePath) -> Bool { node(at: path).children != nil }
    public func priority(at path: TreePath) -> TreePriority? { node(at: path).priority }
}
