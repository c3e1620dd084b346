import HatoModel
import HatoNotifier
import HatoPush
import Testing

/// No limit lacks its declaration, from which its setting and its help come.
@Suite struct NotifierLimitsDeclarationTests {
    private func texts<Root: Limits>(_ limits: Root) -> [String: String] {
        Dictionary(uniqueKeysWithValues: Mirror(reflecting: limits).children.map { ($0.label ?? "", "\($0.value)") })
    }

    private func check<Root: Limits>(_: Root.Type) {
        let names = Root.all.map(\.name)
        #expect(Set(names).count == names.count)
        var declared: Set<String> = []
        for limit in Root.all {
            #expect(!limit.help.isEmpty && limit.range.contains(limit.value(in: Root())), "\(limit.name)")
            var (low, high) = (Root(), Root())
            limit.set(limit.range.lowerBound, in: &low)
            limit.set(limit.range.upperBound, in: &high)
            #expect(limit.value(in: low) == limit.range.lowerBound, "\(limit.name)")
            let (before, after) = (texts(low), texts(high))
            declared.formUnion(before.keys.filter { before[$0] != after[$0] })
        }
        for label in texts(Root()).keys { #expect(declared.contains(label), "\(label)") }
    }

    @Test func everyLimitIsDeclaredWithItsHelp() { check(NotifierLimits.self) }

    @Test func everyLimitOfLookUpsIsDeclaredWithItsHelp() { check(ResolverLimits.self) }
}
