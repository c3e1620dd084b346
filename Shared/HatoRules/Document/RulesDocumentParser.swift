import HatoModel

/// Parses a rules text (spec §9.1): JSON with `//` and `/* */` comments, trailing commas, and raw line breaks and tabs
/// inside strings. It stops at the first fault, since what follows a wrong bracket has no meaning.
struct RulesDocumentParser {
    private let scalars: [Unicode.Scalar]
    private var position = 0
    private var depth = 0

    init(_ source: RulesSource) { scalars = source.scalars }

    static func parse(_ source: RulesSource) throws(RulesFault) -> RulesDocument.Value {
        var parser = RulesDocumentParser(source)
        try parser.skipBlanks()
        let value = try parser.value()
        try parser.skipBlanks()
        guard parser.position == parser.scalars.count else { throw parser.fault() }
        return value
    }

    private var next: Unicode.Scalar? { position < scalars.count ? scalars[position] : nil }

    private func fault(_ message: String = "Parse error.") -> RulesFault {
        RulesFault(offset: position, message: message)
    }

    private mutating func skipBlanks() throws(RulesFault) {
        while let scalar = next {
            switch scalar {
            case " ", "\t", "\n", "\r", "\u{FEFF}": position += 1
            case "/": try skipComment()
            default: return
            }
        }
    }

    private mutating func skipComment() throws(RulesFault) {
        let following = position + 1 < scalars.count ? scalars[position + 1] : nil
        switch following {
        case "/":
            while next != nil, next != "\n" { position += 1 }
        case "*":
            let start = position
            position += 2
            while position + 1 < scalars.count, !(scalars[position] == "*" && scalars[position + 1] == "/") {
                position += 1
            }
            guard position + 1 < scalars.count else {
                throw RulesFault(offset: start, message: "Unterminated comment.")
            }
            position += 2
        default:
            throw fault()
        }
    }

    private mutating func value() throws(RulesFault) -> RulesDocument.Value {
        let offset = position
        depth += 1
        defer { depth -= 1 }
        guard depth <= RulesLimits.documentDepthMax else {
            throw fault("Rules are nested more than \(RulesLimits.documentDepthMax) levels deep.")
        }
        switch next {
        case "{": return .init(kind: .object(try members()), offset: offset)
        case "[": return .init(kind: .array(try elements()), offset: offset)
        case "\"": return .init(kind: .string(try string()), offset: offset)
        case ",": throw fault("Unexpected ','.")
        case .some: return .init(kind: try word(), offset: offset)
        case nil: throw fault()
        }
    }

    private mutating func members() throws(RulesFault) -> [RulesDocument.Member] {
        var members: [RulesDocument.Member] = []
        var names: Set<TreeKey> = []
        position += 1
        try skipBlanks()
        while next != "}" {
            let offset = position
            guard next == "\"" else {
                throw fault(next == "," && members.isEmpty ? "Unexpected ','." : "Expected '\"'.")
            }
            let name = try string().text
            guard names.insert(TreeKey(unchecked: name)).inserted else {
                throw RulesFault(offset: offset, message: "Duplicate key '\(name)'.")
            }
            try skipBlanks()
            guard next == ":" else { throw fault("Expected ':'.") }
            position += 1
            try skipBlanks()
            members.append(.init(name: name, offset: offset, value: try value()))
            guard try isFollowedByAnother(before: "}") else { break }
        }
        position += 1
        return members
    }

    private mutating func elements() throws(RulesFault) -> [RulesDocument.Value] {
        var elements: [RulesDocument.Value] = []
        position += 1
        try skipBlanks()
        while next != "]" {
            elements.append(try value())
            guard try isFollowedByAnother(before: "]") else { break }
        }
        position += 1
        return elements
    }

    /// After a member: takes the comma, and stops at the closing bracket.
    private mutating func isFollowedByAnother(before end: Unicode.Scalar) throws(RulesFault) -> Bool {
        try skipBlanks()
        if next == end { return false }
        guard next == "," else { throw fault("Expected ',' or '\(end)'.") }
        position += 1
        try skipBlanks()
        return true
    }

    private mutating func string() throws(RulesFault) -> RulesDocument.LocatedText {
        let start = position
        var text = RulesDocument.LocatedText()
        position += 1
        while let scalar = next, scalar != "\"" {
            text.offsets.append(position)
            if scalar == "\\" {
                text.scalars.append(try escape())
            } else {
                text.scalars.append(scalar)
                position += 1
            }
        }
        guard next == "\"" else { throw RulesFault(offset: start, message: "Unterminated string.") }
        text.end = position
        position += 1
        return text
    }

    private mutating func escape() throws(RulesFault) -> Unicode.Scalar {
        let start = position
        position += 1
        guard let scalar = next else { throw RulesFault(offset: start, message: "Unterminated string.") }
        position += 1
        switch scalar {
        case "\"", "\\", "/", "'": return scalar
        case "b": return "\u{8}"
        case "f": return "\u{C}"
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "u": return try unicodeEscape(start)
        default: throw RulesFault(offset: start, message: "Invalid escape: '\\\(scalar)'")
        }
    }

    private mutating func unicodeEscape(_ start: Int) throws(RulesFault) -> Unicode.Scalar {
        let first = try hexUnit(start)
        if let scalar = Unicode.Scalar(first) { return scalar }
        let unpaired = RulesFault(offset: start, message: SurrogatePair.unpaired)
        guard SurrogatePair.isHigh(first), next == "\\", position + 1 < scalars.count, scalars[position + 1] == "u"
        else {
            throw unpaired
        }
        position += 2
        guard let scalar = SurrogatePair.scalar(first, try hexUnit(start)) else { throw unpaired }
        return scalar
    }

    private mutating func hexUnit(_ start: Int) throws(RulesFault) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = next.flatMap(SurrogatePair.hexDigit) else {
                throw RulesFault(offset: start, message: "Invalid escape: '\\u' needs four hex digits")
            }
            unit = unit << 4 + digit
            position += 1
        }
        return unit
    }

    /// `true`, `false`, `null` or a number.
    private mutating func word() throws(RulesFault) -> RulesDocument.Kind {
        let start = position
        var text = ""
        while let scalar = next, Self.isWordScalar(scalar) {
            text.unicodeScalars.append(scalar)
            position += 1
        }
        switch text {
        case "true": return .bool(true)
        case "false": return .bool(false)
        case "null": return .null
        default:
            guard let first = text.unicodeScalars.first, first == "-" || ("0"..."9").contains(first),
                let number = Double(text), number.isFinite
            else { throw RulesFault(offset: start, message: "Parse error.") }
            return .number(number)
        }
    }

    private static func isWordScalar(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "-", "+", ".", "_": true
        default: false
        }
    }
}
