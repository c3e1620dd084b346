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

/// Evaluates a checked condition once. The recursion depth is the height of the expression, and the work that of
/// `RulesLimits.predicateWorkBytesMax`: bytes of texts that are read, made or compared, and members that are looked
/// through.
struct RulesPredicateEvaluator {
    let value: (String) -> JSONValue?
    /// Names whose values are unknown.
    var unknown: Set<String> = []
    /// What is left of the work; below zero it was too much.
    private(set) var workLeft = RulesLimits.predicateWorkBytesMax

    init(unknown: Set<String> = [], value: @escaping (String) -> JSONValue?) {
        self.value = value
        self.unknown = unknown
    }

    enum Failure: Error {
        /// An operand that its operator does not accept.
        case mistaken
        /// The result depends on a name whose value is unknown.
        case unknown
        case tooMuchWork
    }

    mutating func value(of expression: RulesExpression) throws(Failure) -> JSONValue {
        switch expression.kind {
        case .null: return .null
        case .bool(let bool): return .bool(bool)
        case .number(let number): return .number(number)
        case .string(let text): return .string(text)
        case .array, .regex: throw .mistaken
        case .variable(let name):
            guard !unknown.contains(name) else { throw .unknown }
            return try leaf(value(name))
        case .member(let parent, let key):
            let parent = try value(of: parent)
            if key == RulesTextMethod.length, case .string(let text) = parent {
                try work(text.utf8.count)
                return .number(Double(RulesText.length(text)))
            }
            return try leaf(child(key, of: parent))
        case .element(let parent, let key): return try leaf(child(text(of: key), of: value(of: parent)))
        case .call(let target, let arguments): return try call(target, arguments)
        case .unary(.not, let operand): return .bool(!(try bool(of: operand)))
        case .unary(.minus, let operand): return .number(-(try number(of: operand)))
        case .binary(let symbol, let left, let right): return try binary(symbol, left, right)
        case .conditional(let condition, let first, let second):
            return try value(of: bool(of: condition) ? first : second)
        }
    }

    // MARK: Work

    private mutating func work(_ bytes: Int) throws(Failure) {
        guard workLeft >= bytes else {
            workLeft = -1
            throw .tooMuchWork
        }
        workLeft -= bytes
    }

    /// What it takes to compare a value with another.
    private mutating func work(comparing value: JSONValue) throws(Failure) {
        switch value {
        case .null, .bool, .number: try work(1)
        case .string(let text): try work(text.utf8.count)
        case .array(let elements):
            try work(elements.count)
            for element in elements { try work(comparing: element) }
        case .object(let object):
            for member in object.members {
                try work(member.name.utf8.count)
                try work(comparing: member.value)
            }
        }
    }

    /// Members are looked through one by one.
    private mutating func child(_ key: String, of parent: JSONValue) throws(Failure) -> JSONValue? {
        guard case .object(let object) = parent else { return nil }
        try work(object.count)
        return object[key]
    }

    // MARK: Operands

    /// A leaf with a priority is an object in export form.
    private mutating func leaf(_ value: JSONValue?) throws(Failure) -> JSONValue {
        guard let value else { return .null }
        return try child(".value", of: value) ?? value
    }

    private mutating func bool(of expression: RulesExpression) throws(Failure) -> Bool {
        guard case .bool(let bool) = try value(of: expression) else { throw .mistaken }
        return bool
    }

    private mutating func number(of expression: RulesExpression) throws(Failure) -> Double {
        guard case .number(let number) = try value(of: expression) else { throw .mistaken }
        return number
    }

    private mutating func text(of expression: RulesExpression) throws(Failure) -> String {
        guard case .string(let text) = try value(of: expression) else { throw .mistaken }
        return text
    }

    private mutating func binary(
        _ symbol: RulesBinaryOperator, _ left: RulesExpression, _ right: RulesExpression
    ) throws(Failure) -> JSONValue {
        switch symbol {
        case .and: return .bool(try either(left, right, decides: false))
        case .or: return .bool(try either(left, right, decides: true))
        case .equal: return .bool(try equal(left, right))
        case .notEqual: return .bool(!(try equal(left, right)))
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
    private mutating func either(
        _ left: RulesExpression, _ right: RulesExpression, decides: Bool
    ) throws(Failure) -> Bool {
        let first: Bool
        do { first = try bool(of: left) } catch {
            guard error == .unknown, (try? bool(of: right)) == decides else { throw error }
            return decides
        }
        return first == decides ? decides : try bool(of: right)
    }

    private mutating func equal(_ left: RulesExpression, _ right: RulesExpression) throws(Failure) -> Bool {
        let (left, right) = (try value(of: left), try value(of: right))
        switch (left, right) {
        // Texts of two lengths are not compared.
        case (.string(let left), .string(let right)): try work(min(left.utf8.count, right.utf8.count))
        case (.object, .object), (.array, .array):
            try work(comparing: left)
            try work(comparing: right)
        default: break
        }
        return left == right
    }

    /// Compares two numbers or two texts; texts by UTF-16 units, as everywhere in the tree.
    private mutating func compare(
        _ left: RulesExpression, _ right: RulesExpression, _ numbers: (Double, Double) -> Bool,
        _ order: (Int, Int) -> Bool
    ) throws(Failure) -> Bool {
        switch (try value(of: left), try value(of: right)) {
        case (.number(let left), .number(let right)): return numbers(left, right)
        case (.string(let left), .string(let right)):
            try work(2 * min(left.utf8.count, right.utf8.count))
            if left.utf16.lexicographicallyPrecedes(right.utf16) { return order(0, 1) }
            return right.utf16.lexicographicallyPrecedes(left.utf16) ? order(1, 0) : order(0, 0)
        default: throw .mistaken
        }
    }

    private mutating func sum(_ left: JSONValue, _ right: JSONValue) throws(Failure) -> JSONValue {
        switch (left, right) {
        case (.number(let left), .number(let right)): return .number(left + right)
        case (.string(let left), .string(let right)): return try joined(left, right)
        case (.string(let left), .number): return try joined(left, String(decoding: right.encoded, as: UTF8.self))
        case (.number, .string(let right)): return try joined(String(decoding: left.encoded, as: UTF8.self), right)
        default: throw .mistaken
        }
    }

    private mutating func joined(_ left: String, _ right: String) throws(Failure) -> JSONValue {
        let count = left.utf8.count + right.utf8.count
        guard count <= RulesLimits.predicateTextBytesMax else { throw .mistaken }
        try work(count)
        return .string(left + right)
    }

    private mutating func call(_ target: RulesExpression, _ arguments: [RulesExpression]) throws(Failure) -> JSONValue {
        guard case .member(let owner, let name) = target.kind, let method = RulesTextMethod(rawValue: name) else {
            throw .mistaken
        }
        let text = try text(of: owner)
        guard method.takesText else {
            // Read and made.
            try work(2 * text.utf8.count)
            return .string(method == .toLowerCase ? text.lowercased() : text.uppercased())
        }
        guard let argument = arguments.first else { throw .mistaken }
        let part = try self.text(of: argument)
        try work(part.utf8.count)
        // Bytes are compared, not characters: an accent composed in another way is another text, as in the tree.
        switch method {
        case .beginsWith: return .bool(RulesText.begins(text, with: part))
        case .endsWith: return .bool(RulesText.ends(text, with: part))
        case .contains, .toLowerCase, .toUpperCase:
            try work(text.utf8.count)
            return .bool(RulesText.contains(text, part))
        }
    }
}
