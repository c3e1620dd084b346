import HatoAuth
import HatoFetch
import HatoGateway
import HatoMessages
import HatoModel
import HatoNotifier
import HatoRPC
import Testing

/// No limit lacks its declaration, from which its setting and its help come.
@Suite struct LimitDeclarations {
    static let types: [any Limits.Type] = [
        AuthLimits.self, MessagesLimits.self, GatewayLimits.self, NotifierLimits.self, RPCLimits.self,
        ResolverLimits.self,
    ]

    /// Limits that follow another one.
    private static let derived: Set<String> = ["MessagesLimits.responseBytesMax"]

    @Test(arguments: types.indices)
    func everyLimitIsDeclaredWithItsHelp(index: Int) { check(Self.types[index]) }

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
        for label in texts(Root()).keys where !Self.derived.contains("\(Root.self).\(label)") {
            #expect(declared.contains(label), "\(Root.self).\(label)")
        }
    }

    /// The numbers by their names, such as `session.listensMax` of limits that have limits of their own.
    private func texts(_ limits: Any, below path: String = "") -> [String: String] {
        var texts: [String: String] = [:]
        for child in Mirror(reflecting: limits).children {
            let name = path + (child.label ?? "")
            if Mirror(reflecting: child.value).children.isEmpty {
                texts[name] = "\(child.value)"
            } else {
                texts.merge(self.texts(child.value, below: "\(name).")) { $1 }
            }
        }
        return texts
    }

    @Test func limitsOfLimitsCount() {
        let texts = texts(GatewayLimits())
        #expect(texts["session.listensMax"] == "10000" && texts["polls.messageBytesMax"] == "16777216")
        #expect(texts["rest.keepAliveMs"] == "30000" && texts["accounts.codesMax"] == "1000")
    }
}
