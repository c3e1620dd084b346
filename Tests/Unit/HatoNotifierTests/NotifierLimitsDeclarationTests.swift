import HatoModel
import HatoNotifier
import Testing

/// No limit lacks its declaration, from which its setting and its help come.
@Suite struct NotifierLimitsDeclarationTests {
    private func texts(_ limits: NotifierLimits) -> [String: String] {
        Dictionary(uniqueKeysWithValues: Mirror(reflecting: limits).children.map { ($0.label ?? "", "\($0.value)") })
    }

    @Test func everyLimitIsDeclaredWithItsHelp() {
        let names = NotifierLimits.all.map(\.name)
        #expect(Set(names).count == names.count)
        var declared: Set<String> = []
        for limit in NotifierLimits.all {
            #expect(!limit.help.isEmpty && limit.range.contains(limit.value(in: NotifierLimits())), "\(limit.name)")
            var (low, high) = (NotifierLimits(), NotifierLimits())
            limit.set(limit.range.lowerBound, in: &low)
            limit.set(limit.range.upperBound, in: &high)
            #expect(limit.value(in: low) == limit.range.lowerBound, "\(limit.name)")
            let (before, after) = (texts(low), texts(high))
            declared.formUnion(before.keys.filter { before[$0] != after[$0] })
        }
        for label in texts(NotifierLimits()).keys { #expect(declared.contains(label), "\(label)") }
    }
}
