import Testing

@testable import HatoGateway

/// What an event loop holds for its clients.
@Suite struct HeldBytesTests {
    @Test func oneAddressCannotTakeTheWholeBudget() {
        let held = HeldBytes(max: 100, perClientMax: 40)
        let (first, again, other) = (held.of("192.0.2.1"), held.of("192.0.2.1"), held.of("192.0.2.2"))
        #expect(first.change(by: 30) && !again.change(by: 11) && again.change(by: 10))
        #expect(other.change(by: 40) && held.count == 80)
        #expect(!held.of("192.0.2.3").change(by: 21) && held.of("192.0.2.3").change(by: 20))
        first.release(30)
        #expect(!again.change(by: 31) && again.change(by: 30) && held.count == 100)
    }

    @Test func addressesOfOneNetworkAreOneClient() {
        let held = HeldBytes(max: 200, perClientMax: 40)
        #expect(held.of("2001:db8::1").change(by: 40) && !held.of("2001:db8::ffff:2").change(by: 1))
        #expect(held.of("2001:db8:0:1::1").change(by: 40))
    }

    @Test func networksOfOneSiteAreBoundedTogether() {
        let held = HeldBytes(max: 1_000, perClientMax: 40)
        let networks = (0..<5).map { held.of("2001:db8:1:\($0)::1") }
        for network in networks.prefix(4) { #expect(network.change(by: 40)) }
        #expect(!networks[4].change(by: 1) && held.of("2001:db8:2::1").change(by: 40))
        networks[0].release(40)
        #expect(networks[4].change(by: 40) && !networks[0].change(by: 1))
        for network in networks.dropFirst() { network.release(40) }
        #expect(held.of("2001:db8:1::1").change(by: 40) && held.count == 80)
        // IPv4 has no sites.
        for number in 0..<20 { #expect(held.of("192.0.2.\(number)").change(by: 40)) }
    }

    @Test func aSiteLeavesSomethingToOthers() {
        let held = HeldBytes(max: 100, perClientMax: 40)
        #expect(held.of("2001:db8:1:1::1").change(by: 40) && held.of("2001:db8:1:2::1").change(by: 35))
        #expect(!held.of("2001:db8:1:2::1").change(by: 1) && held.of("192.0.2.1").change(by: 25))
        #expect(SiteShare.max(.max, of: .max) == .max && SiteShare.max(40, of: 40) == 40)
    }

    @Test func aChangeByLessAlwaysSucceeds() {
        let held = HeldBytes(max: 10, perClientMax: 5)
        let client = held.of("192.0.2.1")
        #expect(client.change(by: 5) && client.change(by: -3) && client.change(by: 3) && !client.change(by: 1))
        client.release(5)
        #expect(held.count == 0 && client.change(by: 5))
    }

    @Test func withoutAClientOnlyTheWholeBudgetCounts() {
        let held = HeldBytes(max: 10, perClientMax: 5)
        #expect(held.change(by: 8) && !held.of("192.0.2.1").change(by: 3))
    }
}
