/// Parses the whole grammar of rule expressions (spec §9.5) by precedence climbing; the type checker decides what is
/// allowed.
struct RulesExpressionParser {
    private let tokens: [RulesToken]
    private var index = 0
    private var depth = 0

    private init(_ tokens: [RulesToken]) { self.tokens = tokens }

    static func parse(_ text: RulesDocument.LocatedText) throws(RulesFault) -> RulesExpression {
        var parser = RulesExpressionParser(try RulesLexer.tokens(of: text))
        let expression = try parser.expression()
        guard parser.token.kind == .end else { throw parser.fault() }
        return expression
    }

    /// The last token is `.end` and is never consumed, so there is always one.
    private var token: RulesToken { tokens[index] }

    private func fault() -> RulesFault {
        if case .mark("=") = token.kind {
            return RulesFault(offset: token.offset, message: "Rule expressions may not contain assignments.")
        }
        return RulesFault(offset: token.offset, message: "Parse error.")
    }

    private mutating func take(_ mark: String) -> Bool {
        guard token.kind == .mark(mark) else { return false }
        index += 1
        return true
    }

    private mutating func expect(_ mark: String) throws(RulesFault) {
        guard take(mark) else { throw fault() }
    }

    /// From `start` to after the last consumed token.
    private func span(from start: Int32) -> RulesSpan {
        RulesSpan(Int(start), index > 0 ? tokens[index - 1].end : Int(start))
    }

    private mutating func expression() throws(RulesFault) -> RulesExpression {
        depth += 1
        defer { depth -= 1 }
        guard depth <= RulesLimits.expressionDepthMax else {
            throw RulesExpression.tooDeep(token.offset)
        }
        let condition = try binary(above: 0)
        let offset = token.offset
        guard take("?") else { return condition }
        let first = try expression()
        try expect(":")
        let second = try expression()
        return try RulesExpression(
            .conditional(condition, first, second), at: offset, condition.span.joined(second.span))
    }

    private mutating func binary(above precedence: Int) throws(RulesFault) -> RulesExpression {
        var left = try unary()
        while case .mark(let mark) = token.kind, let symbol = RulesBinaryOperator(mark: mark),
            symbol.precedence > precedence
        {
            let offset = token.offset
            index += 1
            let right = try binary(above: symbol.precedence)
            left = try RulesExpression(.binary(symbol, left, right), at: offset, left.span.joined(right.span))
        }
        return left
    }

    private mutating func unary() throws(RulesFault) -> RulesExpression {
        let offset = token.offset
        guard case .mark(let mark) = token.kind, let symbol = RulesUnaryOperator(rawValue: mark) else {
            return try postfix()
        }
        depth += 1
        defer { depth -= 1 }
        guard depth <= RulesLimits.expressionDepthMax else {
            throw RulesExpression.tooDeep(offset)
        }
        index += 1
        let operand = try unary()
        return try RulesExpression(.unary(symbol, operand), at: offset, RulesSpan(offset, Int(operand.span.end)))
    }

    private mutating func postfix() throws(RulesFault) -> RulesExpression {
        var expression = try primary()
        while true {
            let offset = token.offset
            let start = expression.span.start
            if take(".") {
                guard case .name(let name) = token.kind else { throw fault() }
                let offset = token.offset
                index += 1
                expression = try RulesExpression(.member(expression, name), at: offset, span(from: start))
            } else if take("[") {
                let element = try self.expression()
                try expect("]")
                // A literal name means the same with a dot or in brackets.
                var kind = RulesExpression.Kind.element(expression, element)
                if case .string(let name) = element.kind { kind = .member(expression, name) }
                expression = try RulesExpression(kind, at: offset, span(from: start))
            } else if take("(") {
                let arguments = try list(until: ")")
                expression = try RulesExpression(
                    .call(expression, arguments), at: expression.offset, span(from: start))
            } else {
                return expression
            }
        }
    }

    private mutating func list(until end: String) throws(RulesFault) -> [RulesExpression] {
        var list: [RulesExpression] = []
        if take(end) { return list }
        repeat { list.append(try expression()) } while take(",")
        try expect(end)
        return list
    }

    private mutating func primary() throws(RulesFault) -> RulesExpression {
        let offset = token.offset
        let kind: RulesExpression.Kind
        switch token.kind {
        case .name("true"): kind = .bool(true)
        case .name("false"): kind = .bool(false)
        case .name("null"): kind = .null
        case .name(let name): kind = .variable(name)
        case .number(let number): kind = .number(number)
        case .string(let string): kind = .string(string)
        case .regex(let pattern, let flags): kind = .regex(pattern: pattern, flags: flags)
        case .mark("("):
            index += 1
            let inner = try expression()
            try expect(")")
            return inner.bracketed(span(from: Int32(clamping: offset)))
        case .mark("["):
            index += 1
            let elements = try list(until: "]")
            return try RulesExpression(.array(elements), at: offset, span(from: Int32(clamping: offset)))
        case .mark, .end:
            throw fault()
        }
        index += 1
        return try RulesExpression(kind, at: offset, span(from: Int32(clamping: offset)))
    }
}
