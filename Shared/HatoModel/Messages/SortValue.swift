/// The value by which a child is ordered; only its order matters (spec §3.2).
///
/// The order is null, then `false`, `true`, numbers ascending, strings by UTF-16 code unit, and objects, which are all
/// equal.
public enum SortValue: Sendable, Hashable {
    case null
    case leaf(TreeLeaf)
    case object

    /// The value by which a node is ordered.
    public init(_ node: TreeNode) {
        switch node {
        case .empty: self = .null
        case .leaf(let leaf, _): self = .leaf(leaf)
        case .object: self = .object
        }
    }

    /// The value by which a priority is ordered.
    public init(_ priority: TreePriority?) {
        self = priority.map { .leaf($0.leaf) } ?? .null
    }

    /// Negative when `left` comes first, zero when neither does, positive when `right` comes first.
    public static func compare(_ left: SortValue, _ right: SortValue) -> Int {
        switch (left, right) {
        case (.leaf(let left), .leaf(let right)): ValueOrder.compare(left, right)
        default: left.rank - right.rank
        }
    }

    private var rank: Int {
        switch self {
        case .null: 0
        case .leaf: 1
        case .object: 2
        }
    }
}

/// The position of a child in the order of a query: its sort value, then its key.
public struct SortKey: Sendable, Hashable, Comparable {
    /// The value, which decides first.
    public var value: SortValue
    /// The key, which decides between equal values.
    public var key: TreeKey

    public init(_ value: SortValue, _ key: TreeKey) {
        self.value = value
        self.key = key
    }

    public static func < (left: SortKey, right: SortKey) -> Bool {
        let order = SortValue.compare(left.value, right.value)
        return order == 0 ? left.key < right.key : order < 0
    }
}
