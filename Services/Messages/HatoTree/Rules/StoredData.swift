public import HatoModel
public import HatoRules

/// The stored tree for rules: every read is one or two look-ups, whatever the size of the node.
public struct StoredData: RulesData {
    let nodes: NodeReader
    /// Nil: nothing is cached.
    private let memory: DataMemory?
    private let parents: ParentMemory?

    /// The stored data of a database, as `reader` reads it.
    public init(_ reader: any TreeReader, codec: TreeKeyCodec) {
        self.init(reader, codec: codec, memory: nil, parents: nil)
    }

    /// For the turn of a write that is planned with these caches, before it is planned.
    init(_ reader: any TreeReader, codec: TreeKeyCodec, memory: DataMemory?, parents: ParentMemory?) {
        nodes = NodeReader(reader, codec: codec)
        self.memory = memory
        self.parents = parents
    }

    public func leaf(at path: TreePath) throws -> TreeLeaf? {
        try remembering(KnownAspects.leaf, at: path) { try nodes.leaf(at: path) }
    }

    public func exists(at path: TreePath) throws -> Bool {
        try remembering(KnownAspects.existence, at: path) {
            // Rules mostly read leaves (`members/uid`), and a look-up costs less than starting a scan.
            let key = nodes.codec.key(of: path)
            if try nodes.reader.holds(key.span) { return true }
            return try hasRow(below: key)
        }
    }

    public func hasChildren(at path: TreePath) throws -> Bool {
        try remembering(KnownAspects.children, at: path) { try hasRow(below: nodes.codec.key(of: path)) }
    }

    public func priority(at path: TreePath) throws -> TreePriority? {
        try remembering(KnownAspects.priority, at: path) { try nodes.priority(at: path) }
    }

    /// Returns the cached value, or reads and caches it.
    private func remembering<Value>(
        _ aspect: KnownAspect<Value>, at path: TreePath, _ find: () throws -> Value
    ) rethrows -> Value {
        guard let memory else { return try find() }
        switch memory.look(at: path, aspect) {
        case .known(let value): return value
        case .lacking: return aspect.ofNothing
        case .unknown: break
        }
        // The node of a push never existed, and nothing in it: this need not be cached node by node.
        if let depth = parents?.lackingDepth(of: PlacedPath(path, nodes.codec)) {
            memory.rememberLack(of: path.prefix(depth))
            return aspect.ofNothing
        }
        let found = try find()
        memory.remember(found, at: path, aspect)
        return found
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
