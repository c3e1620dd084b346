/// The order of values (spec realtime-database §3.2): null, false, true, numbers, strings by UTF-16 code unit, objects
/// (all equal to each other). Priorities do not matter.
public enum ValueOrder {
    /// Negative when `left` comes first, zero when neither does, positive when `right` comes first.
    public static func compare(_ left: TreeNode, _ right: TreeNode) -> Int {
        switch (left, right) {
        case (.leaf(let left, _), .leaf(let right, _)): compare(left, right)
        default: rank(left) - rank(right)
        }
    }

    /// Negative, zero or positive when `left` sorts before, with or after `right`.
    public static func compare(_ left: TreeLeaf, _ right: TreeLeaf) -> Int {
        switch (left, right) {
        case (.bool(let left), .bool(let right)): (left ? 1 : 0) - (right ? 1 : 0)
        case (.number(let left), .number(let right)): left < right ? -1 : left == right ? 0 : 1
        case (.string(let left), .string(let right)): UTF16Order.compare(left, right)
        default: rank(left) - rank(right)
        }
    }

    /// The order of priorities: none, numbers, strings.
    public static func compare(_ left: TreePriority?, _ right: TreePriority?) -> Int {
        switch (left, right) {
        case (nil, nil): 0
        case (nil, _?): -1
        case (_?, nil): 1
        case (let left?, let right?): compare(left.leaf, right.leaf)
        }
    }

    private static func rank(_ node: TreeNode) -> Int {
        switch node {
        case .empty: 0
        case .leaf(let leaf, _): rank(leaf)
        case .object: 4
        }
    }

    private static func rank(_ leaf: TreeLeaf) -> Int {
        switch leaf {
        case .bool: 1
        case .number: 2
        case .string: 3
        }
    }
}
