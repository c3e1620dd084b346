import HatoModel
import HatoRules

/// The cached facts about one node; nil: unknown.
struct NodeFacts {
    fileprivate var leaf: TreeLeaf??
    fileprivate var exists: Bool?
    fileprivate var hasChildren: Bool?
    fileprivate var priority: TreePriority??
    fileprivate var etag: String?

    /// Whether nothing is known.
    var isEmpty: Bool { exists == nil && leaf == nil && hasChildren == nil && priority == nil && etag == nil }

    /// Removes facts that a change at, above or below the node may have changed.
    mutating func invalidate(_ change: PathChange, depth: Int) {
        if leaf != nil, RulesRead.Aspect.value.isTouched(at: depth, by: change) { leaf = nil }
        if exists != nil, RulesRead.Aspect.existence.isTouched(at: depth, by: change) { exists = nil }
        if hasChildren != nil, RulesRead.Aspect.children.isTouched(at: depth, by: change) { hasChildren = nil }
        if priority != nil, RulesRead.Aspect.priority.isTouched(at: depth, by: change) { priority = nil }
        etag = nil
    }
}

/// One kind of fact about a node.
struct NodeFact<Value: Sendable>: Sendable {
    /// The value for a missing node.
    let ofNothing: Value
    let read: @Sendable (NodeFacts) -> Value?
    let write: @Sendable (inout NodeFacts, Value) -> Void
    /// Whether a value is small enough to be cached, and costs enough.
    var isCached: @Sendable (Value) -> Bool = { _ in true }
}

/// The kinds of facts about nodes.
enum NodeFactKinds {
    static let leaf = NodeFact<TreeLeaf?>(
        ofNothing: nil, read: { $0.leaf }, write: { $0.leaf = .some($1) }, isCached: { $0?.isShort != false })
    static let existence = NodeFact(ofNothing: false, read: { $0.exists }, write: { $0.exists = $1 })
    static let children = NodeFact(ofNothing: false, read: { $0.hasChildren }, write: { $0.hasChildren = $1 })
    static let priority = NodeFact<TreePriority?>(
        ofNothing: nil, read: { $0.priority }, write: { $0.priority = .some($1) },
        isCached: { $0?.leaf.isShort != false })
    /// Only of large nodes: they are hashed once, however many writes need the etag before it changes, because every
    /// other write waits meanwhile.
    static let etag = NodeFact(
        ofNothing: StoredEtag(etag: SimpleHash.etag(.empty), value: .empty),
        read: { $0.etag.map { StoredEtag(etag: $0, value: nil) } },
        write: { $0.etag = $1.etag }, isCached: { $0.value == nil })
}

extension TreeLeaf {
    private static let textBytesMax = 256

    /// Longer texts are not cached.
    fileprivate var isShort: Bool {
        if case .string(let text) = self { text.utf8.count <= Self.textBytesMax } else { true }
    }
}
