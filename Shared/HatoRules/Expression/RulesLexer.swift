/// Splits a rule expression into tokens (spec §9.5). A `/` where an operand may be begins a regular expression.
struct RulesLexer {
    private let text: RulesDocument.LocatedText
    private var position = 0
    private var tokens: [RulesToken] = []

    private init(_ text: RulesDocument.LocatedText) { self.text = text }

    /// The tokens of `text`; the last is `.end`.
    static func tokens(of text: RulesDocument.LocatedText) throws(RulesFault) -> [RulesToken] {
        var lexer = RulesLexer(text)
        while let scalar = lexer.next { try lexer.takeToken(scalar) }
        lexer.append(.end, from: lexer.position)
        return lexer.tokens
    }

    private var next: Unicode.Scalar? { position < text.scalars.count ? text.scalars[position] : nil }

    /// Appends a token that ends at the current position.
    private mutating func append(_ kind: RulesToken.Kind, from start: Int) {
        let end = position > start ? text.offset(position - 1) + 1 : text.offset(start)
        tokens.append(RulesToken(kind: kind, offset: text.offset(start), end: end))
    }

    private func fault(_ start: Int, _ message: String = "Parse error.") -> RulesFault {
        RulesFault(offset: text.offset(start), message: message)
    }

    private mutating func takeToken(_ scalar: Unicode.Scalar) throws(RulesFault) {
        switch scalar {
        case " ", "\t", "\n", "\r": position += 1
        case "0"..."9": try takeNumber()
        case ".":
            let digitFollows = position + 1 < text.scalars.count && ("0"..."9").contains(text.scalars[position + 1])
            if digitFollows, isOperandExpected { try takeNumber() } else { takeMark(".") }
        case "'", "\"": try takeString(quote: scalar)
        case "/" where isOperandExpected: try takeRegex()
        case "a"..."z", "A"..."Z", "_", "$": takeName()
        default:
            guard let mark = mark() else { throw fault(position) }
            takeMark(mark)
        }
    }

    /// Whether an operand must follow the tokens so far.
    private var isOperandExpected: Bool {
        switch tokens.last?.kind {
        case .name, .number, .string, .regex, .mark(")"), .mark("]"): false
        default: true
        }
    }

    /// Longer marks precede their own prefixes.
    private static let marks = [
        "===", "!==", "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "=", "+", "-", "*", "/", "%", "?", ":", "(",
        ")", "[", "]", ",", ".",
    ].map { (text: $0, scalars: Array($0.unicodeScalars)) }

    private func mark() -> String? {
        Self.marks.first { text.scalars[position...].starts(with: $0.scalars) }?.text
    }

    private mutating func takeMark(_ mark: String) {
        let start = position
        position += mark.unicodeScalars.count
        append(.mark(mark), from: start)
    }

    private mutating func takeName() {
        let start = position
        var name = ""
        while let scalar = next, Self.isNameScalar(scalar) {
            name.unicodeScalars.append(scalar)
            position += 1
        }
        append(.name(name), from: start)
    }

    static func isNameScalar(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "_", "$": true
        default: false
        }
    }

    private mutating func takeNumber() throws(RulesFault) {
        let start = position
        var digits = ""
        while let scalar = next {
            let isSign = (scalar == "+" || scalar == "-") && (digits.last == "e" || digits.last == "E")
            guard isSign || scalar == "." || Self.isNameScalar(scalar) else { break }
            digits.unicodeScalars.append(scalar)
            position += 1
        }
        let isDecimal = digits.unicodeScalars.allSatisfy {
            ("0"..."9").contains($0) || "eE+-.".unicodeScalars.contains($0)
        }
        let padded = digits.first == "." ? "0" + digits : digits
        guard isDecimal, let number = Double(padded), number.isFinite else { throw fault(start) }
        append(.number(number), from: start)
    }

    private mutating func takeString(quote: Unicode.Scalar) throws(RulesFault) {
        let start = position
        var value = ""
        position += 1
        while let scalar = next, scalar != quote {
            if scalar == "\\" {
                value.unicodeScalars.append(try takeEscape())
            } else {
                value.unicodeScalars.append(scalar)
                position += 1
            }
        }
        guard next == quote else { throw fault(start) }
        position += 1
        append(.string(value), from: start)
    }

    private mutating func takeEscape() throws(RulesFault) -> Unicode.Scalar {
        let start = position
        position += 1
        guard let scalar = next else { throw fault(start) }
        position += 1
        switch scalar {
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "b": return "\u{8}"
        case "f": return "\u{C}"
        case "u": return try takeUnicodeEscape(start)
        default: return scalar
        }
    }

    /// After `\u`; the second half of a surrogate pair has a `\u` of its own.
    private mutating func takeUnicodeEscape(_ start: Int) throws(RulesFault) -> Unicode.Scalar {
        let unit = try takeHexUnit(start)
        if let scalar = Unicode.Scalar(unit) { return scalar }
        guard SurrogatePair.isHigh(unit), next == "\\", position + 1 < text.scalars.count,
            text.scalars[position + 1] == "u"
        else { throw fault(start, SurrogatePair.unpaired) }
        position += 2
        guard let scalar = SurrogatePair.scalar(unit, try takeHexUnit(start)) else {
            throw fault(start, SurrogatePair.unpaired)
        }
        return scalar
    }

    private mutating func takeHexUnit(_ start: Int) throws(RulesFault) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = next.flatMap(SurrogatePair.hexDigit) else { throw fault(start) }
            unit = unit << 4 + digit
            position += 1
        }
        return unit
    }

    private mutating func takeRegex() throws(RulesFault) {
        let start = position
        var pattern = ""
        var isInClass = false
        position += 1
        while let scalar = next, scalar != "/" || isInClass {
            position += 1
            pattern.unicodeScalars.append(scalar)
            if scalar == "\\", let escaped = next {
                pattern.unicodeScalars.append(escaped)
                position += 1
            } else if scalar == "[" {
                isInClass = true
            } else if scalar == "]" {
                isInClass = false
            }
        }
        guard next == "/" else { throw fault(start, "unterminated regular expression literal") }
        position += 1
        var flags = ""
        while let scalar = next, Self.isNameScalar(scalar) {
            flags.unicodeScalars.append(scalar)
            position += 1
        }
        guard flags.isEmpty || flags == "i" else {
            throw fault(start, "regular expressions do not support flags other than i")
        }
        append(.regex(pattern: pattern, flags: flags), from: start)
    }
}
