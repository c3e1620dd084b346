extension TreeNode {
    /// Normalises a JSON value from a client (spec realtime-database §2): empties vanish, arrays become objects,
    /// `.value` and `.priority` take effect, wrong keys and values are refused with their path, and so are server
    /// values.
    ///
    /// - Parameter path: The path of the value: for messages, and for the limit of depth.
    /// - Throws: `ArgumentError`.
    public init(json: JSONValue, at path: TreePath = .root) throws {
        try self.init(json: json, at: path, serverValues: NoServerValues())
    }

    /// The same, with server values, each of which gets its number from the source.
    ///
    /// - Throws: `ArgumentError`, or the errors of the source.
    public init(json: JSONValue, at path: TreePath, serverValues: some ServerValueSource) throws {
        var normalizer = NodeNormalizer(path: path, source: serverValues)
        self = try normalizer.node(json)
    }
}

extension TreePriority {
    /// The priority in a JSON value at `path` (which ends in `.priority`); nil for null.
    ///
    /// - Throws: `ArgumentError` for a value that is no priority, and the errors of `serverValues`.
    public static func normalized(
        json: JSONValue, at path: TreePath, serverValues: some ServerValueSource
    ) throws -> TreePriority? {
        try NodeNormalizer(path: path.node, source: serverValues).priority(json)
    }
}

/// Resolves server values while a written value is read.
public protocol ServerValueSource {
    func number(for value: ServerValue, at location: ServerValueLocation) throws -> Double
}

/// Refuses server values, where only plain data is allowed.
private struct NoServerValues: ServerValueSource {
    func number(for _: ServerValue, at _: ServerValueLocation) throws -> Double {
        throw ArgumentError(reason: "invalid_server_value", "Server values are only allowed in written values")
    }
}

/// Walks a JSON value once and tracks its keys.
private struct NodeNormalizer<Source: ServerValueSource> {
    let path: TreePath
    let source: Source
    /// The keys from the written node to the current one.
    private var keys: [TreeKey] = []

    init(path: TreePath, source: Source) {
        self.path = path
        self.source = source
    }

    mutating func node(_ json: JSONValue) throws -> TreeNode {
        switch json {
        case .null: return .empty
        case .bool, .number, .string: return .leaf(try leaf(json))
        case .array(let elements): return try array(elements)
        case .object(let object): return try self.object(object)
        }
    }

    private mutating func array(_ elements: [JSONValue]) throws -> TreeNode {
        var children: [TreeChild] = []
        for (index, element) in elements.enumerated() where !element.isNull {
            try append(TreeKey(index: index), element, to: &children)
        }
        return .object(unsorted: children)
    }

    private mutating func object(_ object: JSONObject) throws -> TreeNode {
        var children: [TreeChild] = []
        children.reserveCapacity(object.count)
        var priority: TreePriority?
        var value: TreeLeaf?
        var hasChildren = false
        for member in object.members {
            guard member.name.utf8.first == UInt8(ascii: ".") else {
                hasChildren = true
                try append(key(member.name), member.value, to: &children)
                continue
            }
            switch member.name {
            case ".priority": priority = try self.priority(member.value)
            case ".value" where member.value.isNull: continue
            case ".value" where value == nil: value = try leaf(member.value)
            case ".sv" where value == nil: value = .number(try resolved(member.value, isPriority: false))
            default: throw reserved(member.name)
            }
        }
        guard let value else { return .object(unsorted: consume children, priority: priority) }
        guard !hasChildren else {
            throw failure(
                "invalid_value",
                "an object with \".value\" or \".sv\" may hold only \".priority\" beside it, "
                    + "e.g. {\".value\": 5, \".priority\": 1}")
        }
        return .leaf(value, priority: priority)
    }

    private mutating func append(
        _ key: TreeKey, _ json: JSONValue, to children: inout [TreeChild]
    ) throws {
        guard path.depth + keys.count < TreeLimits.depthMax else {
            throw failure(
                "too_deep",
                "\(TreeLimits.depthMax) keys are the deepest a tree may be, e.g. \"/chats/c1/messages\" has 3")
        }
        keys.append(key)
        let node = try node(json)
        keys.removeLast()
        if !node.isEmpty { children.append(TreeChild(key: key, node: node)) }
    }

    private func key(_ name: String) throws -> TreeKey {
        do {
            return try TreeKey(name)
        } catch {
            throw ArgumentError(reason: error.reason, "\(error.message) (at \(location))")
        }
    }

    /// A primitive, or an object with `.sv` as its only member.
    private func leaf(_ json: JSONValue) throws -> TreeLeaf {
        switch json {
        case .bool(let value): return .bool(value)
        case .number(let value): return .number(try finite(value))
        case .string(let value): return .string(try bounded(value))
        case .object(let object) where object.count == 1:
            guard let server = object[".sv"] else { fallthrough }
            return .number(try resolved(server, isPriority: false))
        case .null, .array, .object:
            throw failure(
                "invalid_value",
                "\".value\" must be a boolean, a number or a string, e.g. {\".value\": 5, \".priority\": 1}")
        }
    }

    func priority(_ json: JSONValue) throws -> TreePriority? {
        switch json {
        case .null: return nil
        case .number(let value): return .number(try finite(value))
        case .string(let value): return .string(try bounded(value))
        case .object(let object) where object.count == 1:
            guard let server = object[".sv"] else { fallthrough }
            return .number(try resolved(server, isPriority: true))
        case .bool, .array, .object:
            throw failure(
                "invalid_priority",
                "a priority must be a number, a string or null, e.g. {\".value\": \"text\", \".priority\": 1}")
        }
    }

    private func resolved(_ json: JSONValue, isPriority: Bool) throws -> Double {
        let server: ServerValue
        do {
            server = try ServerValue(json: json)
        } catch {
            throw failure(error.reason, error.message)
        }
        return try finite(source.number(for: server, at: ServerValueLocation(keys: keys, isPriority: isPriority)))
    }

    /// Stores -0 as 0; a sum may have left the range of doubles.
    private func finite(_ value: Double) throws(ArgumentError) -> Double {
        guard value.isFinite else {
            throw failure(
                "invalid_value", "a number must be finite: what is added to may be too great already, e.g. 1e308")
        }
        return value == 0 ? 0 : value
    }

    private func bounded(_ value: String) throws(ArgumentError) -> String {
        guard value.utf8.count <= TreeLimits.stringBytesMax else {
            throw failure(
                "string_too_long",
                "a string has \(value.utf8.count) bytes; \(TreeLimits.stringBytesMax) are allowed: "
                    + "write what is longer as several children, e.g. {\"1\": …, \"2\": …}")
        }
        return value
    }

    private func reserved(_ name: String) -> ArgumentError {
        failure(
            "invalid_key",
            "the key \(TreeKey.quoted(name)) begins with a dot; only \".priority\" and, beside it or alone, either \".value\" or \".sv\" may, "
                + "e.g. {\".value\": 5, \".priority\": 1}"
        )
    }

    private func failure(_ reason: String, _ message: String) -> ArgumentError {
        ArgumentError(reason: reason, "At \(location): \(message)")
    }

    private var location: String { TreeKey.quoted(TreePath(uncheckedKeys: path.keys + keys).text) }
}
