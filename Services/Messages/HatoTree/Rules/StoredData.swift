public import HatoModel
public import HatoRules

/// The tree as it is stored, for rules: every question is one or two look-ups, however much lies below.
public struct StoredData: RulesData {
    let nodes: NodeReader

    public init(_ reader: any TreeReader, codec: TreeKeyCodec) {
        nodes = NodeReader(reader, codec: codec)
    }

    public func leaf(at path: TreePath) throws -> TreeLeaf? { try nodes.leaf(at: path) }

    public func exists(at path: TreePath) throws -> Bool {
        // Rules mostly ask for leaves (`members/uid`), and looking one up costs less than beginning a scan.
        let key = nodes.codec.key(of: path)
        if try nodes.reader.get(key.span) != nil { return true }
        return try hasRow(below: key)
    }

    public func hasChildren(at path: TreePath) throws -> Bool { try hasRow(below: nodes.codec.key(of: path)) }

    public func priority(at path: TreePath) throws -> TreePriority? { try nodes.priority(at: path) }

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
