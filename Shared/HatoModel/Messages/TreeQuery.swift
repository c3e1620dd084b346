/// Which children of a node are asked for, and in which order (spec §4, protocol §5): order, range, limit.
///
/// A query that was made from JSON is valid. Two equal queries select the same children of every node, however they
/// were written: `equalTo` is `startAt` and `endAt`, and the names `[MIN_NAME]` and `[MAX_NAME]` become open cuts.
public struct TreeQuery: Sendable, Hashable {
    /// What the children are sorted by.
    public var order: Order
    /// Nil: from the lowest child.
    public var start: Cut?
    /// Nil: to the highest child.
    public var end: Cut?
    /// How many children at most, and from which end; nil: all.
    public var limit: Limit?
    private let namesOrder: Bool

    /// - Parameter order: nil: none is named, which is that of priorities.
    public init(order: Order? = nil, start: Cut? = nil, end: Cut? = nil, limit: Limit? = nil) {
        self.order = order ?? .priority
        namesOrder = order != nil
        self.start = start
        self.end = end
        self.limit = limit
    }

    /// Whether it says nothing, as a plain read does (spec §4.3: `{}`): then it stands for the node itself, whatever
    /// that is. Who names an order asks for children, also where it is that of priorities (§4.1).
    public var isDefault: Bool { !namesOrder && selectsEverything }

    /// By what children are ordered; ties are settled by key order.
    public enum Order: Sendable, Hashable {
        /// By the value at this path below each child, which has at least one key.
        case child(TreePath)
        case key
        case value
        /// What Firebase does when no `orderBy` is given.
        case priority
    }

    /// How many children at most, and from which end.
    public enum Limit: Sendable, Hashable {
        case first(Int)
        case last(Int)

        /// How many children at most.
        public var count: Int {
            switch self {
            case .first(let count), .last(let count): count
            }
        }
    }

    /// A place between two neighbours of the order, never on a child: bounds, inclusive or not, come down to these.
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

    /// Where a cut lies among the children with its value. The key of a bound need not be a legal one (spec §4.3: older
    /// clients send keys of 786 characters); it is compared and never looked up.
    public enum KeyCut: Sendable, Hashable {
        case beforeAll
        case before(TreeKey)
        case after(TreeKey)
        case afterAll

        /// The cut below a key; the two sentinels are no keys but the ends.
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

    /// Whether every child is selected, so that only the order remains.
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
    /// Whether a child at this place lies in the range; limits are another matter.
    public func contains(_ place: SortPlace) -> Bool {
        if let start, !start.isBelow(place) { return false }
        if let end, end.isBelow(place) { return false }
        return true
    }

    /// What a child is ordered by, for a child that is there.
    public func sortValue(of child: TreeNode) -> SortValue {
        switch order {
        case .key: .null
        case .value: SortValue(child)
        case .priority: SortValue(child.priority)
        case .child(let path): SortValue(child.node(at: path))
        }
    }

    /// The place of a child in the order of the query.
    public func place(of child: TreeChild) -> SortPlace { SortPlace(sortValue(of: child.node), child.key) }

    /// The children of `node` that this query selects, in query order.
    public func select(from node: TreeNode) -> [TreeChild] {
        var found: [(place: SortPlace, child: TreeChild)] = []
        for child in node.children ?? TreeChildren(sorted: []) {
            let place = place(of: child)
            if contains(place) { found.append((place, child)) }
        }
        if order != .key { found.sort { $0.place < $1.place } }
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
    /// Whether a child at this place stands above the cut.
    public func isBelow(_ place: SortPlace) -> Bool {
        let order = SortValue.compare(value, place.value)
        if order != 0 { return order < 0 }
        return switch key {
        case .beforeAll: true
        case .before(let key): place.key >= key
        case .after(let key): place.key > key
        case .afterAll: false
        }
    }
}
