/// Checks calls: which methods a type has, and which arguments they take (spec §9.4, §9.6).
extension RulesTypeChecker {
    mutating func call(_ target: RulesExpression, _ arguments: [RulesExpression]) -> RulesType {
        guard case .member(let object, let name) = target.kind else {
            let type = type(of: target)
            for argument in arguments { skim(argument) }
            return type == .wrong ? .wrong : notAFunction(target)
        }
        let type = type(of: object)
        switch type {
        case .snapshot:
            if let method = RulesSnapshotMethod(rawValue: name) { return call(method, arguments, at: target.offset) }
        case .string, .value, .mixed, .auth:
            if let method = RulesStringMethod(rawValue: name) { return call(method, arguments, at: target.offset) }
        default:
            break
        }
        for argument in arguments { skim(argument) }
        return member(name, of: type, at: target.offset) == .wrong ? .wrong : notAFunction(target)
    }

    private mutating func notAFunction(_ target: RulesExpression) -> RulesType {
        fault(target.offset, "Type error: Function call on target that is not a function.")
    }

    /// Checks the names in an argument that is not allowed there.
    private mutating func skim(_ argument: RulesExpression) {
        switch argument.kind {
        case .array(let elements): for element in elements { _ = type(of: element) }
        case .regex: return
        default: _ = type(of: argument)
        }
    }

    private mutating func call(
        _ method: RulesSnapshotMethod, _ arguments: [RulesExpression], at offset: Int
    ) -> RulesType {
        switch method {
        case .child, .hasChild: checkString(method.rawValue, arguments, at: offset)
        case .hasChildren: checkNames(arguments, at: offset)
        case .val, .parent, .exists, .getPriority, .isNumber, .isString, .isBoolean:
            checkNone(method.rawValue, arguments, at: offset)
        }
        return method.result
    }

    private mutating func call(
        _ method: RulesStringMethod, _ arguments: [RulesExpression], at offset: Int
    ) -> RulesType {
        switch method {
        case .contains, .beginsWith, .endsWith: checkString(method.rawValue, arguments, at: offset)
        case .toLowerCase, .toUpperCase: checkNone(method.rawValue, arguments, at: offset)
        case .replace: checkReplacement(arguments, at: offset)
        case .matches: checkRegex(arguments, at: offset)
        }
        return method.result
    }

    private mutating func checkNone(_ name: String, _ arguments: [RulesExpression], at offset: Int) {
        guard !arguments.isEmpty else { return }
        for argument in arguments { skim(argument) }
        fault(offset, "\(name)() expects no arguments.")
    }

    private mutating func checkString(_ name: String, _ arguments: [RulesExpression], at offset: Int) {
        guard arguments.count == 1 else {
            for argument in arguments { skim(argument) }
            fault(offset, "\(name)() expects 1 argument.")
            return
        }
        if !isString(arguments[0]) {
            fault(Int(arguments[0].span.start), "\(name)() expects a string argument.")
        }
    }

    private mutating func checkReplacement(_ arguments: [RulesExpression], at offset: Int) {
        guard arguments.count == 2 else {
            for argument in arguments { skim(argument) }
            fault(offset, "replace() expects two arguments.")
            return
        }
        for (index, argument) in arguments.enumerated() where !isString(argument) {
            fault(Int(argument.span.start), "Argument \(index + 1) of replace() must be a string.")
        }
    }

    private mutating func checkNames(_ arguments: [RulesExpression], at offset: Int) {
        guard let argument = arguments.first else { return }
        guard arguments.count == 1 else {
            for argument in arguments { skim(argument) }
            fault(offset, "hasChildren() expects only a single argument (containing an array of child names).")
            return
        }
        guard case .array(let elements) = argument.kind else {
            skim(argument)
            fault(Int(argument.span.start), "hasChildren() expects an array of child names.")
            return
        }
        for element in elements where !isString(element) {
            fault(Int(element.span.start), "hasChildren() expects an array of strings.")
        }
    }

    private mutating func checkRegex(_ arguments: [RulesExpression], at offset: Int) {
        guard arguments.count == 1 else {
            for argument in arguments { skim(argument) }
            fault(offset, "matches() expects 1 regular expression literal argument.")
            return
        }
        guard case .regex(let pattern, let flags) = arguments[0].kind else {
            skim(arguments[0])
            fault(Int(arguments[0].span.start), "matches() expects a regular expression literal argument.")
            return
        }
        compile(pattern, isCaseInsensitive: flags == "i", at: arguments[0].offset)
    }

    /// Whether an argument may be a string. The method that has an array or a regular expression as its argument
    /// reports it.
    private mutating func isString(_ argument: RulesExpression) -> Bool {
        switch argument.kind {
        case .array, .regex:
            skim(argument)
            return false
        default: return type(of: argument).fitsStringArgument
        }
    }
}
