import Testing

/// The table "Where to look" of ARCHITECTURE.md names files that exist, and names that these files have.
@Suite struct ArchitecturePage {
    private let repository = Repository()

    @Test func namesWhatExists() throws {
        let page = try repository.text("ARCHITECTURE.md")
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("| where ") }
        #expect(rows.count > 20)
        for row in rows {
            let spans = row.split(separator: "|").last?.matches(of: #/`([\w\/+\-.]+)`/#).map { String($0.1) } ?? []
            let files = spans.filter { $0.hasSuffix(".swift") }
            let texts = try files.flatMap { file in
                let found = repository.sources.filter { $0.hasSuffix("/" + file) }
                #expect(!found.isEmpty, "\(file) does not exist")
                return try found.map(repository.text)
            }
            for name in spans where !name.contains("/") && !files.contains(name) {
                let word = name.split(separator: ".").last.map(String.init) ?? name
                #expect(texts.contains { $0.contains(word) }, "\(files) have no \(name)")
            }
        }
    }
}
