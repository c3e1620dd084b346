import HatoModel

/// A reference implementation of rule expressions: a tree with its text and a value computed from whole nodes. Random
/// expressions are compared with it.
indirect enum NaiveExpression {
    case literal(NaiveValue)
    /// A text and its value: variables, and members of `auth`.
    case known(String, NaiveValue)
    case not(NaiveExpression)
    case minus(NaiveExpression)
    case binary(String, NaiveExpression, NaiveExpression)
    case conditional(NaiveExpression, NaiveExpression, NaiveExpression)
    case snapshot(NaiveSnapshot, String)
    case hasChildren(NaiveSnapshot, [NaiveExpression])
    /// A method of a string, without or with an argument; `length` is the property.
    case text(NaiveExpression, String, NaiveExpression?)
    case replace(NaiveExpression, NaiveExpression, NaiveExpression)
}

indirect enum NaiveSnapshot {
    case root, data, newData
    case child(NaiveSnapshot, NaiveExpression)
    case parent(NaiveSnapshot)
}

enum NaiveValue: Equatable {
    case null, bool(Bool), number(Double), string(String)
    /// `val()` of a node that has children.
    case children

    struct Wrong: Error {}
}

struct NaiveWorld {
    var before: TreeNode
    var after: TreeNode
    var keys: [TreeKey]
}

extension NaiveExpression {
    var source: String {
        switch self {
        case .literal(.null): "null"
        case .literal(.bool(let value)): value ? "true" : "false"
        case .literal(.number(let value)): "\(Int(value))"
        case .literal(.string(let value)): "'\(value)'"
        case .literal(.children): "root.val()"
        case .known(let text, _): text
        case .not(let operand): "!(\(operand.source))"
        case .minus(let operand): "-(\(operand.source))"
        case .binary(let symbol, let left, let right): "(\(left.source)) \(symbol) (\(right.source))"
        case .conditional(let condition, let first, let second):
            "(\(condition.source)) ? (\(first.source)) : (\(second.source))"
        case .snapshot(let snapshot, let method): "\(snapshot.source).\(method)()"
        case .hasChildren(let snapshot, let names):
            "\(snapshot.source).hasChildren([\(names.map(\.source).joined(separator: ", "))])"
        case .replace(let receiver, let part, let other):
            "(\(receiver.source)).replace(\(part.source), \(other.source))"
        case .text(let receiver, "length", _): "(\(receiver.source)).length"
        case .text(let receiver, let method, let argument):
            "(\(receiver.source)).\(method)(\(argument?.source ?? ""))"
        }
    }

    func value(_ world: NaiveWorld) throws -> NaiveValue {
        switch self {
        case .literal(let value), .known(_, let value): return value
        case .not(let operand): return .bool(try !operand.bool(world))
        case .minus(let operand): return .number(try -operand.number(world))
        case .binary(let symbol, let left, let right): return try Self.binary(symbol, left, right, world)
        case .conditional(let condition, let first, let second):
            return try condition.bool(world) ? first.value(world) : second.value(world)
        case .snapshot(let snapshot, let method): return try Self.ask(snapshot.node(world), method)
        case .hasChildren(let snapshot, let names):
            let node = try snapshot.node(world)
            let found = try names.map { try !NaiveSnapshot.child(at: $0.string(world), of: node).isEmpty }
            return .bool(found.allSatisfy { $0 })
        case .replace(let receiver, let part, let other):
            return try Self.replace(receiver.string(world), part.string(world), other.string(world))
        case .text(let receiver, let method, let argument):
            return try Self.text(receiver.string(world), method, argument?.string(world) ?? "")
        }
    }

    private func bool(_ world: NaiveWorld) throws -> Bool {
        guard case .bool(let value) = try value(world) else { throw NaiveValue.Wrong() }
        return value
    }

    private func number(_ world: NaiveWorld) throws -> Double {
        guard case .number(let value) = try value(world) else { throw NaiveValue.Wrong() }
        return value
    }

    func string(_ world: NaiveWorld) throws -> String {
        guard case .string(let value) = try value(world) else { throw NaiveValue.Wrong() }
        return value
    }

    private static func binary(
        _ symbol: String, _ left: NaiveExpression, _ right: NaiveExpression, _ world: NaiveWorld
    ) throws -> NaiveValue {
        if symbol == "&&" { return .bool(try left.bool(world) ? right.bool(world) : false) }
        if symbol == "||" { return .bool(try left.bool(world) ? true : right.bool(world)) }
        let (first, second) = (try left.value(world), try right.value(world))
        switch (symbol, first, second) {
        case ("==", _, _): return .bool(first == second)
        case ("!=", _, _): return .bool(first != second)
        case ("<", .number(let left), .number(let right)): return .bool(left < right)
        case ("<", .string(let left), .string(let right)):
            return .bool(left.utf16.lexicographicallyPrecedes(right.utf16))
        case (">=", .number(let left), .number(let right)): return .bool(left >= right)
        case (">=", .string(let left), .string(let right)):
            return .bool(!left.utf16.lexicographicallyPrecedes(right.utf16))
        case ("+", .number(let left), .number(let right)): return .number(left + right)
        case ("+", .string(let left), .string(let right)): return .string(left + right)
        case ("+", .string(let left), .number(let right)): return .string(left + text(right))
        case ("+", .number(let left), .string(let right)): return .string(text(left) + right)
        case ("*", .number(let left), .number(let right)): return .number(left * right)
        case ("/", .number(let left), .number(let right)): return .number(right == 0 ? .nan : left / right)
        default: throw NaiveValue.Wrong()
        }
    }

    private static func text(_ number: Double) -> String {
        if number.isNaN { return "NaN" }
        if number.isInfinite { return number < 0 ? "-Infinity" : "Infinity" }
        if number == number.rounded(), let integer = Int(exactly: number), abs(integer) < 1_000_000_000_000_000 {
            return "\(integer)"
        }
        var writer = JSONWriter()
        writer.write(number)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private static func ask(_ node: TreeNode, _ method: String) throws -> NaiveValue {
        switch (method, node.leaf) {
        case ("val", .bool(let value)?): .bool(value)
        case ("val", .number(let value)?): .number(value)
        case ("val", .string(let value)?): .string(value)
        case ("exists", _): .bool(!node.isEmpty)
        case ("hasChildren", _): .bool(node.children != nil)
        case ("isString", .string?), ("isNumber", .number?), ("isBoolean", .bool?): .bool(true)
        case ("val", nil): node.children == nil ? .null : .children
        default: .bool(false)
        }
    }

    private static func replace(_ text: String, _ part: String, _ other: String) -> NaiveValue {
        if part.isEmpty { return .string(other + text.map { "\($0)\(other)" }.joined()) }
        return .string(text.split(separator: part, omittingEmptySubsequences: false).joined(separator: other))
    }

    private static func text(_ text: String, _ method: String, _ part: String) throws -> NaiveValue {
        switch method {
        case "length": .number(Double(text.utf16.count))
        case "contains": .bool(part.isEmpty || text.contains(part))
        case "beginsWith": .bool(text.hasPrefix(part))
        case "endsWith": .bool(text.hasSuffix(part))
        case "toUpperCase": .string(text.uppercased())
        case "toLowerCase": .string(text.lowercased())
        default: throw NaiveValue.Wrong()
        }
    }
}

extension NaiveSnapshot {
    var source: String {
        switch self {
        case .root: "root"
        case .data: "data"
        case .newData: "newData"
        case .child(let snapshot, let name): "\(snapshot.source).child(\(name.source))"
        case .parent(let snapshot): "\(snapshot.source).parent()"
        }
    }

    func node(_ world: NaiveWorld) throws -> TreeNode {
        let place = try place(world)
        return (place.isAfter ? world.after : world.before).node(at: try TreePath(keys: place.keys))
    }

    static func child(at path: String, of node: TreeNode) throws -> TreeNode { node.node(at: try TreePath(path)) }

    private func place(_ world: NaiveWorld) throws -> (isAfter: Bool, keys: [TreeKey]) {
        switch self {
        case .root: return (false, [])
        case .data: return (false, world.keys)
        case .newData: return (true, world.keys)
        case .child(let snapshot, let name):
            let place = try snapshot.place(world)
            return (place.isAfter, place.keys + (try TreePath(name.string(world)).keys))
        case .parent(let snapshot):
            let place = try snapshot.place(world)
            if place.keys.isEmpty { throw NaiveValue.Wrong() }
            return (place.isAfter, place.keys.dropLast())
        }
    }
}
