import HatoModel

/// Compares what is written with what stands in the tree.
enum WrittenValue {
    /// How far the clocks of two services may be apart, in milliseconds.
    private static let clocks: Int64 = 60_000

    /// Whether a node is what writing `value` since a time makes: the same leaves, and no older number for a timestamp.
    /// Priorities do not count. `time` in milliseconds since 1970.
    static func isWritten(_ value: JSONValue, in found: JSONValue, since time: Int64) -> Bool {
        let value = leaf(value)
        if value.object?[".sv"] != nil {
            let (oldest, isBefore) = time.subtractingReportingOverflow(clocks)
            return found.number.map { isBefore || $0 >= Double(oldest) } ?? false
        }
        guard let wanted = children(of: value) else { return value == found }
        guard let present = children(of: found), present.count == wanted.count else { return false }
        return wanted.allSatisfy { key, child in present[key].map { isWritten(child, in: $0, since: time) } ?? false }
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
