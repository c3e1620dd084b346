import HatoModel

/// A reference implementation of the tree without rows: nested dictionaries, every rule of spec realtime-database §2 in
/// its simplest form. The planner and the readers are compared with it.
struct NaiveTree: Equatable {
    var value: JSONValue?
    var children: [String: NaiveTree] = [:]
    var priority: JSONValue?

    var isEmpty: Bool { value == nil && children.isEmpty }

    /// Reads JSON whose server values are `now` and, for increments, the value of `stored` at the path.
    init(_ json: JSONValue, now: Double, stored: NaiveTree?) {
        switch json {
        case .null: break
        case .bool, .number, .string: value = json
        case .array(let elements):
            for (index, element) in elements.enumerated() { add(String(index), element, now, stored) }
        case .object(let object):
            for member in object.members where !member.name.hasPrefix(".") {
                add(member.name, member.value, now, stored)
            }
            if let inner = object[".value"], !inner.isNull { value = NaiveTree(inner, now: now, stored: stored).value }
            if let server = object[".sv"] { value = NaiveTree.resolve(server, now, stored?.value) }
            if let inner = object[".priority"], !inner.isNull {
                priority = inner[".sv"].map { NaiveTree.resolve($0, now, stored?.priority) } ?? inner
            }
        }
        if isEmpty { priority = nil }
    }

    init() {}

    private mutating func add(_ key: String, _ json: JSONValue, _ now: Double, _ stored: NaiveTree?) {
        let child = NaiveTree(json, now: now, stored: stored?.children[key])
        if !child.isEmpty { children[key] = child }
    }

    static func resolve(_ server: JSONValue, _ now: Double, _ stored: JSONValue?) -> JSONValue {
        if case .number(let amount)? = server["increment"] { return .number((stored?.number ?? 0) + amount) }
        return .number(now)
    }

    func node(at keys: [String]) -> NaiveTree? {
        guard let key = keys.first else { return isEmpty ? nil : self }
        return children[key]?.node(at: Array(keys.dropFirst()))
    }

    mutating func set(_ node: NaiveTree, at keys: [String]) {
        guard let key = keys.first else {
            self = node
            return
        }
        if value != nil && node.isEmpty { return }
        var child = children[key] ?? NaiveTree()
        child.set(node, at: Array(keys.dropFirst()))
        children[key] = child.isEmpty ? nil : child
        if !child.isEmpty { value = nil }
        if isEmpty { priority = nil }
    }

    mutating func setPriority(_ priority: JSONValue?, at keys: [String]) {
        guard let key = keys.first else {
            if !isEmpty { self.priority = priority }
            return
        }
        children[key]?.setPriority(priority, at: Array(keys.dropFirst()))
    }

    // MARK: Reading

    var sortedKeys: [String] { children.keys.sorted(by: NaiveTree.precedes) }

    /// Key order as in the text of the spec.
    static func precedes(_ left: String, _ right: String) -> Bool {
        switch (integer(left), integer(right)) {
        case (let a?, let b?):
            if a != b { return a < b }
            if left.utf16.count != right.utf16.count { return left.utf16.count < right.utf16.count }
        case (_?, nil): return true
        case (nil, _?): return false
        case (nil, nil): break
        }
        return Array(left.utf16).lexicographicallyPrecedes(Array(right.utf16))
    }

    private static func integer(_ key: String) -> Int? {
        let digits = key.first == "-" ? key.dropFirst() : Substring(key)
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }), let value = Int(key) else {
            return nil
        }
        return (-2_147_483_648...2_147_483_647).contains(value) ? value : nil
    }

    var export: JSONValue {
        if let value { return priority.map { [".value": value, ".priority": $0] } ?? value }
        guard !children.isEmpty else { return .null }
        var object = JSONObject()
        if let priority { object.append(".priority", priority) }
        for key in sortedKeys { object.append(key, children[key]?.export ?? .null) }
        return .object(object)
    }

    var plain: JSONValue {
        if let value { return value }
        guard !children.isEmpty else { return .null }
        let isIndexed = children.keys.allSatisfy { $0 == "0" || (!$0.hasPrefix("0") && $0.allSatisfy(\.isNumber)) }
        if isIndexed, let greatest = children.keys.compactMap({ Int($0) }).max(), greatest < 2 * children.count {
            return .array((0...greatest).map { children[String($0)]?.plain ?? .null })
        }
        return .object(JSONObject(uniqueMembers: sortedKeys.map { .init($0, children[$0]?.plain ?? .null) }))
    }

    var shallow: JSONValue {
        if let value { return value }
        if children.isEmpty { return .null }
        return .object(JSONObject(uniqueMembers: sortedKeys.map { .init($0, true) }))
    }
}
