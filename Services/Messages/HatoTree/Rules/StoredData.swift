public import HatoModel
public import HatoRules

/// The stored tree for rules: every read is one or two look-ups, whatever the size of the node.
public struct StoredData: RulesData {
    let nodes: NodeReader
    /// Nil: nothing is cached.
    private let turn: Turn?

    /// The stored data of a database, as `reader` reads it.
    public init(_ reader: any TreeReader, codec: TreeKeyCodec) {
        nodes = NodeReader(reader, codec: codec)
        turn = nil
    }

    /// The stored data in the turn of a write.
    init(in turn: Turn, codec: TreeKeyCodec) {
        nodes = NodeReader(turn, codec: codec)
        self.turn = turn
    }

    public func leaf(at path: TreePath) throws -> TreeLeaf? {
        try fact(NodeFactKinds.leaf, at: path) { try nodes.leaf(at: path) }
    }

    public func exists(at path: TreePath) throws -> Bool {
        try fact(NodeFactKinds.existence, at: path) {
            // Rules mostly read leaves (`members/uid`), and a look-up costs less than starting a scan.
            let key = nodes.codec.key(of: path)
            if try nodes.reader.holds(key.span) { return true }
            return try hasRow(below: key)
        }
    }

    public func hasChildren(at path: TreePath) throws -> Bool {
        try fact(NodeFactKinds.children, at: path) { try hasRow(below: nodes.codec.key(of: path)) }
    }

    public func priority(at path: TreePath) throws -> TreePriority? {
        try fact(NodeFactKinds.priority, at: path) { try nodes.priority(at: path) }
    }

    private func fact<Value>(
        _ fact: NodeFact<Value>, at path: TreePath, _ read: () throws -> Value
    ) rethrows -> Value {
        guard let turn else { return try read() }
        return try turn.fact(fact, at: path, read)
    }

    private func hasRow(below key: [UInt8]) throws -> Bool {
        var found = false
        try nodes.reader.scan(
            lower: key + [TreeKeyCodec.priorityMark + 1], upper: TreeKeyCodec.upperBound(of: key), reverse: false
        ) { _, _ in
            found = true
            return .stop
        }
        return found
    }
}
