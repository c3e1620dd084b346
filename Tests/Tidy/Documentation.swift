import Testing

/// Every public declaration has a docstring.
@Suite struct Documentation {
    private let repository = Repository()
    private let commentColumnsMax = 120

    /// Requirements of protocols of other packages, and of the protocols of methods: documented where they are
    /// declared.
    private static let requirements: Set<String> = [
        "method", "summary", "access", "effect", "example", "fields", "isSlow", "hasSideEffect", "isIdempotent",
        "methods", "notifications", "description", "hashValue", "json", "schema", "configuration", "rawValue",
        "startIndex", "endIndex", "run", "validate", "makeAsyncIterator", "customMirror", "debugDescription", "hash",
        "write", "==", "<",
    ]
    private static let associatedTypes: Set<String> = ["Result", "Body", "Element", "Index", "Target", "Request"]

    @Test func everyPublicDeclarationHasADocstring() throws {
        let declared = try requirementsOfOurs().union(Self.requirements)
        for path in repository.sources {
            let lines = try repository.text(path).split(separator: "\n", omittingEmptySubsequences: false)
            let fields = Set(
                lines.filter { $0.contains("\\.") }.flatMap { line in
                    line.matches(of: #/\\\.`?(\w+)`?[,)]/#).map { String($0.1) }
                })
            for index in lines.indices {
                guard let declaration = PublicDeclaration(lines, at: index), !declaration.isDocumented else { continue }
                switch declaration.kind {
                case "init" where declaration.isMemberwise: continue
                case "typealias" where Self.associatedTypes.contains(declaration.name): continue
                // The summary of a method, and the meanings of its fields.
                case "struct" where declaration.isMethod: continue
                case "var" where fields.contains(declaration.name): continue
                case "var", "let", "func":
                    if declared.contains(declaration.name) { continue }
                default: break
                }
                Issue.record("\(path):\(index + 1) has no docstring:\(lines[index])")
            }
        }
    }

    @Test func commentsFitOnTheScreen() throws {
        for path in repository.allSwift {
            for (index, line) in try repository.text(path).split(separator: "\n", omittingEmptySubsequences: false)
                .enumerated()
            where line.utf8.count > commentColumnsMax && line.count > commentColumnsMax
                && line.drop(while: { $0 == " " }).hasPrefix("//")
            {
                Issue.record("\(path):\(index + 1) has \(line.count) columns")
            }
        }
    }

    /// The names that our protocols require: conforming types need not document them again.
    private func requirementsOfOurs() throws -> Set<String> {
        var names: Set<String> = []
        for path in repository.sources {
            var indentation: Int?
            for line in try repository.text(path).split(separator: "\n") {
                let margin = line.prefix { $0 == " " }.count
                if let start = indentation, margin == start, line.dropFirst(margin) == "}" { indentation = nil }
                if indentation != nil, line.contains("var ") || line.contains("func "),
                    let match = line.firstMatch(of: #/^\s+(static |mutating )*(var|func) `?(\w+)/#)
                {
                    names.insert(String(match.3))
                }
                if line.contains(#/^\s*(public |package )?protocol \w/#), line.hasSuffix("{") { indentation = margin }
            }
        }
        return names
    }
}

/// One line that begins a public declaration.
private struct PublicDeclaration {
    var kind: String
    var name: String
    var isDocumented: Bool
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
}
