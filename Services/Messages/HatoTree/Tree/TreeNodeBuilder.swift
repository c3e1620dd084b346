import HatoModel

/// Builds a node from its rows, which come in key order.
struct TreeNodeBuilder {
    private struct Frame {
        var key: TreeKey
        var children: [TreeChild] = []
        var leaf: TreeLeaf?
        var priority: TreePriority?

        var node: TreeNode {
            if let leaf { return .leaf(leaf, priority: priority) }
            return children.isEmpty ? .empty : .object(TreeChildren(sorted: children), priority: priority)
        }
    }

    /// The number of keys of the cursor's rows above the built node.
    let depth: Int
    private var frames = [Frame(key: TreeKey(unchecked: ""))]

    init(depth: Int = 0) { self.depth = depth }

    /// Adds the cursor's current row; `kept` is the result of `RowCursor.advance` for it.
    mutating func append(_ value: Span<UInt8>, at cursor: RowCursor, kept: Int) throws {
        try append(TreeLeafCodec.decode(value), at: cursor, kept: kept)
    }

    /// The same with another value in place of the row's; a number or a text for a priority.
    mutating func append(_ leaf: TreeLeaf, at cursor: RowCursor, kept: Int) throws {
        while frames.count > max(kept - depth, 0) + 1 { closeFrame() }
        let row = cursor.row.span
        for index in depth + frames.count - 1..<cursor.depth {
            guard let key = TreeKeyCodec.decode(row.extracting(cursor.range(index))) else {
                throw TreeError.corrupted("a row whose key cannot be read")
            }
            frames.append(Frame(key: key))
        }
        if cursor.isPriority {
            frames[frames.count - 1].priority = TreePriority(leaf)
        } else {
            frames[frames.count - 1].leaf = leaf
        }
    }

    consuming func finish() -> TreeNode {
        while frames.count > 1 { closeFrame() }
        return frames[0].node
    }

    private mutating func closeFrame() {
        let frame = frames.removeLast()
        frames[frames.count - 1].children.append(TreeChild(key: frame.key, node: frame.node))
    }
}
