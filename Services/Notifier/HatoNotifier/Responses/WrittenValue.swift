import HatoModel

/// Compares what is written with what stands in the tree.
enum WrittenValue {
    /// Whether a node is what writing `value` makes: the same leaves, and a number for a timestamp. Priorities do not
    /// count.
    static func isWritten(_ value: JSONValue, in found: JSONValue) -> Bool {
        let value = leaf(value)
        if value.object?[".sv"] != nil { return found.number != nil }
        guard let wanted = children(of: value) else { return value == found }
        guard let present = children(of: found), present.count == wanted.count else { return false }
        return wanted.allSatisfy { key, child in present[key].map { isWritten(child, in: $0) } ?? false }
    }

    /// A leaf without its priority.
    private static func leaf(_ value: JSONValue) -> JSONValue { value.object?[".value"] ?? value }

    /// The children that a node has; nil for a leaf. Null is a node without any.
    private static func children(of value: JSONValue) -> [String: JSONValue]? {
        let members: [(String, JSONValue)]
        switch value {
        case .null: return [:]
        case .array(let values): members = values.enumerated().map { (String($0), $1) }
        case .object(let object): members = object.members.filter { $0.name != ".priority" }.map { ($0.name, $0.value) }
        case .bool, .number, .string: return nil
        }
        return Dictionary(members.filter { !isNothing($0.1) }) { _, last in last }
    }

    private static func isNothing(_ value: JSONValue) -> Bool {
        let value = leaf(value)
        if value.object?[".sv"] != nil { return false }
        return children(of: value)?.isEmpty ?? false
    }
}
