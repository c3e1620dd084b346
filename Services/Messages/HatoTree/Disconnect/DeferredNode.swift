public import HatoModel

/// A node that is written later, its server values not resolved yet (spec realtime-database §6).
///
/// Like a `TreeNode` it holds no empty children, and a node without a value has no priority; writing into it follows
/// the same rules (spec §2).
public struct DeferredNode: Sendable, Hashable {
    private enum Content: Sendable, Hashable {
        case empty
        /// A boolean, a number, a string, or an object with `.sv` as its only member.
        case leaf(JSONValue)
        case object([TreeKey: DeferredNode])
    }

    private var content: Content
    private var priority: JSONValue?
    /// About its size in memory.
    public private(set) var byteCount: Int

    /// The size of a node besides its key, its value and its priority.
    private static let nodeBytes = 64

    /// A node that writes nothing.
    public static let empty = DeferredNode(.empty)

    private init(_ content: Content, priority: JSONValue? = nil) {
        self.content = content
        self.priority = priority
        byteCount = Self.nodeBytes + (priority.map(Self.bytes) ?? 0)
        switch content {
        case .empty: break
        case .leaf(let leaf): byteCount += Self.bytes(leaf)
        case .object(let children):
            for (key, child) in children { byteCount += key.text.utf8.count + child.byteCount }
        }
    }

    /// Takes a value that `TreeNode(json:at:serverValues:)` has accepted.
    init(checked json: JSONValue) {
        switch json {
        case .null: self = .empty
        case .bool, .number, .string: self.init(.leaf(json))
        case .array(let elements):
            self.init(
                children: elements.enumerated().map { (TreeKey(index: $0.offset), DeferredNode(checked: $0.element)) })
        case .object(let object): self.init(checked: object)
        }
    }

    private init(checked object: JSONObject) {
        var children: [(TreeKey, DeferredNode)] = []
        var (leaf, priority): (JSONValue?, JSONValue?)
        for member in object.members {
            switch member.name {
            case ".priority": priority = member.value.isNull ? nil : member.value
            case ".value": if !member.value.isNull { leaf = member.value }
            case ".sv": leaf = [".sv": member.value]
            default: children.append((TreeKey(unchecked: member.name), DeferredNode(checked: member.value)))
            }
        }
        if let leaf {
            self.init(.leaf(leaf), priority: priority)
        } else {
            self.init(children: children, priority: priority)
        }
    }

    private init(children: [(TreeKey, DeferredNode)], priority: JSONValue? = nil) {
        let children = children.filter { !$0.1.isEmpty }
        if children.isEmpty {
            self = .empty
        } else {
            self.init(.object(Dictionary(children) { $1 }), priority: priority)
        }
    }

    private static func bytes(_ primitive: JSONValue) -> Int { primitive.string?.utf8.count ?? 16 }
}

extension DeferredNode {
    /// Whether it writes nothing.
    public var isEmpty: Bool { content == .empty }

    var isLeaf: Bool { if case .leaf = content { true } else { false } }

    /// Empty for a leaf.
    var children: [TreeKey: DeferredNode] { if case .object(let children) = content { children } else { [:] } }

    /// The value for a write, in export format; object members in key order.
    public var json: JSONValue {
        switch content {
        case .empty: return .null
        case .leaf(let leaf): return priority.map { [".value": leaf, ".priority": $0] } ?? leaf
        case .object(let children):
            var object = JSONObject()
            if let priority { object.append(".priority", priority) }
            for (key, child) in children.sorted(by: { $0.key < $1.key }) { object.append(key.text, child.json) }
            return .object(object)
        }
    }

    /// Writes `node` at `path`, like `TreeNode.setting`; at a priority path `node` is the priority as a leaf. Takes
    /// time by the depth of the path, not by the number of children.
    mutating func set(_ node: DeferredNode, at path: TreePath) {
        set(node, at: path.keys[...], isPriority: path.isPriority)
    }

    private mutating func set(_ node: DeferredNode, at keys: ArraySlice<TreeKey>, isPriority: Bool) {
        guard let key = keys.first else {
            if isPriority { setPriority(node) } else { self = node }
            return
        }
        guard var children = takeChildren() else {
            var child = DeferredNode.empty
            child.set(node, at: keys.dropFirst(), isPriority: isPriority)
            if !child.isEmpty { self = DeferredNode(.object([key: child]), priority: priority) }
            return
        }
        var child = DeferredNode.empty
        if let before = children.removeValue(forKey: key) {
            byteCount -= key.text.utf8.count + before.byteCount
            child = before
        }
        child.set(node, at: keys.dropFirst(), isPriority: isPriority)
        if !child.isEmpty {
            byteCount += key.text.utf8.count + child.byteCount
            children[key] = child
        }
        if children.isEmpty { self = .empty } else { content = .object(children) }
    }

    /// The children, of which the node then holds no reference any more: so they are changed without a copy. Nil of a
    /// node without children.
    private mutating func takeChildren() -> [TreeKey: DeferredNode]? {
        guard case .object(let children) = content else { return nil }
        content = .empty
        return children
    }

    private mutating func setPriority(_ node: DeferredNode) {
        if isEmpty { return }
        byteCount -= priority.map(Self.bytes) ?? 0
        if case .leaf(let value) = node.content { priority = value } else { priority = nil }
        byteCount += priority.map(Self.bytes) ?? 0
    }
}

/// One path that is written later.
public struct DeferredWrite: Sendable, Hashable {
    /// May be a priority path: then `node` is that priority as a leaf.
    public var path: TreePath
    /// The node to write; its server values are resolved when it is written.
    public var node: DeferredNode

    init(path: TreePath, node: DeferredNode) {
        self.path = path
        self.node = node
    }

    /// Restores a write from its `path` and its `node.json` when it was stored.
    public init(path: TreePath, kept json: JSONValue) {
        self.init(path: path, node: DeferredNode(checked: json))
    }

    /// The deferred writes of a mutation, after validating it. A push or a condition has no meaning later: only a set
    /// and an update are allowed.
    ///
    /// - Throws: `TreeError`.
    public static func all(of mutation: Mutation) throws -> [DeferredWrite] {
        // No row is read or written, so any prefix is right.
        let codec = TreeKeyCodec(prefix: [0])
        let source = StoredNumberSource(reader: EmptyTreeReader(), codec: codec, base: mutation.path, now: 0)
        let targets = try WritePlanner.targets(of: mutation, source)
        let values: [JSONValue] =
            switch mutation.operation {
            case .set(let value), .push(let value, _, _): [value]
            case .update(let values): values.members.map(\.value)
            }
        return zip(targets, values).map { DeferredWrite(path: $0.path, node: DeferredNode(checked: $1)) }
    }
}

extension DeferredWrite {
    /// The bytes that `all` would keep of a mutation, plus those of the nulls and empty objects that it would drop,
    /// without building anything; beyond `limit` the result is not exact.
    public static func byteCount(of mutation: Mutation, upTo limit: Int) -> Int {
        var left = limit
        switch mutation.operation {
        case .set(let value), .push(let value, _, _): DeferredNode.takeBytes(of: value, from: &left)
        case .update(let values):
            for member in values.members where left >= 0 {
                left -= member.name.utf8.count
                DeferredNode.takeBytes(of: member.value, from: &left)
            }
        }
        return limit - left
    }
}

extension DeferredNode {
    /// Subtracts the `byteCount` that a value would have from `left`, until nothing is left.
    fileprivate static func takeBytes(of json: JSONValue, from left: inout Int) {
        left -= nodeBytes
        switch json {
        case .null: return
        case .bool, .number, .string: left -= bytes(json)
        case .array(let elements):
            for element in elements where left >= 0 { takeBytes(of: element, from: &left) }
        case .object(let object):
            for member in object.members where left >= 0 {
                switch member.name {
                case ".priority", ".value": left -= bytes(member.value)
                case ".sv": left -= bytes(json)
                default:
                    left -= member.name.utf8.count
                    takeBytes(of: member.value, from: &left)
                }
            }
        }
    }
}

/// The base of increments while a value is only validated.
private struct EmptyTreeReader: TreeReader {
    func get(_: Span<UInt8>) throws -> [UInt8]? { nil }

    func scan(
        lower _: [UInt8], upper _: [UInt8]?, reverse _: Bool, _: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws {}
}
