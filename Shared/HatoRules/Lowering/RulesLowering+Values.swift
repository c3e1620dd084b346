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
        case .unary(.minus, let operand): return minus(operand, span)
        case .binary(.add, let left, let right): return sum(left, right, span)
        case .binary(let symbol, let left, let right) where symbol.isArithmetic:
            return arithmetic(symbol, left, right, span)
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

    // MARK: Sums

    private func minus(_ operand: RulesExpression, _ span: RulesSpan) -> RulesReading {
        let reading = reading(operand)
        return { evaluation throws(RulesFailure) in
            guard case .number(let number) = try reading(&evaluation) else {
                throw RulesFailure(reason: .notANumber, span: span)
            }
            return .number(-number)
        }
    }

    /// A chain of sums is flattened once, however long it is.
    private func sum(_ left: RulesExpression, _ right: RulesExpression, _ span: RulesSpan) -> RulesReading {
        // From the last operand to the second, each with the span of the sum that it ends.
        var parts = [(operand: right, span: span)]
        var first = left
        while case .binary(.add, let left, let right) = first.kind {
            parts.append((right, first.span))
            first = left
        }
        if case .string(let start) = first.kind {
            return textSum(start, parts.reversed().map { reading($0.operand) }, span)
        }
        return parts.reversed().reduce(reading(first)) { sum, part in plus(sum, reading(part.operand), part.span) }
    }

    private func plus(
        _ left: @escaping RulesReading, _ right: @escaping RulesReading, _ span: RulesSpan
    ) -> RulesReading {
        { evaluation throws(RulesFailure) in
            let first = try left(&evaluation)
            let second = try right(&evaluation)
            if case .number(let left) = first, case .number(let right) = second { return .number(left + right) }
            guard let start = first.text, let end = second.text else {
                throw RulesFailure(reason: .notAddable, span: span)
            }
            let count = start.utf8.count + end.utf8.count
            guard count <= RulesLimits.textBytesMax else { throw RulesFailure(reason: .textTooLong, span: span) }
            try evaluation.spend(count / 16, span)
            return .string(start + end)
        }
    }

    /// `'members/' + $chat + '/' + auth.uid`: a sum that begins with a string literal is one text, built in one step.
    private func textSum(_ start: String, _ readings: [RulesReading], _ span: RulesSpan) -> RulesReading {
        { evaluation throws(RulesFailure) in
            var text = start
            for reading in readings {
                let value = try reading(&evaluation)
                if case .string(let part) = value {
                    text += part
                } else {
                    guard let part = value.text else { throw RulesFailure(reason: .notAddable, span: span) }
                    text += part
                }
                guard text.utf8.count <= RulesLimits.textBytesMax else {
                    throw RulesFailure(reason: .textTooLong, span: span)
                }
            }
            try evaluation.spend(text.utf8.count / 16, span)
            return .string(text)
        }
    }

    private func arithmetic(
        _ symbol: RulesBinaryOperator, _ left: RulesExpression, _ right: RulesExpression, _ span: RulesSpan
    ) -> RulesReading {
        let (left, right) = (reading(left), reading(right))
        return { evaluation throws(RulesFailure) in
            let first = try left(&evaluation)
            guard case .number(let left) = first, case .number(let right) = try right(&evaluation) else {
                throw RulesFailure(reason: .notANumber, span: span)
            }
            switch symbol {
            case .multiply: return .number(left * right)
            // Division by zero yields NaN, unlike elsewhere where it is infinite (spec §9.5).
            case .divide: return .number(right == 0 ? .nan : left / right)
            case .remainder: return .number(right == 0 ? .nan : left.truncatingRemainder(dividingBy: right))
            default: return .number(left - right)
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
            let locating = places.locating(object)
            return { evaluation throws(RulesFailure) in
                let place = try locating(&evaluation)
                return try evaluation.value(place, span)
            }
        case .getPriority:
            let locating = places.locating(object)
            return { evaluation throws(RulesFailure) in
                let place = try locating(&evaluation)
                return RulesValue(try evaluation.priority(place, span)?.leaf)
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

extension RulesBinaryOperator {
    var isArithmetic: Bool {
        switch self {
        case .multiply, .divide, .remainder, .add, .subtract: true
        default: false
        }
    }
}
