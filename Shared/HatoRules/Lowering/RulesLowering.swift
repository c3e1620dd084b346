import HatoModel

/// Turns a checked expression into nested closures: what is known when rules are set (names, keys of literal paths,
/// regular expressions) is computed then, not during evaluation.
///
/// It relies on the type checker: the shape of an expression determines its type.
struct RulesLowering {
    /// The `$names` in scope, with the index of the key in the path.
    let wildcards: [String: Int]
    /// The regular expressions by their offset.
    let programs: [Int: RegexProgram]

    var snapshots: RulesSnapshotLowering { RulesSnapshotLowering(values: self) }
    var numbers: RulesArithmeticLowering { RulesArithmeticLowering(values: self) }

    /// Lowers an expression of type boolean. When it is false, the evaluation records which part of it was.
    func test(_ expression: RulesExpression) -> RulesTest {
        let span = expression.span
        switch expression.kind {
        case .bool(let value):
            return { evaluation in value ? true : evaluation.fail(span) }
        case .unary(.not, let operand):
            let test = test(operand)
            return { evaluation throws(RulesFailure) in
                try test(&evaluation) ? evaluation.fail(span) : true
            }
        case .binary(.and, let left, let right):
            let (left, right) = (test(left), test(right))
            return { evaluation throws(RulesFailure) in
                try left(&evaluation) ? try right(&evaluation) : false
            }
        case .binary(.or, let left, let right):
            let (left, right) = (test(left), test(right))
            return { evaluation throws(RulesFailure) in
                if try left(&evaluation) { return true }
                return try right(&evaluation) ? true : evaluation.fail(span)
            }
        case .binary(.equal, let left, let right):
            return equality(left, right, isEqual: true, span)
        case .binary(.notEqual, let left, let right):
            return equality(left, right, isEqual: false, span)
        case .binary(let symbol, let left, let right):
            return order(symbol, left, right, span)
        case .conditional(let condition, let first, let second):
            let (condition, first, second) = (test(condition), test(first), test(second))
            return { evaluation throws(RulesFailure) in
                try condition(&evaluation) ? try first(&evaluation) : try second(&evaluation)
            }
        case .call(let target, let arguments):
            if let test = call(target, arguments, span) { return test }
        default: break
        }
        let reading = reading(expression)
        return { evaluation throws(RulesFailure) in
            if case .bool(true) = try reading(&evaluation) { return true }
            return evaluation.fail(span)
        }
    }

    // MARK: Comparisons

    private func equality(
        _ left: RulesExpression, _ right: RulesExpression, isEqual: Bool, _ span: RulesSpan
    ) -> RulesTest {
        if let test = signedIn(left, right, isEqual: isEqual, span) { return test }
        let (left, right) = (reading(left), reading(right))
        return { evaluation throws(RulesFailure) in
            let first = try left(&evaluation)
            return try first.equals(right(&evaluation)) == isEqual ? true : evaluation.fail(span)
        }
    }

    /// `auth != null`, the beginning of nearly every rule.
    private func signedIn(
        _ left: RulesExpression, _ right: RulesExpression, isEqual: Bool, _ span: RulesSpan
    ) -> RulesTest? {
        switch (left.kind, right.kind) {
        case (.variable("auth"), .null), (.null, .variable("auth")):
            return { evaluation in evaluation.auth.isNobody == isEqual ? true : evaluation.fail(span) }
        default: return nil
        }
    }

    private func order(
        _ symbol: RulesBinaryOperator, _ left: RulesExpression, _ right: RulesExpression, _ span: RulesSpan
    ) -> RulesTest {
        let (left, right) = (reading(left), reading(right))
        return { evaluation throws(RulesFailure) in
            let holds: Bool
            let first = try left(&evaluation)
            switch (first, try right(&evaluation)) {
            case (.number(let left), .number(let right)): holds = Self.holds(symbol, left, right)
            case (.string(let left), .string(let right)):
                holds = Self.holds(symbol, ValueOrder.compare(.string(left), .string(right)), 0)
            default: throw RulesFailure(reason: .notComparable, span: span)
            }
            return holds ? true : evaluation.fail(span)
        }
    }

    private static func holds<Value: Comparable>(
        _ symbol: RulesBinaryOperator, _ left: Value, _ right: Value
    ) -> Bool {
        switch symbol {
        case .less: left < right
        case .lessOrEqual: left <= right
        case .greater: left > right
        case .greaterOrEqual: left >= right
        default: false
        }
    }

    // MARK: Calls that return a boolean

    private func call(
        _ target: RulesExpression, _ arguments: [RulesExpression], _ span: RulesSpan
    ) -> RulesTest? {
        guard case .member(let object, let name) = target.kind else { return nil }
        if let method = RulesSnapshotMethod(rawValue: name) { return call(method, on: object, arguments, span) }
        if let method = RulesStringMethod(rawValue: name) { return call(method, on: object, arguments, span) }
        return nil
    }

    private func call(
        _ method: RulesSnapshotMethod, on object: RulesExpression, _ arguments: [RulesExpression], _ span: RulesSpan
    ) -> RulesTest? {
        switch method {
        case .exists: return existence(of: snapshots.locating(object), span)
        case .hasChild: return existence(of: snapshots.locating(object, child: arguments[0]), span)
        case .hasChildren: return children(of: object, arguments, span)
        case .isNumber: return kind(of: object, span) { if case .number? = $0 { true } else { false } }
        case .isString: return kind(of: object, span) { if case .string? = $0 { true } else { false } }
        case .isBoolean: return kind(of: object, span) { if case .bool? = $0 { true } else { false } }
        case .val, .child, .parent, .getPriority: return nil
        }
    }

    private func existence(of locating: @escaping RulesLocating, _ span: RulesSpan) -> RulesTest {
        { evaluation throws(RulesFailure) in
            let snapshot = try locating(&evaluation)
            return try evaluation.exists(snapshot, span) ? true : evaluation.fail(span)
        }
    }

    private func kind(
        of object: RulesExpression, _ span: RulesSpan, _ fits: @escaping @Sendable (TreeLeaf?) -> Bool
    ) -> RulesTest {
        let locating = snapshots.locating(object)
        return { evaluation throws(RulesFailure) in
            let snapshot = try locating(&evaluation)
            return fits(try evaluation.leaf(snapshot, span)) ? true : evaluation.fail(span)
        }
    }

    private func children(
        of object: RulesExpression, _ arguments: [RulesExpression], _ span: RulesSpan
    ) -> RulesTest {
        let locating = snapshots.locating(object)
        guard case .array(let names)? = arguments.first?.kind else {
            return { evaluation throws(RulesFailure) in
                let snapshot = try locating(&evaluation)
                return try evaluation.hasChildren(snapshot, span) ? true : evaluation.fail(span)
            }
        }
        let descents = names.map { snapshots.descent($0) }
        if names.allSatisfy(\.isString) {
            return { evaluation throws(RulesFailure) in
                let snapshot = try locating(&evaluation)
                for descent in descents {
                    var child = snapshot
                    try descent(&child, &evaluation)
                    if try !evaluation.exists(child, span) { return evaluation.fail(span) }
                }
                return true
            }
        }
        return { evaluation throws(RulesFailure) in
            let snapshot = try locating(&evaluation)
            // Every name is evaluated before the data is read: one that is no string fails the rule even after a
            // missing child.
            var snapshots: [RulesSnapshot] = []
            snapshots.reserveCapacity(descents.count)
            for descent in descents {
                var child = snapshot
                try descent(&child, &evaluation)
                snapshots.append(child)
            }
            for child in snapshots where try !evaluation.exists(child, span) { return evaluation.fail(span) }
            return true
        }
    }

    private func call(
        _ method: RulesStringMethod, on object: RulesExpression, _ arguments: [RulesExpression], _ span: RulesSpan
    ) -> RulesTest? {
        switch method {
        case .contains: return texts(object, arguments[0], span) { RulesText.contains($0, $1) }
        case .beginsWith: return texts(object, arguments[0], span) { RulesText.begins($0, with: $1) }
        case .endsWith: return texts(object, arguments[0], span) { RulesText.ends($0, with: $1) }
        case .matches: return matching(object, arguments[0], span)
        case .replace, .toLowerCase, .toUpperCase: return nil
        }
    }

    private func texts(
        _ object: RulesExpression, _ argument: RulesExpression, _ span: RulesSpan,
        _ holds: @escaping @Sendable (String, String) -> Bool
    ) -> RulesTest {
        let (receiver, argument) = (text(object, .receiverIsNoString), text(argument, .argumentIsNoString))
        return { evaluation throws(RulesFailure) in
            let text = try receiver(&evaluation)
            let part = try argument(&evaluation)
            return holds(text, part) ? true : evaluation.fail(span)
        }
    }

    private func matching(
        _ object: RulesExpression, _ argument: RulesExpression, _ span: RulesSpan
    ) -> RulesTest? {
        guard let program = programs[argument.offset] else { return nil }
        let receiver = text(object, .receiverIsNoString)
        return { evaluation throws(RulesFailure) in
            let text = try receiver(&evaluation)
            return try evaluation.finds(program, in: text, span) ? true : evaluation.fail(span)
        }
    }
}
