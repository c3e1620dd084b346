/// Determines the static type of an expression and reports its problems with the messages of spec §9.6.
struct RulesTypeChecker {
    /// The rule the expression belongs to, e.g. `.read`.
    let rule: String
    /// The `$names` in scope, with the index of the key in the path.
    let wildcards: [String: Int]
    /// Whether the rule was accepted before: then it is not refused for what older versions accepted.
    private let isStored: Bool
    private(set) var faults: [RulesFault] = []
    /// The regular expressions by their offset.
    private(set) var programs: [Int: RegexProgram] = [:]

    init(rule: String, wildcards: [String: Int], isStored: Bool = false) {
        self.isStored = isStored
        self.rule = rule
        self.wildcards = wildcards
    }

    /// Checks a whole rule.
    mutating func checkRule(_ expression: RulesExpression) {
        if !type(of: expression).fitsCondition {
            fault(Int(expression.span.start), "Expression must evaluate to a boolean.")
        }
    }

    @discardableResult
    mutating func fault(_ offset: Int, _ message: String) -> RulesType {
        if faults.count < RulesLimits.problemsMax { faults.append(RulesFault(offset: offset, message: message)) }
        return .wrong
    }

    /// Compiles a regular expression and keeps it for the lowering.
    mutating func compile(_ pattern: String, isCaseInsensitive: Bool, at offset: Int) {
        do { programs[offset] = try RegexProgram(pattern, isCaseInsensitive: isCaseInsensitive) } catch {
            fault(offset, error.message)
        }
    }

    mutating func type(of expression: RulesExpression) -> RulesType {
        switch expression.kind {
        case .null: .null
        case .bool: .boolean
        case .number: .number
        case .string: .string
        case .regex: fault(expression.offset, "Unexpected regular expression literal.")
        case .array: fault(expression.offset, "Unexpected array literal.")
        case .variable(let name): variable(name, at: expression.offset)
        case .member(let object, let name): member(name, of: type(of: object), at: expression.offset)
        case .element(let object, let element): self.element(element, of: object, at: expression.offset)
        case .call(let target, let arguments): call(target, arguments)
        case .unary(let symbol, let operand): unary(symbol, operand, at: expression.offset)
        case .binary(let symbol, let left, let right): binary(symbol, left, right, at: expression.offset)
        case .conditional(let condition, let first, let second):
            conditional(condition, (first, second), at: expression.offset)
        }
    }

    private mutating func variable(_ name: String, at offset: Int) -> RulesType {
        switch name {
        case "auth": return .auth
        case "now": return .number
        case "query": return .query
        case "root", "data": return .snapshot
        case "newData":
            return rule == ".read" ? fault(offset, "newData is invalid in .read expressions.") : .snapshot
        default:
            return wildcards[name] == nil ? fault(offset, "Unknown variable '\(name)'.") : .string
        }
    }

    // MARK: Members

    mutating func member(_ name: String, of type: RulesType, at offset: Int) -> RulesType {
        switch type {
        case .snapshot where RulesSnapshotMethod(rawValue: name) != nil: .method
        case .string, .value, .mixed: stringMember(name) ?? noSuch(name, offset)
        case .auth: name == "length" ? .number : .auth
        case .query where RulesQueryField(rawValue: name) != nil: RulesQueryField(rawValue: name)?.type ?? .wrong
        case .snapshot, .query: noSuch(name, offset)
        case .wrong: .wrong
        case .boolean, .number, .null, .regex, .array, .method, .queryValue:
            fault(offset, "Invalid property access: target is not an object.")
        }
    }

    private func stringMember(_ name: String) -> RulesType? {
        if name == "length" { return .number }
        return RulesStringMethod(rawValue: name) == nil ? nil : .method
    }

    private mutating func noSuch(_ name: String, _ offset: Int) -> RulesType {
        fault(offset, "No such method/property '\(name)'.")
    }

    /// A computed name: only values inside of `auth` have such members.
    private mutating func element(
        _ element: RulesExpression, of object: RulesExpression, at offset: Int
    ) -> RulesType {
        let type = type(of: object)
        let name = self.type(of: element)
        switch type {
        case .auth:
            guard name.fitsStringArgument || name == .number else {
                return fault(Int(element.span.start), "Invalid property access: the name is not a string.")
            }
            return .auth
        case .wrong:
            return .wrong
        default:
            return fault(offset, "Invalid property access: target is not an object.")
        }
    }

    // MARK: Operators

    private mutating func unary(
        _ symbol: RulesUnaryOperator, _ operand: RulesExpression, at offset: Int
    ) -> RulesType {
        let type = type(of: operand)
        switch symbol {
        case .not: return type.fitsCondition ? .boolean : fault(offset, "! only operates on booleans.")
        case .minus: return type.fitsArithmetic ? .number : fault(offset, "- only operates on numbers.")
        }
    }

    private mutating func binary(
        _ symbol: RulesBinaryOperator, _ left: RulesExpression, _ right: RulesExpression, at offset: Int
    ) -> RulesType {
        let types = (type(of: left), type(of: right))
        let isLeftRight = check(symbol, types.0, isLeft: true, at: offset)
        let isRightRight = check(symbol, types.1, isLeft: false, at: offset)
        guard isLeftRight, isRightRight else { return .wrong }
        switch symbol {
        case .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual, .and, .or: return .boolean
        case .multiply, .divide, .remainder, .subtract: return .number
        case .add:
            if types.0 == .string || types.1 == .string { return .string }
            return types.0 == .number && types.1 == .number ? .number : .value
        }
    }

    /// Whether an operator accepts an operand of a type.
    private mutating func check(
        _ symbol: RulesBinaryOperator, _ type: RulesType, isLeft: Bool, at offset: Int
    ) -> Bool {
        let side = isLeft ? "left" : "right"
        let operand = "Invalid \(symbol.rawValue) expression: \(side) operand"
        switch symbol {
        case .equal, .notEqual:
            if type.fitsEquality { return true }
            // Production omits the "or" in this one of the four.
            let or = symbol == .equal && isLeft ? "" : "or "
            fault(offset, "\(operand) is not a number, boolean, string, \(or)null.")
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            if type.fitsOrder { return true }
            fault(offset, "\(operand) must be a number or string.")
        case .add:
            if type.fitsOrder { return true }
            fault(offset, "\(operand) is not a number or string.")
        case .multiply, .divide, .remainder, .subtract:
            if type.fitsArithmetic { return true }
            fault(offset, "\(operand) is not a number.")
        case .and, .or:
            if type.fitsCondition { return true }
            let name = isLeft ? "Left" : "Right"
            fault(offset, "\(name) operand of \(symbol.rawValue) must be boolean.")
        }
        return false
    }

    private mutating func conditional(
        _ condition: RulesExpression, _ branches: (RulesExpression, RulesExpression), at offset: Int
    ) -> RulesType {
        if !type(of: condition).fitsCondition { fault(offset, "Left operand of ? must be boolean.") }
        let types = (type(of: branches.0), type(of: branches.1))
        if types.0 == .wrong || types.1 == .wrong { return .wrong }
        if types.0 == types.1 { return types.0 }
        // A snapshot beside a value is neither: no operation accepts it.
        guard isStored || types.0.fitsEquality && types.1.fitsEquality else {
            return fault(offset, "Invalid ?: expression: a branch is not a number, boolean, string, or null.")
        }
        return .mixed
    }
}
