@testable import HatoRules

/// Prints a parsed expression with brackets around every part, so that precedence does not matter.
enum PrintedExpression {
    static func source(_ expression: RulesExpression) -> String {
        switch expression.kind {
        case .null: return "null"
        case .bool(let value): return "\(value)"
        case .number(let value): return "\(value)"
        case .string(let text): return quoted(text)
        case .regex(let pattern, let flags): return "/\(pattern)/\(flags)"
        case .array(let elements): return "[\(elements.map(source).joined(separator: ", "))]"
        case .variable(let name): return name
        case .member(let object, let name):
            let isName =
                name.unicodeScalars.allSatisfy(RulesLexer.isNameScalar) && !name.isEmpty
                && !("0"..."9").contains(name.unicodeScalars.first ?? "0")
            return part(object) + (isName ? ".\(name)" : "[\(quoted(name))]")
        case .element(let object, let element): return "\(part(object))[\(source(element))]"
        case .call(let target, let arguments):
            return "\(part(target))(\(arguments.map(source).joined(separator: ", ")))"
        case .unary(let symbol, let operand): return symbol.rawValue + part(operand)
        case .binary(let symbol, let left, let right): return "\(part(left)) \(symbol.rawValue) \(part(right))"
        case .conditional(let condition, let first, let second):
            return "\(part(condition)) ? \(part(first)) : \(part(second))"
        }
    }

    private static func part(_ expression: RulesExpression) -> String { "(\(source(expression)))" }

    /// Every UTF-16 unit as an escape.
    static func quoted(_ text: String, quote: String = "'") -> String {
        quote
            + text.utf16.map { unit in
                let digits = String(unit, radix: 16)
                return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }.joined() + quote
    }
}
