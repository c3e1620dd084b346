public import HatoModel
public import HatoRules

/// The tree as it is stored, for rules: every question is one or two look-ups, however much lies below.
public struct StoredData: RulesData {
    let nodes: NodeReader
    /// Nil: nothing is remembered.
    private let memory: DataMemory?
    private let parents: ParentMemory?

    public init(_ reader: any TreeReader, codec: TreeKeyCodec) {
        self.init(reader, codec: codec, memory: nil, parents: nil)
    }

    /// For the turn of a write that is planned with these memories, before it is planned.
    init(_ reader: any TreeReader, codec: TreeKeyCodec, memory: DataMemory?, parents: ParentMemory?) {
        nodes = NodeReader(reader, codec: codec)
        self.memory = memory
        self.parents = parents
    }

    public func leaf(at path: TreePath) throws -> TreeLeaf? {
        guard let memory else { return try nodes.leaf(at: path) }
        if surelyLacks(path) { return nil }
        return try memory.value(at: path, \.leaf, keeping: { $0?.isShort != false }) { try nodes.leaf(at: path) }
    }

    public func exists(at path: TreePath) throws -> Bool {
        guard let memory else { return try hasAnything(at: path) }
        if surelyLacks(path) { return false }
        return try memory.value(at: path, \.exists) { try hasAnything(at: path) }
    }

    /// What is pushed was never there, nor was anything in it: that need not be remembered place by place.
    private func surelyLacks(_ path: TreePath) -> Bool {
        parents?.surelyLacks(PlacedPath(path, nodes.codec)) == true
    }

    private func hasAnything(at path: TreePath) throws -> Bool {
        // Rules mostly ask for leaves (`members/uid`), and looking one up costs less than beginning a scan.
        let key = nodes.codec.key(of: path)
        if try nodes.reader.holds(key.span) { return true }
        return try hasRow(below: key)
    }

    public func hasChildren(at path: TreePath) throws -> Bool {
        guard let memory else { return try hasRow(below: nodes.codec.key(of: path)) }
        if surelyLacks(path) { return false }
        return try memory.value(at: path, \.hasChildren) { try hasRow(below: nodes.codec.key(of: path)) }
    }

    public func priority(at path: TreePath) throws -> TreePriority? {
        guard let memory else { return try nodes.priority(at: path) }
        if surelyLacks(path) { return nil }
        return try memory.value(at: path, \.priority, keeping: { $0?.leaf.isShort != false }) {
            try nodes.priority(at: path)
        }
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

extension TreeLeaf {
    fileprivate var isShort: Bool {
        if case .string(let text) = self { text.utf8.count <= DataMemory.textBytesMax } else { true }
    }
}
