/// A rule expression as parsed: what stands where, before anybody asks for types.
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
    /// Where problems of it are reported: its operator, or its first word.
    let offset: Int
    /// How many expressions stand within each other here, itself included; what walks expressions may recurse that
    /// deep.
    let height: Int

    /// Throws when expressions would stand too deep within each other.
    init(_ kind: Kind, at offset: Int) throws(RulesFault) {
        self.kind = kind
        self.offset = offset
        var height = 0
        for part in kind.parts { height = max(height, part.height) }
        self.height = height + 1
        guard self.height <= RulesLimits.expressionHeightMax else { throw Self.tooDeep(offset) }
    }

    static func tooDeep(_ offset: Int) -> RulesFault {
        RulesFault(offset: offset, message: "Expression is nested too deeply.")
    }
}

enum RulesUnaryOperator: String, Sendable {
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

    /// Higher binds tighter.
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
