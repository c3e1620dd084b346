/// Says what an expression means, as far as the language goes today; names are checked everywhere in it.
struct RulesLowering {
    let rule: String
    /// The `$names` that can be seen, with the key of the path they stand for.
    let wildcards: [String: Int]
    private(set) var faults: [RulesFault] = []

    init(rule: String, wildcards: [String: Int]) {
        self.rule = rule
        self.wildcards = wildcards
    }

    /// The condition; nil when `faults` say why there is none.
    mutating func condition(_ expression: RulesExpression) -> RulesCondition? {
        checkNames(expression)
        guard faults.isEmpty else { return nil }
        switch expression.kind {
        case .bool(let value):
            return .constant(value)
        case .null, .number, .string, .regex:
            faults.append(RulesFault(offset: expression.offset, message: "Expression must evaluate to a boolean."))
            return nil
        case .binary(.notEqual, let left, let right) where Self.isPair(left, right, Self.isAuth, { $0.kind == .null }):
            return .isSignedIn
        case .binary(.equal, let left, let right):
            if Self.isUid(left), let index = keyIndex(right) { return .isUser(keyAt: index) }
            if Self.isUid(right), let index = keyIndex(left) { return .isUser(keyAt: index) }
        default:
            break
        }
        let known = "true, false, auth != null and auth.uid == $name"
        faults.append(
            RulesFault(
                offset: expression.first, message: "This expression is not supported yet; rules can say \(known)."))
        return nil
    }

    private static let variables: Set<String> = ["auth", "now", "root", "data", "newData", "query"]

    private mutating func checkNames(_ expression: RulesExpression) {
        switch expression.kind {
        case .variable(let name):
            if rule == ".read", name == "newData" {
                faults.append(
                    RulesFault(offset: expression.offset, message: "newData is invalid in .read expressions."))
            } else if !Self.variables.contains(name), wildcards[name] == nil {
                faults.append(RulesFault(offset: expression.offset, message: "Unknown variable '\(name)'."))
            }
        default:
            for part in expression.parts { checkNames(part) }
        }
    }

    private static func isPair(
        _ left: RulesExpression, _ right: RulesExpression, _ one: (RulesExpression) -> Bool,
        _ other: (RulesExpression) -> Bool
    ) -> Bool {
        (one(left) && other(right)) || (one(right) && other(left))
    }

    private static func isAuth(_ expression: RulesExpression) -> Bool { expression.kind == .variable("auth") }

    private static func isUid(_ expression: RulesExpression) -> Bool {
        switch expression.kind {
        case .member(let base, "uid"): isAuth(base)
        case .element(let base, let name): isAuth(base) && name.kind == .string("uid")
        default: false
        }
    }

    private func keyIndex(_ expression: RulesExpression) -> Int? {
        if case .variable(let name) = expression.kind { wildcards[name] } else { nil }
    }
}

extension RulesExpression.Kind {
    /// The expressions right inside this one, as they are written.
    var parts: [RulesExpression] {
        switch self {
        case .null, .bool, .number, .string, .regex, .variable: []
        case .array(let elements): elements
        case .member(let base, _): [base]
        case .element(let base, let element): [base, element]
        case .call(let target, let arguments): [target] + arguments
        case .unary(_, let operand): [operand]
        case .binary(_, let left, let right): [left, right]
        case .conditional(let condition, let first, let second): [condition, first, second]
        }
    }

}

extension RulesExpression {
    var parts: [RulesExpression] { kind.parts }

    /// Where its first word stands.
    var first: Int { parts.map(\.first).reduce(offset, min) }
}
