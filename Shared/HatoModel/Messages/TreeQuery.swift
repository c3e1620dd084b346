/// Selects children of a node and their order (spec §4, protocol §5): order, range, limit.
///
/// A query made from JSON is valid. Two equal queries select the same children of every node, whatever their JSON:
/// `equalTo` is `startAt` and `endAt`, and the names `[MIN_NAME]` and `[MAX_NAME]` become open cuts.
public struct TreeQuery: Sendable, Hashable {
    /// The order of the children.
    public var order: Order
    /// Nil: from the lowest child.
    public var start: Cut?
    /// Nil: to the highest child.
    public var end: Cut?
    /// The maximum number of children, and from which end; nil: all.
    public var limit: Limit?
    private let namesOrder: Bool

    /// - Parameter order: nil: none is named; the order is that of priorities.
    public init(order: Order? = nil, start: Cut? = nil, end: Cut? = nil, limit: Limit? = nil) {
        self.order = order ?? .priority
        namesOrder = order != nil
        self.start = start
        self.end = end
        self.limit = limit
    }

    /// Whether it selects nothing in particular, as a plain read (spec §4.3: `{}`): then it means the node itself,
    /// whatever that is. A query that names an order selects children, also when the order is that of priorities
    /// (§4.1).
    public var isDefault: Bool { !namesOrder && selectsEverything }

    /// The order of children; ties are settled by key order.
    public enum Order: Sendable, Hashable {
        /// By the value at this path below each child, which has at least one key.
        case child(TreePath)
        case key
        case value
        /// Firebase's order when no `orderBy` is given.
        case priority
    }

    /// The maximum number of children, and from which end.
    public enum Limit: Sendable, Hashable {
        case first(Int)
        case last(Int)

        /// The maximum number of children.
        public var count: Int {
            switch self {
            case .first(let count), .last(let count): count
            }
        }
    }

    /// A position between two neighbours of the order, never on a child: inclusive and exclusive bounds are represented
    /// by cuts.
    public struct Cut: Sendable, Hashable {
        /// `.null` when the order is by key.
        public var value: SortValue
        /// The key that decides between equal values.
        public var key: KeyCut

        public init(_ value: SortValue, _ key: KeyCut) {
            self.value = value
            self.key = key
        }
    }

    /// The position of a cut among the children with its value. The key of a bound need not be a legal one (spec §4.3:
    /// older clients send keys of 786 characters); it is compared and never looked up.
    public enum KeyCut: Sendable, Hashable {
        case beforeAll
        case before(TreeKey)
        case after(TreeKey)
        case afterAll

        /// The cut before a key; the two sentinels are no keys but the ends.
        static func below(_ name: String) -> KeyCut { end(name) ?? .before(TreeKey(unchecked: name)) }

        static func above(_ name: String) -> KeyCut { end(name) ?? .after(TreeKey(unchecked: name)) }

        private static func end(_ name: String) -> KeyCut? {
            switch name {
            case KeyOrder.minName: .beforeAll
            case KeyOrder.maxName: .afterAll
            default: nil
            }
        }
    }

    /// Whether every child is selected, so that only the order is left.
    public var selectsEverything: Bool { start == nil && end == nil && limit == nil }

    public static func == (left: TreeQuery, right: TreeQuery) -> Bool {
        left.order == right.order && left.start == right.start && left.end == right.end && left.limit == right.limit
            && left.isDefault == right.isDefault
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(order)
        hasher.combine(start)
        hasher.combine(end)
        hasher.combine(limit)
        hasher.combine(isDefault)
    }
}

extension TreeQuery {
    /// Whether a child at this position is in the range; limits are not considered.
    public func contains(_ sortKey: SortKey) -> Bool {
        if let start, !start.isBelow(sortKey) { return false }
        if let end, end.isBelow(sortKey) { return false }
        return true
    }

    /// The value by which an existing child is ordered.
    public func sortValue(of child: TreeNode) -> SortValue {
        switch order {
        case .key: .null
        case .value: SortValue(child)
        case .priority: SortValue(child.priority)
        case .child(let path): SortValue(child.node(at: path))
        }
    }

    /// The position of a child in the order of the query.
    public func sortKey(of child: TreeChild) -> SortKey { SortKey(sortValue(of: child.node), child.key) }

    /// The children of `node` that this query selects, in query order.
    public func select(from node: TreeNode) -> [TreeChild] {
        var found: [(sortKey: SortKey, child: TreeChild)] = []
        for child in node.children ?? TreeChildren(sorted: []) {
            let sortKey = sortKey(of: child)
            if contains(sortKey) { found.append((sortKey, child)) }
        }
        if order != .key { found.sort { $0.sortKey < $1.sortKey } }
        let kept =
            switch limit {
            case nil: found[...]
            case .first(let count): found.prefix(count)
            case .last(let count): found.suffix(count)
            }
        return kept.map(\.child)
    }
}

extension TreeQuery.Cut {
    /// Whether a child at this position is above the cut.
    public func isBelow(_ sortKey: SortKey) -> Bool {
        let order = SortValue.compare(value, sortKey.value)
        if order != 0 { return order < 0 }
        return switch key {
        case .beforeAll: true
        case .before(let key): sortKey.key >= key
        case .after(let key): sortKey.key > key
        case .afterAll: false
        }
    }
}
