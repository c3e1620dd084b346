/// One line that begins a public declaration.
struct PublicDeclaration {
    var kind: String
    var name: String
    /// The type, extension or protocol that it is in; nil outside of all.
    var type: String?
    var docstring: String
    var isDocumented: Bool
    /// Whether it throws errors that its declaration does not name.
    var throwsAnyError: Bool
    /// An initialiser that gives each property a parameter or a value: the properties are documented.
    var isMemberwise: Bool
    /// A request, notification or result.
    var isMethod: Bool

    init?(_ lines: [Substring], at index: Int) {
        guard lines[index].contains("public "),
            let match = lines[index].firstMatch(
                of:
                    #/^(\s*)public ((?:static |final |mutating |nonisolated |convenience |indirect |consuming |(?:private|internal|package)\(set\) )*)(let|var|func|init|struct|enum|class|actor|protocol|typealias|subscript|associatedtype)\b[ ?]*`?([\w=<]*)/#
            )
        else { return nil }
        kind = String(match.3)
        name = String(match.4)
        isMethod =
            lines[index].contains(": RPCRequest") || lines[index].contains(": RPCNotification")
            || name == "Result" && lines[index].contains(": FieldObject")
        var above = index - 1
        while above >= 0, lines[above].contains(#/^\s*@/#) { above -= 1 }
        let attributes = lines[..<index].suffix(6).reversed().prefix { !$0.allSatisfy(\.isWhitespace) }
        // The help of an option of a command documents it.
        let isOption = attributes.contains {
            $0.contains("@Option") || $0.contains("@Flag") || $0.contains("@Argument")
        }
        let comment = lines[...max(above, 0)].reversed().prefix { $0.contains(#/^\s*\/\/\//#) }
        docstring = comment.reversed().joined(separator: "\n")
        type = Conformances.type(around: index, of: lines, margin: match.1.count)
        throwsAnyError = ["func", "init", "subscript"].contains(kind) && Self.throwsAnyError(lines, from: index)
        isDocumented = isOption || above >= 0 && lines[above].contains("///")
        isMemberwise = kind == "init" && Self.assignsOnly(lines, from: index, margin: match.1.count)
        if kind == "init", lines[index].contains(#/init\??\((json|rawValue|\w+Literal)\b|init\(\) \{/#) {
            isMemberwise = true
        }
    }

    private static func assignsOnly(_ lines: [Substring], from start: Int, margin: Int) -> Bool {
        guard !lines[start].contains("throws") else { return false }
        var body: [Substring] = []
        if lines[start].hasSuffix("}"), let open = lines[start].firstIndex(of: "{") {
            body = [lines[start][lines[start].index(after: open)...].dropLast()]
        } else {
            guard let open = lines[start...].firstIndex(where: { $0.hasSuffix("{") }),
                let end = lines[open...].firstIndex(where: { $0 == String(repeating: " ", count: margin) + "}" })
            else { return false }
            body = Array(lines[(open + 1)..<end])
        }
        return body.allSatisfy { $0.contains(#/^\s*(self\.)?`?\w+`? = [^{]*$|^\s*$|^\s*\(.*\) = \(.*\)$/#) }
    }

    private static func throwsAnyError(_ lines: [Substring], from start: Int) -> Bool {
        var (depth, hasParameters, effects) = (0, false, "")
        for line in lines[start...] {
            for character in line {
                switch character {
                case "(", "[": depth += 1
                case ")", "]":
                    depth -= 1
                    if depth == 0 { hasParameters = true }
                case "{" where depth == 0: return effects.contains(#/\bthrows\b(?!\u{1})/#)
                default: break
                }
                // A parenthesis behind the word is a type of errors.
                if hasParameters { effects.append(character == "(" ? "\u{1}" : character) }
            }
            effects.append(" ")
        }
        return false
    }
}
