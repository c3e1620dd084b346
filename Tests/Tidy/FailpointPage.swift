import Testing

/// The page of failpoints names each of them, and no other.
@Suite struct FailpointPage {
    private let repository = Repository()

    @Test func namesEveryFailpoint() throws {
        let source = try repository.text("Shared/HatoStorage/Faults/Failpoint.swift")
        let declared = source.matches(of: #/case \w+ = "([\w.]+)"/#).map { String($0.output.1) }
        let page = try repository.text("Tests/Fault/README.md")
        let named = page.matches(of: #/\n\| `(\w+\.\w+)` \|/#).map { String($0.output.1) }
        #expect(declared.count > 10)
        #expect(named == declared)
    }
}
