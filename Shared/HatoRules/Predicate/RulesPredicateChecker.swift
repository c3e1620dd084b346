/// Finds the problems of a condition before it is evaluated: unknown names and methods, and operands of a type that
/// their operator never accepts. The messages are those of spec §9.6.
struct RulesPredicateChecker {
    let names: [String]
    /// The number of visited parts: each once, which tests check.
    private(set) var visits = 0

    init(names: [String]) { self.names = names }

    /// The static type of a part.
    private enum Kind: Hashable {
        case bool
        case number
        case string
        case null
        /// Known only during evaluation.
        case value
    }

    mutating func check(_ expression: RulesExpression) throws(RulesFault) {
        guard try kind(of: expression) == .bool else {
            throw RulesFault(offset: expression.first, message: "Expression must evaluate to a boolean.")
        }
    }

    private mutating func kind(of expression: RulesExpression) throws(RulesFault) -> Kind {
        visits += 1
        switch expression.kind {
        case .null: return .null
        case .bool: return .bool
        case .number: return .number
        case .string: return .string
        case .array: throw RulesFault(offset: expression.offset, message: "Unexpected array literal.")
        case .regex:
            throw RulesFault(
                offset: expression.offset, message: "Regular expressions are not supported in conditions.")
        case .variable(let name):
            guard names.contains(name) else {
                let known = names.joined(separator: ", ")
                throw RulesFault(
                    offset: expression.offset, message: "Unknown variable '\(name)'; there are \(known).")
            }
            return .value
        case .member(let parent, let name):
            let isLength = name == RulesTextMethod.length
            let kind = try require(
                parent, isLength ? [.value, .string] : [.value], "Invalid property access: target is not an object.")
            return kind == .string ? .number : .value
        case .element(let parent, let key):
            try require(parent, [.value], "Invalid property access: target is not an object.")
            try require(key, [.string, .value], "Invalid property access: the name is not a string.")
            return .value
        case .call(let target, let arguments): return try kind(ofCall: target, arguments)
        case .unary(.not, let operand):
            try require(operand, [.bool], "! only operates on booleans.")
            return .bool
        case .unary(.minus, let operand):
            try require(operand, [.number, .value], "- only operates on numbers.")
            return .number
        case .binary(let symbol, let left, let right): return try kind(of: symbol, left, right)
        case .conditional(let condition, let first, let second):
            try require(condition, [.bool], "Condition of ? must be boolean.")
            let (first, second) = (try kind(of: first), try kind(of: second))
            return first == second ? first : .value
        }
    }

    private mutating func kind(
        of symbol: RulesBinaryOperator, _ left: RulesExpression, _ right: RulesExpression
    ) throws(RulesFault) -> Kind {
        let name = symbol.rawValue
        switch symbol {
        case .and, .or:
            try require(left, [.bool], "Left operand of \(name) must be boolean.")
            try require(right, [.bool], "Right operand of \(name) must be boolean.")
            return .bool
        case .equal, .notEqual:
            _ = (try kind(of: left), try kind(of: right))
            return .bool
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            try require(
                left, [.number, .string, .value], "Invalid \(name) expression: left operand must be a number or string."
            )
            try require(
                right, [.number, .string, .value],
                "Invalid \(name) expression: right operand must be a number or string.")
            return .bool
        case .add:
            let left = try require(
                left, [.number, .string, .value], "Invalid + expression: left operand is not a number or string.")
            let right = try require(
                right, [.number, .string, .value], "Invalid + expression: right operand is not a number or string.")
            return left == .string || right == .string ? .string : left == right ? left : .value
        case .subtract, .multiply, .divide, .remainder:
            try require(left, [.number, .value], "Invalid \(name) expression: left operand is not a number.")
            try require(right, [.number, .value], "Invalid \(name) expression: right operand is not a number.")
            return .number
        }
    }

    private mutating func kind(ofCall target: RulesExpression, _ arguments: [RulesExpression]) throws(RulesFault)
        -> Kind
    {
        guard case .member(let text, let name) = target.kind else {
            throw RulesFault(
                offset: target.offset, message: "Type error: Function call on target that is not a function.")
        }
        guard let method = RulesTextMethod(rawValue: name) else {
            throw RulesFault(offset: target.offset, message: "No such method/property '\(name)'.")
        }
        try require(text, [.string, .value], "\(name)() is a method of strings.")
        guard arguments.count == (method.takesText ? 1 : 0) else {
            let expected = method.takesText ? "1 argument" : "no arguments"
            throw RulesFault(offset: target.offset, message: "\(name)() expects \(expected).")
        }
        for argument in arguments {
            try require(argument, [.string, .value], "\(name)() expects a string argument.")
        }
        return method.takesText ? .bool : .string
    }

    @discardableResult
    private mutating func require(
        _ expression: RulesExpression, _ kinds: Set<Kind>, _ message: String
    ) throws(RulesFault) -> Kind {
        let kind = try kind(of: expression)
        guard kinds.contains(kind) else { throw RulesFault(offset: expression.first, message: message) }
        return kind
    }
}
