/// The syntax tree of a rule expression, before type checking.
struct RulesExpression: Hashable, Sendable {
    indirect enum Kind: Hashable, Sendable {
        case null
        case bool(Bool)
        case number(Double)
        case string(String)
        case regex(pattern: String, flags: String)
        case array([RulesExpression])
        /// `auth`, `now`, `root`, `data`, `newData`, `query`, or `$name`.
        case variable(String)
        case member(RulesExpression, String)
        case element(RulesExpression, RulesExpression)
        case call(RulesExpression, [RulesExpression])
        case unary(RulesUnaryOperator, RulesExpression)
        case binary(RulesBinaryOperator, RulesExpression, RulesExpression)
        case conditional(RulesExpression, RulesExpression, RulesExpression)
    }

    let kind: Kind
    /// The offset at which its problems are reported: its operator, or its first token.
    let offset: Int
    /// From its first token to after its last, including the brackets around it.
    private(set) var span: RulesSpan
    /// The height of this syntax tree, itself included: the recursion depth of code that walks it.
    let height: Int

    /// Throws when expressions are nested too deeply.
    init(_ kind: Kind, at offset: Int, _ span: RulesSpan) throws(RulesFault) {
        self.kind = kind
        self.offset = offset
        self.span = span
        var height = 0
        for part in kind.parts { height = max(height, part.height) }
        self.height = height + 1
        guard self.height <= RulesLimits.expressionHeightMax else { throw Self.tooDeep(offset) }
    }

    static func tooDeep(_ offset: Int) -> RulesFault {
        RulesFault(
            offset: offset,
            message: "Expression is nested too deeply (the maximum is \(RulesLimits.expressionDepthMax) brackets and "
                + "signs, \(RulesLimits.expressionHeightMax) operators).")
    }
}

extension RulesExpression.Kind {
    /// The direct sub-expressions, in the order of the text.
    var parts: [RulesExpression] {
        switch self {
        case .null, .bool, .number, .string, .regex, .variable: []
        case .array(let elements): elements
        case .member(let object, _): [object]
        case .element(let object, let element): [object, element]
        case .call(let target, let arguments): [target] + arguments
        case .unary(_, let operand): [operand]
        case .binary(_, let left, let right): [left, right]
        case .conditional(let condition, let first, let second): [condition, first, second]
        }
    }
}

extension RulesExpression {
    /// The same expression with the span of the brackets around it.
    func bracketed(_ span: RulesSpan) -> RulesExpression {
        var expression = self
        expression.span = span
        return expression
    }

    var parts: [RulesExpression] { kind.parts }

    /// The offset of its first token.
    var first: Int { Int(span.start) }

    /// Whether it is a string literal.
    var isString: Bool { if case .string = kind { true } else { false } }

    /// The number of expressions in this one, itself included: the maximum cost of one evaluation before it reads data.
    var count: Int { kind.parts.reduce(1) { $0 + $1.count } }
}

/// A range of scalars of the document: from the first to after the last.
struct RulesSpan: Hashable, Sendable {
    var start: Int32
    var end: Int32

    init(_ start: Int, _ end: Int) {
        self.start = Int32(clamping: start)
        self.end = Int32(clamping: end)
    }

    static let nowhere = RulesSpan(-1, -1)

    func joined(_ other: RulesSpan) -> RulesSpan { RulesSpan(Int(start), Int(other.end)) }
}

enum RulesUnaryOperator: String {
    case not = "!"
    case minus = "-"
}

/// `===` and `!==` are `==` and `!=` (spec §9.5).
enum RulesBinaryOperator: String, Sendable {
    case multiply = "*"
    case divide = "/"
    case remainder = "%"
    case add = "+"
    case subtract = "-"
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case equal = "=="
    case notEqual = "!="
    case and = "&&"
    case or = "||"

    init?(mark: String) {
        switch mark {
        case "===": self = .equal
        case "!==": self = .notEqual
        default: self.init(rawValue: mark)
        }
    }

    /// Operators with higher precedence bind tighter.
    var precedence: Int {
        switch self {
        case .multiply, .divide, .remainder: 6
        case .add, .subtract: 5
        case .less, .lessOrEqual, .greater, .greaterOrEqual: 4
        case .equal, .notEqual: 3
        case .and: 2
        case .or: 1
        }
    }
}
