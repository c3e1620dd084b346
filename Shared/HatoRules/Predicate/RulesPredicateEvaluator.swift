import HatoModel

/// The methods of texts.
enum RulesTextMethod: String {
    case contains
    case beginsWith
    case endsWith
    case toLowerCase
    case toUpperCase

    /// The length of a text in UTF-16 units, as JavaScript counts. Of any other value it is the child of that name.
    static let length = "length"

    /// Whether it takes a text and returns a boolean.
    var takesText: Bool {
        switch self {
        case .contains, .beginsWith, .endsWith: true
        case .toLowerCase, .toUpperCase: false
        }
    }
}

/// Evaluates a checked condition. The recursion depth is the height of the expression.
struct RulesPredicateEvaluator {
    let value: (String) -> JSONValue?
    /// Names whose values are unknown.
    var unknown: Set<String> = []

    enum Failure: Error {
        /// An operand that its operator does not accept.
        case mistaken
        /// The result depends on a name whose value is unknown.
        case unknown
    }

    func value(of expression: RulesExpression) throws(Failure) -> JSONValue {
        switch expression.kind {
        case .null: return .null
        case .bool(let bool): return .bool(bool)
        case .number(let number): return .number(number)
        case .string(let text): return .string(text)
        case .array, .regex: throw .mistaken
        case .variable(let name):
            guard !unknown.contains(name) else { throw .unknown }
            return leaf(value(name))
        case .member(let parent, let key):
            let parent = try value(of: parent)
            if key == RulesTextMethod.length, case .string(let text) = parent {
                return .number(Double(text.utf16.count))
            }
            return leaf(parent[key])
        case .element(let parent, let key): return leaf(try value(of: parent)[text(of: key)])
        case .call(let target, let arguments): return try call(target, arguments)
        case .unary(.not, let operand): return .bool(!(try bool(of: operand)))
        case .unary(.minus, let operand): return .number(-(try number(of: operand)))
        case .binary(let symbol, let left, let right): return try binary(symbol, left, right)
        case .conditional(let condition, let first, let second):
            return try value(of: bool(of: condition) ? first : second)
        }
    }

    /// A leaf with a priority is an object in export form.
    private func leaf(_ value: JSONValue?) -> JSONValue { value?[".value"] ?? value ?? .null }

    private func bool(of expression: RulesExpression) throws(Failure) -> Bool {
        guard case .bool(let bool) = try value(of: expression) else { throw .mistaken }
        return bool
    }

    private func number(of expression: RulesExpression) throws(Failure) -> Double {
        guard case .number(let number) = try value(of: expression) else { throw .mistaken }
        return number
    }

    private func text(of expression: RulesExpression) throws(Failure) -> String {
        guard case .string(let text) = try value(of: expression) else { throw .mistaken }
        return text
    }

    private func binary(
        _ symbol: RulesBinaryOperator, _ left: RulesExpression, _ right: RulesExpression
    ) throws(Failure) -> JSONValue {
        switch symbol {
        case .and: return .bool(try either(left, right, decides: false))
        case .or: return .bool(try either(left, right, decides: true))
        case .equal: return .bool(try value(of: left) == value(of: right))
        case .notEqual: return .bool(try value(of: left) != value(of: right))
        case .less: return .bool(try compare(left, right, <, <))
        case .lessOrEqual: return .bool(try compare(left, right, <=, <=))
        case .greater: return .bool(try compare(left, right, >, >))
        case .greaterOrEqual: return .bool(try compare(left, right, >=, >=))
        case .add: return try sum(value(of: left), value(of: right))
        case .subtract: return .number(try number(of: left) - number(of: right))
        case .multiply: return .number(try number(of: left) * number(of: right))
        case .divide:
            let (dividend, divisor) = (try number(of: left), try number(of: right))
            return .number(divisor == 0 ? .nan : dividend / divisor)
        case .remainder: return .number(try number(of: left).truncatingRemainder(dividingBy: number(of: right)))
        }
    }

    /// `decides` when one side has this value, so that the other does not matter; otherwise the right side.
    private func either(
        _ left: RulesExpression, _ right: RulesExpression, decides: Bool
    ) throws(Failure) -> Bool {
        let first: Bool
        do { first = try bool(of: left) } catch {
            guard error == .unknown, (try? bool(of: right)) == decides else { throw error }
            return decides
        }
        return first == decides ? decides : try bool(of: right)
    }

    /// Compares two numbers or two texts; texts by UTF-16 units, as everywhere in the tree.
    private func compare(
        _ left: RulesExpression, _ right: RulesExpression, _ numbers: (Double, Double) -> Bool,
        _ order: (Int, Int) -> Bool
    ) throws(Failure) -> Bool {
        switch (try value(of: left), try value(of: right)) {
        case (.number(let left), .number(let right)): return numbers(left, right)
        case (.string(let left), .string(let right)):
            if left.utf16.lexicographicallyPrecedes(right.utf16) { return order(0, 1) }
            return right.utf16.lexicographicallyPrecedes(left.utf16) ? order(1, 0) : order(0, 0)
        default: throw .mistaken
        }
    }

    private func sum(_ left: JSONValue, _ right: JSONValue) throws(Failure) -> JSONValue {
        switch (left, right) {
        case (.number(let left), .number(let right)): return .number(left + right)
        case (.string(let left), .string(let right)): return try joined(left, right)
        case (.string(let left), .number): return try joined(left, String(decoding: right.encoded, as: UTF8.self))
        case (.number, .string(let right)): return try joined(String(decoding: left.encoded, as: UTF8.self), right)
        default: throw .mistaken
        }
    }

    private func joined(_ left: String, _ right: String) throws(Failure) -> JSONValue {
        guard left.utf8.count + right.utf8.count <= RulesLimits.predicateTextBytesMax else { throw .mistaken }
        return .string(left + right)
    }

    private func call(_ target: RulesExpression, _ arguments: [RulesExpression]) throws(Failure) -> JSONValue {
        guard case .member(let owner, let name) = target.kind, let method = RulesTextMethod(rawValue: name) else {
            throw .mistaken
        }
        let text = try text(of: owner)
        guard method.takesText else {
            return .string(method == .toLowerCase ? text.lowercased() : text.uppercased())
        }
        guard let argument = arguments.first else { throw .mistaken }
        // Compares bytes, not characters: an accent composed in another way is another text, as in the tree.
        let (bytes, part) = (Array(text.utf8), Array(try self.text(of: argument).utf8))
        switch method {
        case .beginsWith: return .bool(bytes.starts(with: part))
        case .endsWith: return .bool(bytes.suffix(part.count).elementsEqual(part))
        case .contains, .toLowerCase, .toUpperCase: return .bool(bytes.hasPart(part))
        }
    }
}

extension [UInt8] {
    /// Whether this contains `part`, in steps linear in both (Knuth, Morris, Pratt).
    fileprivate func hasPart(_ part: [UInt8]) -> Bool {
        guard !part.isEmpty else { return true }
        // For each prefix of `part`, the length of its longest proper prefix that also ends it.
        var borders = [0]
        for byte in part.dropFirst() {
            var length = borders[borders.count - 1]
            while length > 0, part[length] != byte { length = borders[length - 1] }
            borders.append(part[length] == byte ? length + 1 : 0)
        }
        var matched = 0
        for byte in self {
            while matched > 0, part[matched] != byte { matched = borders[matched - 1] }
            if part[matched] == byte { matched += 1 }
            if matched == part.count { return true }
        }
        return false
    }
}
