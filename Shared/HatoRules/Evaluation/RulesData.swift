public import HatoModel

/// The data that rules are evaluated over: a tree, read path by path, so that reading one child never reads its
/// siblings.
///
/// Paths name nodes, never priorities. An error of these methods ends the whole evaluation without a verdict.
public protocol RulesData {
    /// The primitive at `path`; nil where the node is missing or an object.
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
