import HatoMessages
import HatoModel
import Testing

/// No limit lacks its declaration, from which its setting and its help come.
@Suite struct MessagesLimitsDeclarationTests {
    private func texts(_ limits: MessagesLimits) -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: Swift.Mirror(reflecting: limits).children.map { ($0.label ?? "", "\($0.value)") })
    }

    @Test func everyLimitIsDeclaredWithItsHelp() {
        let names = MessagesLimits.all.map(\.name)
        #expect(Set(names).count == names.count)
        var declared: Set<String> = []
        for limit in MessagesLimits.all {
            #expect(!limit.help.isEmpty && limit.range.contains(limit.value(in: MessagesLimits())), "\(limit.name)")
            var (low, high) = (MessagesLimits(), MessagesLimits())
            limit.set(limit.range.lowerBound, in: &low)
            limit.set(limit.range.upperBound, in: &high)
            #expect(limit.value(in: low) == limit.range.lowerBound, "\(limit.name)")
            let (before, after) = (texts(low), texts(high))
            declared.formUnion(before.keys.filter { before[$0] != after[$0] })
        }
        for label in texts(MessagesLimits()).keys where label != "responseBytesMax" {
            #expect(declared.contains(label), "\(label)")
        }
    }
}
