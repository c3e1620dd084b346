import Testing

/// The pages of `Tests/Conformance`: every point of a specification with its tests.
@Suite struct ConformanceIndex {
    private let repository = Repository()
    /// The sections that each page has.
    private static let pages: [String: [String]] = [
        "Tests/Conformance/README.md": [
            "1", "2", "2.1", "3", "4.1", "4.2", "4.3", "4.4", "4.5", "5", "6", "7", "7.1", "7.2", "7.3", "7.4", "7.5",
            "7.6", "8.1", "8.2", "8.3", "8.4", "8.5", "8.6", "8.7", "8.8", "8.9", "9.1", "9.2", "9.3", "9.4", "9.5",
            "9.6", "10",
        ],
        "Tests/Conformance/Accounts.md": ["1", "2", "3", "4", "5", "6", "7", "8", "9"],
    ]

    /// The points of a page and their tests.
    private func rows(_ page: String) throws -> [(point: String, held: String)] {
        try repository.text(page).split(separator: "\n").compactMap { line in
            guard line.hasPrefix("| "), line != "| What holds | Tests |" else { return nil }
            let cells = line.replacing("\\|", with: "\u{0}").split(separator: "|").map {
                $0.replacing("\u{0}", with: "|").trimmingPrefix(" ")
            }
            guard cells.count == 2 else {
                Issue.record("\(page) has a row without two cells: \(line)")
                return nil
            }
            return (String(cells[0]), String(cells[1]))
        }
    }

    @Test func everyPointHasTestsThatExistOrSaysWhyNot() throws {
        let (tests, files) = (try tests(), files())
        for row in try Self.pages.keys.flatMap(rows) {
            if row.held.hasPrefix("Not here: ") {
                #expect(row.held.count > 40, "\(row.point) does not say why not")
                continue
            }
            let names = row.held.matches(of: #/`(\w+\.\w+)`/#).map { String($0.1) }
            let paths = row.held.matches(of: #/`((?:Tests\/Interop|Transcripts)\/[\w-]+\.\w+)`/#).map { String($0.1) }
            for path in paths { #expect(files.contains(path), "\(row.point) names \(path), which does not exist") }
            #expect(!names.isEmpty, "\(row.point) has no test")
            for name in names { #expect(tests.contains(name), "\(row.point) names \(name), which is no test") }
        }
    }

    /// A conversation shows what holds; without a point, it would be found by none that changes it.
    @Test func everyTranscriptHasAPoint() throws {
        let held = try rows("Tests/Conformance/README.md").map(\.held).joined()
        let transcripts = files().filter { $0.hasPrefix("Transcripts/") }
        #expect(transcripts.count >= 20)
        for file in transcripts { #expect(held.contains("`\(file)`"), "no point names \(file)") }
    }

    @Test func everySectionIsThere() throws {
        for (page, sections) in Self.pages {
            let text = try repository.text(page)
            for section in sections {
                #expect(text.contains("\n## §\(section) "), "§\(section) is missing in \(page)")
            }
        }
    }

    @Test func everyTableHasARunner() throws {
        let runners = try repository.files(ending: ".swift", under: "Tests/Conformance").map(repository.text).joined()
        for path in repository.files(ending: ".json", under: "Tests/Conformance/Tables") {
            let name = path.split(separator: "/").last.map { String($0.dropLast(5)) } ?? ""
            #expect(runners.contains("Table(\"\(name)\")"), "\(path) has no runner")
        }
    }

    /// What points name besides tests: programs of other clients, and conversations.
    private func files() -> Set<String> {
        let transcripts = "Tests/Integration/Gateway/Transcripts"
        return Set(repository.files(ending: ".py", under: "Tests/Interop")).union(
            repository.files(ending: ".json", under: transcripts).map { $0.replacing(transcripts, with: "Transcripts") }
        )
    }

    /// `Suite.test` of all tests.
    private func tests() throws -> Set<String> {
        var found: Set<String> = []
        for path in repository.files(ending: ".swift", under: "Tests") {
            var suite = ""
            var isTest = false
            for line in SourceFile(path: path, text: try repository.text(path)).lines {
                if let match = line.firstMatch(
                    of: #/^(?:@Suite(?:\([^)]*\))? )?(?:\w+ )*(?:struct|class|enum|extension) (\w+)/#)
                {
                    suite = String(match.1)
                }
                if line.contains("@Test") { isTest = true }
                guard let match = line.firstMatch(of: #/\bfunc (\w+)/#) else { continue }
                if isTest { found.insert("\(suite).\(match.1)") }
                isTest = false
            }
        }
        return found
    }
}
