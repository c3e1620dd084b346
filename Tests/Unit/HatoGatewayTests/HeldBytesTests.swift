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
        let held = HeldBytes(max: 100, perClientMax: 40)
        #expect(held.of("2001:db8::1").change(by: 40) && !held.of("2001:db8::ffff:2").change(by: 1))
        #expect(held.of("2001:db8:0:1::1").change(by: 40))
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
