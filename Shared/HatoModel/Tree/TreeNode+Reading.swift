extension TreeNode {
    /// The node as plain JSON: without priorities, and an object whose keys are the indexes of an array as that array
    /// (spec §2.1).
    public var plain: JSONValue {
        switch self {
        case .empty: .null
        case .leaf(let leaf, _): leaf.json
        case .object(let children, _):
            if let count = children.arrayCount {
                .array(children.elements(count: count) { $0.plain })
            } else {
                .object(JSONObject(uniqueMembers: children.map { JSONObject.Member($0.key.text, $0.node.plain) }))
            }
        }
    }

    /// The node in export format: with `.priority` and `.value`, never with arrays.
    public var export: JSONValue {
        switch self {
        case .empty: return .null
        case .leaf(let leaf, nil): return leaf.json
        case .leaf(let leaf, let priority?):
            return .object(
                JSONObject(uniqueMembers: [.init(".value", leaf.json), .init(".priority", priority.leaf.json)]))
        case .object(let children, let priority):
            var members: [JSONObject.Member] = []
            members.reserveCapacity(children.count + 1)
            if let priority { members.append(.init(".priority", priority.leaf.json)) }
            for child in children { members.append(.init(child.key.text, child.node.export)) }
            return .object(JSONObject(uniqueMembers: members))
        }
    }
}

extension TreeChildren {
    /// The length of the array as which these children are read; nil when they stay an object: all keys must be plain
    /// indexes, and more than half of the array must exist.
    public var arrayCount: Int? {
        // Plain indexes are in numeric order, after every other integer-like key: first and last key decide most cases.
        guard let first, let last, KeyOrder.arrayIndex(first.key.text) != nil,
            let greatest = KeyOrder.arrayIndex(last.key.text), greatest < 2 * count
        else { return nil }
        return allSatisfy { KeyOrder.arrayIndex($0.key.text) != nil } ? greatest + 1 : nil
    }

    fileprivate func elements(count: Int, _ value: (TreeNode) -> JSONValue) -> [JSONValue] {
        var elements = [JSONValue](repeating: .null, count: count)
        for child in self {
            if let index = KeyOrder.arrayIndex(child.key.text) { elements[index] = value(child.node) }
        }
        return elements
    }
}
