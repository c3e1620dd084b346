/// The types of one target with all their extensions in it.
struct TypeMeasure: Sendable {
    struct Measured: Sendable {
        /// An enum without cases, which is a namespace.
        var isNamespace = false
        /// The stored properties that other files may change, by the file that declares them.
        var openProperties: [(name: String, path: String)] = []
        /// The lines of code of the type in each file that declares or extends it.
        var lines: [String: [String]] = [:]
        var codeLines: Int { lines.values.reduce(0) { $0 + $1.count } }
    }

    /// By name; a nested type counts for itself and for the types it is in.
    private(set) var types: [String: Measured] = [:]

    init(_ files: [SourceFile]) {
        for file in files { add(file) }
    }

    private struct Open {
        var name: String
        /// The depth of braces outside of it.
        var depth: Int
        var isExtension: Bool
    }

    private mutating func add(_ file: SourceFile) {
        var open: [Open] = []
        var depth = 0
        // The declaration whose opening brace has not been read yet.
        var declared: Open?
        for line in file.lines where line.contains(where: { !$0.isWhitespace }) {
            if declared == nil, let declaration = Self.declaration(line) {
                let outer = open.last { $0.depth < depth }.map { $0.name + "." } ?? ""
                declared = Open(
                    name: outer + declaration.name, depth: depth, isExtension: declaration.keyword == "extension")
                if declaration.keyword == "enum" { types[declared?.name ?? "", default: Measured()].isNamespace = true }
            }
            for name in Set(open.map(\.name) + [declared?.name].compactMap { $0 }) {
                types[name, default: Measured()].lines[file.path, default: []].append(line)
            }
            if let inner = open.last, depth == inner.depth + 1 { look(at: line, of: inner, in: file.path) }
            for character in line {
                if character == "{" {
                    if let type = declared { open.append(type) }
                    declared = nil
                    depth += 1
                } else if character == "}" {
                    depth -= 1
                    while let last = open.last, last.depth >= depth { open.removeLast() }
                }
            }
        }
    }

    /// A line directly in the braces of a type.
    private mutating func look(at line: String, of type: Open, in path: String) {
        if line.contains("case "), types[type.name]?.isNamespace == true { types[type.name]?.isNamespace = false }
        guard !type.isExtension, line.contains("var "),
            let match = line.wholeMatch(of: #/\s*((?:[\w@()]+\s+)*?)var\s+(\w+)\s*[:=].*/#),
            !["private", "static"].contains(where: match.1.contains), !line.contains("{") || line.contains("= {")
        else { return }
        types[type.name]?.openProperties.append((String(match.2), path))
    }

    private static let keywords = ["struct ", "class ", "enum ", "actor ", "extension "]

    private static func declaration(_ line: String) -> (keyword: String, name: String)? {
        guard keywords.contains(where: line.contains) else { return nil }
        let pattern = #/\s*(?:@?[a-z]\w*(?:\(\w+\))?\s+)*?(struct|class|enum|actor|extension)\s+([A-Z][\w.]*)/#
        return line.prefixMatch(of: pattern).map { (String($0.1), String($0.2)) }
    }

    /// The stored properties of a type that an extension of it in another file changes.
    func sharedProperties(of name: String) -> [String] {
        guard let type = types[name] else { return [] }
        return type.openProperties.filter { property in
            type.lines.contains { path, lines in
                path != property.path && lines.contains { Self.changes($0, property.name) }
            }
        }.map(\.name)
    }

    /// Whether a line assigns to a property or to a member of it, or calls a method that changes a collection.
    private static func changes(_ line: String, _ property: String) -> Bool {
        guard line.contains(property) else { return false }
        var rest = line[...]
        while let range = rest.firstRange(of: property) {
            let (before, after) = (line[..<range.lowerBound], rest[range.upperBound...])
            rest = after
            if let last = before.last, last.isLetter || last.isNumber || last == "_" { continue }
            if before.hasSuffix(".") && !before.hasSuffix("self.") { continue }
            if ["let ", "var ", "case "].contains(where: before.hasSuffix) { continue }
            if after.prefixMatch(of: change) != nil { return true }
        }
        return false
    }

    private static var change: Regex<Substring> {
        #/(?:[?!]?\.[a-z]\w*|[?!]?\[[^\]]*\])*[?!]?(?:\s+[-+*\/%&|]{0,2}=\s|\.(?:append|remove\w*|insert)\()/#
    }
}
