import Foundation
import Testing

/// Comments and pages use the terms of the field: one for each thing, and no metaphors. Paths, nodes, requests,
/// responses, events and clients have names of their own.
@Suite struct PlainWords {
    private let repository = Repository()

    @Test func noFileHasOneOfTheseWords() throws {
        for path in repository.allSwift + repository.files(ending: ".md") {
            let text = try repository.text(path)
            let words = (path.hasSuffix(".md") ? ProseText(page: text) : ProseText(source: text)).unwanted
            #expect(words.isEmpty, "\(path) has \(words.joined(separator: ", ")) (CONTRIBUTING, Habits)")
        }
    }

    @Test func noFunctionAndNoTestHasOneOfTheseWordsInItsName() throws {
        for path in repository.allSwift {
            let names = Self.functions(in: try repository.text(path)).filter { !ProseText(name: $0).unwanted.isEmpty }
            #expect(names.isEmpty, "\(path) has \(names.joined(separator: ", "))")
        }
    }

    /// Errors, logs and help are read by people too.
    @Test func noTextHasOneOfTheseWords() throws {
        for path in repository.sources {
            let words = ProseText(literalsOf: try repository.text(path)).unwanted
            #expect(words.isEmpty, "\(path) has \(words.joined(separator: ", ")) in a string")
        }
    }

    private static func functions(in source: String) -> [String] {
        source.split(separator: "\n").compactMap { line in
            line.firstRange(of: "func ").map { found in
                String(line[found.upperBound...].drop { $0 == "`" }.prefix { $0.isLetter || $0.isNumber })
            }
        }
    }

    @Test func namesAndTextsAreRead() {
        let names = [
            "callerIsToldWhy", "whoAsksGetsIt", "cacheMakeRoom", "doubt", "aCodeIsForgotten", "listenerHoldsEveryoneUp",
            "whole", "aForgottenPasswordIsSet",
        ]
        #expect(names.filter { !ProseText(name: $0).unwanted.isEmpty } == Array(names.prefix(5)))
        let literals = [
            #"fail("Nobody \(told("x")) answers --as-nobody", "answered")"#, "// \"is told\"", "help: \"\"\"",
            "    Tells it all.", "    \"\"\")",
        ].joined(separator: "\n")
        #expect(ProseText(literalsOf: literals).unwanted == ["Nobody", "answers", "Tells"])
    }

    @Test func onlyProseIsRead() {
        let source = [
            "/// Whoever asks is told: `nobody`.", "let house = \"//strangers\"" + "  " + "// a storey",
        ].joined(separator: "\n")
        #expect(ProseText(source: source).unwanted == ["Whoever", "told", "storey"])
        let page = """
            Who sees a farewell? A chat room has one. There is room
            for more; `somebody` is code.
            ```
            # a stranger
            ```
            """
        #expect(ProseText(page: page).unwanted == ["Who", "farewell", "room for"])
    }
}

/// The words of the prose in a file: comments or texts of a Swift file, or a page without its code.
private struct ProseText {
    /// Unwanted in any position and case.
    private static let words: Set<String> = [
        "house", "houses", "storey", "storeys", "farewell", "farewells", "stranger", "strangers", "overdraft",
        "whoever", "whomever", "somebody", "anybody", "everybody", "nobody",
        "tell", "tells", "told", "telling", "judge", "judges", "judged", "judging", "answered",
    ]
    /// Unwanted in names and texts only: comments may have them with another meaning.
    private static let otherWords: Set<String> = [
        "answer", "answers", "doubt", "doubts", "doubted", "story", "forgotten",
    ]
    private static let pairs: Set<String> = [
        "to heart", "in doubt", "room for", "no room", "has room", "have room", "makes room", "make room",
    ]

    /// Words that are wanted before another one.
    private static let wantedPairs: Set<String> = ["forgotten password", "forgotten passwords"]

    private let text: String
    private var others: Set<String> = []

    init(name: String) {
        var words: [String] = []
        for character in name {
            if character.isUppercase || words.isEmpty { words.append("") }
            words[words.count - 1].append(contentsOf: character.lowercased())
        }
        // A name that begins with this word is no sentence with a subject.
        if ["who", "whose", "whom"].contains(words.first) { words[0] = "Who" }
        text = words.joined(separator: " ")
        others = Self.otherWords
    }

    /// The texts of more than one word, without interpolations, options and names of metrics.
    init(literalsOf source: String) {
        var isInside = false
        var texts: [Substring] = []
        for line in source.split(separator: "\n") {
            if line.contains("\"\"\"") {
                isInside.toggle()
            } else if isInside {
                texts.append(line)
            } else if !line.drop(while: { $0 == " " }).hasPrefix("//") {
                texts += Self.literals(in: line)
            }
        }
        text = texts.flatMap { $0.split(separator: " ") }.filter { !$0.hasPrefix("-") && !$0.contains("_") }
            .joined(separator: " ")
        others = Self.otherWords
    }

    /// The literals of a line that have a space, up to their interpolations, and the pieces between these.
    private static func literals(in line: Substring) -> [Substring] {
        guard line.contains("\"") else { return [] }
        var (found, start, depth) = ([Substring](), line.endIndex, 0)
        var (isInside, isEscaped) = (false, false)
        for (index, character) in zip(line.indices, line) {
            if depth > 0 {
                if character == "(" { depth += 1 }
                if character == ")" { depth -= 1 }
                if depth == 0 { start = line.index(after: index) }
            } else if isEscaped {
                isEscaped = false
                if character == "(" {
                    depth = 1
                    found.append(line[start..<line.index(before: index)])
                }
            } else if character == "\"" {
                if isInside { found.append(line[start..<index]) }
                isInside.toggle()
                start = line.index(after: index)
            } else if isInside, character == "\\" {
                isEscaped = true
            }
        }
        return found.filter { $0.contains(" ") }
    }

    init(source: String) {
        text = source.split(separator: "\n").compactMap { line in
            guard let start = line.range(of: "//"), line[..<start.lowerBound].allSatisfy({ $0 == " " }) else {
                // Behind code only after two spaces, where a formatter puts it: not in a string.
                return line.range(of: "  // ", options: .backwards).map { line[$0.upperBound...] }
            }
            return line[start.upperBound...]
        }.joined(separator: "\n")
    }

    init(page: String) {
        var isCode = false
        text = page.split(separator: "\n").filter { line in
            let isFence = line.drop { $0 == " " }.hasPrefix("```")
            if isFence { isCode.toggle() }
            return !isFence && !isCode
        }.joined(separator: "\n")
    }

    /// In their order. A question or clause that begins with `Who` stands for a caller, a client or a user.
    var unwanted: [String] {
        var found: [String] = []
        var before = ""
        for line in text.split(separator: "\n") {
            // Every second piece is code.
            for (index, piece) in line.split(separator: "`", omittingEmptySubsequences: false).enumerated() {
                guard index.isMultiple(of: 2) else {
                    before = ""
                    continue
                }
                let words = piece.split(whereSeparator: { !$0.isLetter })
                for (word, next) in zip(words, words.dropFirst() + [""]) {
                    let lowercased = word.lowercased()
                    if Self.wantedPairs.contains("\(lowercased) \(next.lowercased())") { continue }
                    if Self.pairs.contains("\(before) \(lowercased)") { found.append("\(before) \(lowercased)") }
                    if word == "Who" || Self.words.contains(lowercased) || others.contains(lowercased) {
                        found.append(String(word))
                    }
                    before = lowercased
                }
            }
        }
        return found
    }
}
