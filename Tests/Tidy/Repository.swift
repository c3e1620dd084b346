import Foundation

/// The files of this repository, as the tests of the repository itself read them.
struct Repository {
    let root: URL

    init(filePath: String = #filePath) {
        root = URL(filePath: filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
    }

    /// Paths relative to the root of all files with this ending, build folders and hidden ones left out.
    func files(ending: String, under folder: String = "") -> [String] {
        let start = root.appending(path: folder)
        guard let paths = FileManager.default.enumerator(atPath: start.path) else { return [] }
        return paths.compactMap { $0 as? String }
            .filter { path in path.hasSuffix(ending) && !path.split(separator: "/").contains { $0.hasPrefix(".") } }
            .map { folder.isEmpty ? $0 : "\(folder)/\($0)" }
            .sorted()
    }

    func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    var sources: [String] { files(ending: ".swift", under: "Shared") + files(ending: ".swift", under: "Services") }
    var allSwift: [String] {
        sources + files(ending: ".swift", under: "Tests") + files(ending: ".swift", under: "Benchmarks")
    }
}

/// A Swift file with its comments and the contents of its strings blanked, so that what is left can be counted.
struct SourceFile {
    let path: String
    let lines: [String]

    init(path: String, text: String) {
        self.path = path
        lines = Self.blanked(text).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// Lines that hold code.
    var codeLines: Int { lines.count { $0.contains { !$0.isWhitespace } } }

    var imports: [String] {
        lines.compactMap { line in
            let words = line.split(separator: " ").map(String.init)
            guard let at = words.firstIndex(of: "import"),
                words[..<at].allSatisfy({ Self.importModifiers.contains($0) })
            else {
                return nil
            }
            return words.dropFirst(at + 1).last?.split(separator: ".").first.map(String.init)
        }
    }

    private static let importModifiers: Set<String> = [
        "public", "internal", "package", "private", "fileprivate", "@testable", "@preconcurrency", "@_exported",
    ]

    struct Function {
        var line: Int
        var signature: String
        var codeLines: Int
        var parameters: Int
    }

    /// Functions and initialisers that have a body, with their lengths and numbers of parameters.
    var functions: [Function] {
        lines.indices.compactMap { start in
            guard let match = lines[start].firstMatch(of: #/(^|\s)(func\s+\S|init[?<(]|subscript[<(])/#) else {
                return nil
            }
            return function(at: start, from: match.range.lowerBound)
        }
    }

    private func function(at start: Int, from beginning: String.Index) -> Function? {
        var depth = 0
        var parentheses = 0
        var parameters = 0
        var sawParameter = false
        var listDone = false
        var code = 0
        for index in start..<lines.count {
            let line = index == start ? lines[index][beginning...] : lines[index][...]
            if line.contains(where: { !$0.isWhitespace }) { code += 1 }
            for character in line {
                switch character {
                case _ where !listDone && "([".contains(character):
                    if parentheses > 0 { sawParameter = true }
                    parentheses += 1
                case _ where !listDone && ")]".contains(character):
                    parentheses -= 1
                    if parentheses == 0 {
                        listDone = true
                        if sawParameter { parameters += 1 }
                    }
                case "," where !listDone:
                    if parentheses == 1 { parameters += 1 }
                case "{":
                    guard listDone else { continue }
                    depth += 1
                case "}":
                    depth -= 1
                    if depth < 0 { return nil }
                    if depth == 0 {
                        return Function(
                            line: start + 1, signature: lines[start], codeLines: code, parameters: parameters)
                    }
                default:
                    if !listDone && parentheses > 0 && !character.isWhitespace { sawParameter = true }
                }
            }
            // A requirement of a protocol has no body: what follows is another declaration.
            if depth == 0, listDone, index + 1 < lines.count,
                lines[index + 1].contains(#/^\s*(public |static |mutating |private )*(func|var|let|init|case)\b/#)
            {
                return nil
            }
        }
        return nil
    }

    private static func blanked(_ text: String) -> String {
        var out = ""
        var rest = text[...]
        while let character = rest.first {
            if rest.hasPrefix("//") {
                rest = rest.drop { $0 != "\n" }
            } else if rest.hasPrefix("/*") {
                let end = rest.range(of: "*/")?.upperBound ?? rest.endIndex
                out += String(repeating: "\n", count: rest[..<end].count { $0 == "\n" })
                rest = rest[end...]
            } else if rest.hasPrefix("\"\"\"") || rest.hasPrefix("#\"\"\"") {
                let close = rest.hasPrefix("#") ? "\"\"\"#" : "\"\"\""
                let body = rest.dropFirst(rest.hasPrefix("#") ? 4 : 3)
                let end = body.range(of: close)?.upperBound ?? body.endIndex
                // The text of a literal is data, not code: its lines count as blank.
                out += "\"\"" + String(repeating: "\n", count: body[..<end].count { $0 == "\n" })
                rest = body[end...]
            } else if character == "\"" || rest.hasPrefix("#\"") {
                out += "\"\""
                rest = afterString(rest)
            } else {
                out.append(character)
                rest = rest.dropFirst()
            }
        }
        return out
    }

    private static func afterString(_ text: Substring) -> Substring {
        if text.hasPrefix("#") {
            let body = text.dropFirst(2)
            return body[(body.range(of: "\"#")?.upperBound ?? body.endIndex)...]
        }
        var rest = text.dropFirst()
        while let character = rest.first, character != "\"", character != "\n" {
            rest = rest.dropFirst(character == "\\" ? 2 : 1)
        }
        return rest.dropFirst()
    }
}
