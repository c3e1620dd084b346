import HatoModel

typealias RulesTexting = @Sendable (inout RulesEvaluation) throws(RulesFailure) -> String

/// Lowers expressions of any type to values.
extension RulesLowering {
    func reading(_ expression: RulesExpression) -> RulesReading {
        let span = expression.span
        switch expression.kind {
        case .null: return { _ in .null }
        case .bool(let value): return { _ in .bool(value) }
        case .number(let value): return { _ in .number(value) }
        case .string(let value): return { _ in .string(value) }
        case .variable(let name): return variable(name, span)
        case .member(let object, let name): return member(name, of: object, span)
        case .element(let object, let element): return self.element(element, of: object)
        case .unary(.minus, let operand): return numbers.minus(operand, span)
        case .binary(.add, let left, let right): return numbers.sum(left, right, span)
        case .binary(let symbol, let left, let right) where symbol.isArithmetic:
            return numbers.arithmetic(symbol, left, right, span)
        case .conditional(let condition, let first, let second):
            let (condition, first, second) = (test(condition), reading(first), reading(second))
            return { evaluation throws(RulesFailure) in
                try condition(&evaluation) ? try first(&evaluation) : try second(&evaluation)
            }
        case .call(let target, let arguments):
            if let reading = call(target, arguments, span) { return reading }
            // `test` lowers all other calls except those that return a snapshot.
            if expression.isSnapshotCall { return noValue(span) }
        case .regex, .array: return { _ in .null }
        case .unary, .binary: break
        }
        let test = test(expression)
        return { evaluation throws(RulesFailure) in .bool(try test(&evaluation)) }
    }

    /// Fails for a snapshot where a value is needed: stored rules may have it as a branch of `?:`.
    private func noValue(_ span: RulesSpan) -> RulesReading {
        { _ throws(RulesFailure) in throw RulesFailure(reason: .notAValue, span: span) }
    }

    private func variable(_ name: String, _ span: RulesSpan) -> RulesReading {
        switch name {
        case "auth": return { evaluation in evaluation.auth.isNobody ? .null : .auth }
        case "now": return { evaluation in .number(evaluation.readTime()) }
        default:
            guard let index = wildcards[name] else { return noValue(span) }
            return { evaluation in .string(evaluation.keys[index].text) }
        }
    }

    // MARK: Members

    private func member(_ name: String, of object: RulesExpression, _ span: RulesSpan) -> RulesReading {
        if object.kind == .variable("query") {
            guard let field = RulesQueryField(rawValue: name) else { return { _ in .null } }
            return { evaluation in evaluation.query.value(field) }
        }
        if name == "length" {
            let text = text(object, .receiverIsNoString)
            return { evaluation throws(RulesFailure) in
                .number(Double(RulesText.length(try text(&evaluation))))
            }
        }
        if object.kind == .variable("auth") { return { evaluation in evaluation.auth.member(name) } }
        let reading = reading(object)
        return { evaluation throws(RulesFailure) in
            try reading(&evaluation).member(.string(name), of: evaluation.auth)
        }
    }

    private func element(_ element: RulesExpression, of object: RulesExpression) -> RulesReading {
        let span = element.span
        let (object, name) = (reading(object), reading(element))
        return { evaluation throws(RulesFailure) in
            let value = try object(&evaluation)
            let name = try name(&evaluation)
            switch name {
            case .string, .number: return value.member(name, of: evaluation.auth)
            default: throw RulesFailure(reason: .argumentIsNoString, span: span)
            }
        }
    }

    // MARK: Calls

    private func call(
        _ target: RulesExpression, _ arguments: [RulesExpression], _ span: RulesSpan
    ) -> RulesReading? {
        guard case .member(let object, let name) = target.kind else { return nil }
        if let method = RulesSnapshotMethod(rawValue: name) { return call(method, on: object, span) }
        switch RulesStringMethod(rawValue: name) {
        case .toLowerCase: return changed(object, span) { $0.lowercased() }
        case .toUpperCase: return changed(object, span) { $0.uppercased() }
        case .replace: return replacement(object, arguments, span)
        default: return nil
        }
    }

    private func call(
        _ method: RulesSnapshotMethod, on object: RulesExpression, _ span: RulesSpan
    ) -> RulesReading? {
        switch method {
        case .val:
            let locating = snapshots.locating(object)
            return { evaluation throws(RulesFailure) in
                let snapshot = try locating(&evaluation)
                return try evaluation.value(snapshot, span)
            }
        case .getPriority:
            let locating = snapshots.locating(object)
            return { evaluation throws(RulesFailure) in
                let snapshot = try locating(&evaluation)
                return RulesValue(try evaluation.priority(snapshot, span)?.leaf)
            }
        default: return nil
        }
    }

    private func changed(
        _ object: RulesExpression, _ span: RulesSpan, _ change: @escaping @Sendable (String) -> String
    ) -> RulesReading {
        let receiver = text(object, .receiverIsNoString)
        return { evaluation throws(RulesFailure) in
            let text = try receiver(&evaluation)
            try evaluation.spend(text.utf8.count / 2, span)
            return .string(change(text))
        }
    }

    private func replacement(
        _ object: RulesExpression, _ arguments: [RulesExpression], _ span: RulesSpan
    ) -> RulesReading {
        let receiver = text(object, .receiverIsNoString)
        let (part, other) = (text(arguments[0], .argumentIsNoString), text(arguments[1], .argumentIsNoString))
        return { evaluation throws(RulesFailure) in
            let text = try receiver(&evaluation)
            let (part, other) = (try part(&evaluation), try other(&evaluation))
            guard let replaced = RulesText.replacing(part, in: text, with: other) else {
                throw RulesFailure(reason: .textTooLong, span: span)
            }
            try evaluation.spend(replaced.utf8.count / 4, span)
            return .string(replaced)
        }
    }

    /// A value that must be a string; each 16 bytes of it count as a step, once for every method that reads it.
    func text(_ expression: RulesExpression, _ reason: RulesFailure.Reason) -> RulesTexting {
        let span = expression.span
        if case .string(let text) = expression.kind { return { _ in text } }
        let reading = reading(expression)
        return { evaluation throws(RulesFailure) in
            guard case .string(let text) = try reading(&evaluation) else {
                throw RulesFailure(reason: reason, span: span)
            }
            try evaluation.spend(text.utf8.count / 16, span)
            return text
        }
    }
}

extension RulesExpression {
    /// Whether it is a call of `child()` or `parent()`.
    fileprivate var isSnapshotCall: Bool {
        guard case .call(let target, _) = kind, case .member(_, let name) = target.kind else { return false }
        return RulesSnapshotMethod(rawValue: name)?.result == .snapshot
    }
}
