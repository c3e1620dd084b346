/// The syntax tree of a regular expression of the rules language (spec §9.5).
indirect enum RegexNode: Sendable {
    case set(RegexSet)
    case sequence([RegexNode])
    case alternatives([RegexNode])
    /// `maximum` nil: unbounded.
    case repetition(RegexNode, minimum: Int, maximum: Int?)
    case start
    case end
}

/// Why a regular expression cannot be used.
struct RegexFault: Error, Hashable {
    var message: String

    static let syntax = RegexFault(message: "Parse error.")
    static let unpaired = RegexFault(message: SurrogatePair.unpaired)
    static let tooLarge = RegexFault(
        message: "Regular expression is too large (the maximum is \(RulesLimits.regexInstructionsMax) instructions, "
            + "\(RulesLimits.regexRepetitionsMax) repetitions, \(RulesLimits.expressionDepthMax) groups in one another)."
    )
}

/// Parses the regular expressions of the rules language: literals, escapes, `.`, classes, capturing groups, `|`, `* + ?
/// {n} {n,} {n,m}`, `^` as the very first and `$` as the very last character. Other features of regular expression
/// engines (lookaround, references, lazy and doubled quantifiers, empty alternatives) are refused, as Firebase does.
struct RegexParser {
    private let pattern: [Unicode.Scalar]
    private let isCaseInsensitive: Bool
    private var position = 0
    private var depth = 0

    static func parse(_ pattern: String, isCaseInsensitive: Bool) throws(RegexFault) -> RegexNode {
        var parser = RegexParser(pattern: Array(pattern.unicodeScalars), isCaseInsensitive: isCaseInsensitive)
        let node = try parser.alternatives()
        guard parser.next == nil else { throw .syntax }
        return node
    }

    private init(pattern: [Unicode.Scalar], isCaseInsensitive: Bool) {
        self.pattern = pattern
        self.isCaseInsensitive = isCaseInsensitive
    }

    private var next: Unicode.Scalar? { position < pattern.count ? pattern[position] : nil }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard next == scalar else { return false }
        position += 1
        return true
    }

    private mutating func alternatives() throws(RegexFault) -> RegexNode {
        depth += 1
        defer { depth -= 1 }
        guard depth <= RulesLimits.expressionDepthMax else { throw .tooLarge }
        var alternatives = [try sequence()]
        while take("|") { alternatives.append(try sequence()) }
        return alternatives.count == 1 ? alternatives[0] : .alternatives(alternatives)
    }

    private mutating func sequence() throws(RegexFault) -> RegexNode {
        var terms: [RegexNode] = []
        while let scalar = next, scalar != "|", scalar != ")" { terms.append(try term(scalar)) }
        guard !terms.isEmpty else { throw .syntax }
        return terms.count == 1 ? terms[0] : .sequence(terms)
    }

    private mutating func term(_ scalar: Unicode.Scalar) throws(RegexFault) -> RegexNode {
        let start = position
        position += 1
        switch scalar {
        case "^" where start == 0: return .start
        case "$" where start == pattern.count - 1 && depth == 1: return .end
        case "^", "$", "*", "+", "?", "{": throw .syntax
        case "(":
            let inner = try alternatives()
            guard take(")") else { throw .syntax }
            return try quantified(inner)
        case "[": return try quantified(.set(try characterClass()))
        case ".": return try quantified(.set(.any))
        case "\\":
            switch try escape() {
            case .scalar(let scalar): return try quantified(.set(single(scalar)))
            case .ranges(let ranges): return try quantified(.set(RegexSet(ranges)))
            }
        default: return try quantified(.set(single(scalar)))
        }
    }

    private func single(_ scalar: Unicode.Scalar) -> RegexSet {
        RegexSet(scalar, isCaseInsensitive: isCaseInsensitive)
    }

    // MARK: Quantifiers

    private mutating func quantified(_ node: RegexNode) throws(RegexFault) -> RegexNode {
        let bounds: (Int, Int?)
        switch next {
        case "*": bounds = (0, nil)
        case "+": bounds = (1, nil)
        case "?": bounds = (0, 1)
        case "{": bounds = try counts()
        default: return node
        }
        position += 1
        if let next, ["*", "+", "?", "{"].contains(next) { throw .syntax }
        return .repetition(node, minimum: bounds.0, maximum: bounds.1)
    }

    /// `{n}`, `{n,}` or `{n,m}`; stops at the closing bracket.
    private mutating func counts() throws(RegexFault) -> (Int, Int?) {
        position += 1
        let minimum = try number()
        guard take(",") else {
            guard next == "}" else { throw .syntax }
            return (minimum, minimum)
        }
        if next == "}" { return (minimum, nil) }
        let maximum = try number()
        guard next == "}", minimum <= maximum else { throw .syntax }
        return (minimum, maximum)
    }

    private mutating func number() throws(RegexFault) -> Int {
        var value = 0
        let start = position
        while let scalar = next, ("0"..."9").contains(scalar) {
            value = value * 10 + Int(scalar.value - 0x30)
            guard value <= RulesLimits.regexRepetitionsMax else { throw .tooLarge }
            position += 1
        }
        guard position > start else { throw .syntax }
        return value
    }

    // MARK: Characters

    private enum Escape {
        case scalar(Unicode.Scalar)
        case ranges([ClosedRange<UInt32>])
    }

    /// After the backslash.
    private mutating func escape() throws(RegexFault) -> Escape {
        guard let scalar = next else { throw .syntax }
        position += 1
        switch scalar {
        case "d": return .ranges(RegexSet.digits)
        case "D": return .ranges(RegexSet.complement(RegexSet.digits))
        case "w": return .ranges(RegexSet.words)
        case "W": return .ranges(RegexSet.complement(RegexSet.words))
        case "s": return .ranges(RegexSet.spaces)
        case "S": return .ranges(RegexSet.complement(RegexSet.spaces))
        case "n": return .scalar("\n")
        case "r": return .scalar("\r")
        case "t": return .scalar("\t")
        case "f": return .scalar("\u{C}")
        case "v": return .scalar("\u{B}")
        case "x":
            guard let scalar = Unicode.Scalar(try hexadecimal(digits: 2)) else { throw .syntax }
            return .scalar(scalar)
        case "u": return .scalar(try unicodeEscape())
        // Other letters and digits have a meaning in other engines that is not supported: references, boundaries.
        case "a"..."z", "A"..."Z", "0"..."9": throw .syntax
        default: return .scalar(scalar)
        }
    }

    /// After `\u`; the second half of a surrogate pair has a `\u` of its own.
    private mutating func unicodeEscape() throws(RegexFault) -> Unicode.Scalar {
        let unit = try hexadecimal(digits: 4)
        if let scalar = Unicode.Scalar(unit) { return scalar }
        guard SurrogatePair.isHigh(unit), take("\\"), take("u"),
            let scalar = SurrogatePair.scalar(unit, try hexadecimal(digits: 4))
        else { throw .unpaired }
        return scalar
    }

    private mutating func hexadecimal(digits: Int) throws(RegexFault) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<digits {
            guard let digit = next.flatMap(SurrogatePair.hexDigit) else { throw .syntax }
            value = value << 4 + digit
            position += 1
        }
        return value
    }

    /// After the opening bracket.
    private mutating func characterClass() throws(RegexFault) -> RegexSet {
        let isNegated = take("^")
        var ranges: [ClosedRange<UInt32>] = []
        while next != "]" {
            let first = try classMember()
            guard case .scalar(let low) = first, next == "-", position + 1 < pattern.count,
                pattern[position + 1] != "]"
            else {
                switch first {
                case .scalar(let scalar): ranges.append(scalar.value...scalar.value)
                case .ranges(let more): ranges += more
                }
                continue
            }
            position += 1
            guard case .scalar(let high) = try classMember(), low <= high else { throw .syntax }
            ranges.append(low.value...high.value)
        }
        position += 1
        guard !ranges.isEmpty else { throw .syntax }
        return RegexSet(ranges, isNegated: isNegated, isCaseInsensitive: isCaseInsensitive)
    }

    private mutating func classMember() throws(RegexFault) -> Escape {
        guard let scalar = next else { throw .syntax }
        position += 1
        return scalar == "\\" ? try escape() : .scalar(scalar)
    }
}
