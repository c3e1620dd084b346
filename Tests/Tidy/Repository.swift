import Foundation

/// The files of this repository, as the tests of the repository itself read them.
struct Repository {
    let root: URL

    init(filePath: String = #filePath) {
        root = URL(filePath: filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
    }

    /// Paths relative to the root of all files with this ending, without build folders and hidden ones.
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

/// A Swift file with its comments and the contents of its strings blanked, so that the rest can be counted.
struct SourceFile {
    let path: String
    let lines: [String]

    init(path: String, text: String) {
        self.path = path
        lines = Self.blanked(text).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// Lines that contain code.
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
            // Most lines need no closer look.
            guard ["func ", "init", "subscript"].contains(where: lines[start].contains) else { return nil }
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
            // A requirement of a protocol has no body: another declaration follows.
            if depth == 0, listDone, index + 1 < lines.count,
                lines[index + 1].contains(#/^\s*(public |static |mutating |private )*(func|var|let|init|case)\b/#)
            {
                return nil
            }
        }
        return nil
    }

    private static func blanked(_ text: String) -> String {
        var blanker = Blanker(bytes: Array(text.utf8))
        return blanker.run()
    }
}

/// Blanks comments and the contents of strings, on bytes: the relevant characters are all ASCII.
private struct Blanker {
    let bytes: [UInt8]
    var out: [UInt8] = []
    var at = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    private func has(_ text: StaticString, at position: Int) -> Bool {
        let wanted = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        return position + wanted.count <= bytes.count && zip(wanted, bytes[position...]).allSatisfy { $0 == $1 }
    }

    mutating func run() -> String {
        while at < bytes.count {
            switch bytes[at] {
            case UInt8(ascii: "/") where has("//", at: at): skip(to: "\n", keepsEnd: true)
            case UInt8(ascii: "/") where has("/*", at: at): skip(to: "*/", keepsEnd: false)
            case UInt8(ascii: "#") where has("#\"\"\"", at: at): skipLiteral(4, "\"\"\"#")
            case UInt8(ascii: "#") where has("#\"", at: at): skipLiteral(2, "\"#")
            case UInt8(ascii: "\"") where has("\"\"\"", at: at): skipLiteral(3, "\"\"\"")
            case UInt8(ascii: "\""): skipString()
            default:
                out.append(bytes[at])
                at += 1
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// Skips everything up to `end`; line ends stay, so that lines keep their numbers.
    private mutating func skip(to end: StaticString, keepsEnd: Bool) {
        while at < bytes.count, !has(end, at: at) {
            if bytes[at] == UInt8(ascii: "\n") { out.append(bytes[at]) }
            at += 1
        }
        if !keepsEnd { at += end.utf8CodeUnitCount }
    }

    /// The text of a literal is data, not code: its lines count as blank.
    private mutating func skipLiteral(_ opening: Int, _ end: StaticString) {
        out += [UInt8(ascii: "\""), UInt8(ascii: "\"")]
        at += opening
        skip(to: end, keepsEnd: false)
    }

    private mutating func skipString() {
        out += [UInt8(ascii: "\""), UInt8(ascii: "\"")]
        at += 1
        while at < bytes.count, bytes[at] != UInt8(ascii: "\""), bytes[at] != UInt8(ascii: "\n") {
            at += bytes[at] == UInt8(ascii: "\\") ? 2 : 1
        }
        at += 1
    }
}
