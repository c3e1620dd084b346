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

/// The words of the prose in a file: comments of a Swift file, or a page without its code.
private struct ProseText {
    /// Unwanted in any position and case.
    private static let words: Set<String> = [
        "house", "houses", "storey", "storeys", "farewell", "farewells", "stranger", "strangers", "overdraft",
        "whoever", "whomever", "somebody", "anybody", "everybody", "nobody",
        "tell", "tells", "told", "telling", "judge", "judges", "judged", "judging", "answered",
    ]
    private static let pairs: Set<String> = [
        "to heart", "in doubt", "room for", "no room", "has room", "have room", "makes room", "make room",
    ]

    private let text: String

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
                for word in piece.split(whereSeparator: { !$0.isLetter }) {
                    let lowercased = word.lowercased()
                    if Self.pairs.contains("\(before) \(lowercased)") { found.append("\(before) \(lowercased)") }
                    if word == "Who" || Self.words.contains(lowercased) { found.append(String(word)) }
                    before = lowercased
                }
            }
        }
        return found
    }
}
