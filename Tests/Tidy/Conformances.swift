/// The protocols of this repository, what they require, and the types that conform to them. Types are known by their
/// own names, without those of the types around them.
struct Conformances {
    /// Beside those of this repository: the protocols of commands, which ArgumentParser declares.
    private var requirements: [String: Set<String>] = [
        "AsyncParsableCommand": ["run", "validate"], "ParsableArguments": ["validate"],
    ]
    /// What types conform to, and what protocols inherit from.
    private var parents: [String: Set<String>] = [:]

    init(_ files: some Sequence<[Substring]>) {
        for lines in files { add(lines) }
    }

    /// Whether a type, or a protocol with a default of its own, has a member because a protocol requires it.
    func require(_ member: String, of type: String?) -> Bool {
        guard let type else { return false }
        var (left, seen) = ([type], Set<String>())
        while let name = left.popLast() {
            guard seen.insert(name).inserted else { continue }
            if requirements[name]?.contains(member) == true { return true }
            left += parents[name] ?? []
        }
        return false
    }

    /// The name of the innermost type, extension or protocol around a line with this indentation.
    static func type(around index: Int, of lines: [Substring], margin: Int) -> String? {
        for line in lines[..<index].reversed() {
            guard line.prefix(while: { $0 == " " }).count < margin, let head = Head(line) else { continue }
            return head.name
        }
        return nil
    }

    /// The beginning of a declaration of a type.
    private struct Head {
        var isProtocol: Bool
        var name: String
        var rest: Substring

        private static let keywords = ["struct ", "class ", "enum ", "actor ", "extension ", "protocol "]

        init?(_ line: Substring) {
            guard Self.keywords.contains(where: { line.contains($0) }),
                let match = line.prefixMatch(
                    of:
                        #/\s*(?:@?[a-z]\w*(?:\(\w+\))?\s+)*?(struct|class|enum|actor|extension|protocol)\s+([A-Z][\w.]*)/#
                )
            else { return nil }
            isProtocol = match.1 == "protocol"
            name = match.2.split(separator: ".").last.map(String.init) ?? ""
            rest = line[match.range.upperBound...]
        }
    }

    private mutating func add(_ lines: [Substring]) {
        var inside: (name: String, margin: Int)?
        for (index, line) in lines.enumerated() {
            let margin = line.prefix { $0 == " " }.count
            if let start = inside, margin == start.margin, line.dropFirst(margin) == "}" { inside = nil }
            if let name = inside?.name, line.contains("var ") || line.contains("func "),
                let match = line.firstMatch(of: #/^\s+(static |mutating )*(var|func) `?(\w+)/#)
            {
                requirements[name, default: []].insert(String(match.3))
            }
            guard let head = Head(line) else { continue }
            if head.isProtocol, line.hasSuffix("{") { inside = (head.name, margin) }
            var text = String(head.rest)
            for next in lines[(index + 1)...].prefix(6) where !text.contains("{") { text += next }
            parents[head.name, default: []].formUnion(Self.inherited(text))
        }
    }

    /// The names behind the colon of a declaration, without generic parameters and constraints.
    private static func inherited(_ text: String) -> [String] {
        var (plain, depth) = ("", 0)
        for character in text.prefix(while: { $0 != "{" }) {
            if character == "<" { depth += 1 }
            if depth == 0 { plain.append(character) }
            if character == ">", depth > 0 { depth -= 1 }
        }
        let clause = plain.firstRange(of: " where ").map { plain[..<$0.lowerBound] } ?? plain[...]
        guard let colon = clause.firstIndex(of: ":") else { return [] }
        return clause[clause.index(after: colon)...].split(whereSeparator: { ", &".contains($0) }).compactMap {
            $0.split(separator: ".").last.map(String.init)
        }
    }
}
