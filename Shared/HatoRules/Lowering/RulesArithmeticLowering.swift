import HatoModel

/// Turns sums and other arithmetic into closures that compute a number or a text.
struct RulesArithmeticLowering {
    /// Lowers the operands.
    let values: RulesLowering

    func minus(_ operand: RulesExpression, _ span: RulesSpan) -> RulesReading {
        let reading = values.reading(operand)
        return { evaluation throws(RulesFailure) in
            guard case .number(let number) = try reading(&evaluation) else {
                throw RulesFailure(reason: .notANumber, span: span)
            }
            return .number(-number)
        }
    }

    /// A chain of sums is flattened once, however long it is.
    func sum(_ left: RulesExpression, _ right: RulesExpression, _ span: RulesSpan) -> RulesReading {
        // From the last operand to the second, each with the span of the sum that it ends.
        var parts = [(operand: right, span: span)]
        var first = left
        while case .binary(.add, let left, let right) = first.kind {
            parts.append((right, first.span))
            first = left
        }
        if case .string(let start) = first.kind {
            return textSum(start, parts.reversed().map { values.reading($0.operand) }, span)
        }
        return parts.reversed().reduce(values.reading(first)) { sum, part in
            plus(sum, values.reading(part.operand), part.span)
        }
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

    func arithmetic(
        _ symbol: RulesBinaryOperator, _ left: RulesExpression, _ right: RulesExpression, _ span: RulesSpan
    ) -> RulesReading {
        let (left, right) = (values.reading(left), values.reading(right))
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
}

extension RulesBinaryOperator {
    var isArithmetic: Bool {
        switch self {
        case .multiply, .divide, .remainder, .add, .subtract: true
        default: false
        }
    }
}
