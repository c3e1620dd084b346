import HatoModel
import HatoRPC
import Testing

/// No limit lacks its declaration, from which its setting and its help come.
@Suite struct RPCLimitsDeclarationTests {
    private func texts(_ limits: RPCLimits) -> [String: String] {
        Dictionary(uniqueKeysWithValues: Mirror(reflecting: limits).children.map { ($0.label ?? "", "\($0.value)") })
    }

    @Test func everyLimitIsDeclaredWithItsHelp() {
        let names = RPCLimits.all.map(\.name)
        #expect(Set(names).count == names.count)
        var declared: Set<String> = []
        for limit in RPCLimits.all {
            #expect(!limit.help.isEmpty && limit.range.contains(limit.value(in: RPCLimits())), "\(limit.name)")
            var (low, high) = (RPCLimits(), RPCLimits())
            limit.set(limit.range.lowerBound, in: &low)
            limit.set(limit.range.upperBound, in: &high)
            #expect(limit.value(in: low) == limit.range.lowerBound, "\(limit.name)")
            let (before, after) = (texts(low), texts(high))
            declared.formUnion(before.keys.filter { before[$0] != after[$0] })
        }
        for label in texts(RPCLimits()).keys { #expect(declared.contains(label), "\(label)") }
    }
}
