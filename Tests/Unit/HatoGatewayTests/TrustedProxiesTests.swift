import HatoModel
import Testing

@testable import HatoGateway

/// The address of a client behind proxies.
@Suite struct TrustedProxiesTests {
    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1", true), ("192.0.2.1", "192.0.2.2", false), ("10.0.0.0/8", "10.255.255.255", true),
        ("10.0.0.0/8", "11.0.0.0", false), ("10.0.0.0/8", "::ffff:10.1.2.3", true),
        ("192.0.2.128/25", "192.0.2.127", false), ("192.0.2.128/25", "192.0.2.200", true),
        ("0.0.0.0/0", "8.8.8.8", true),
        ("0.0.0.0/0", "2001:db8::1", false), ("::/0", "2001:db8::1", true), ("::/0", "8.8.8.8", false),
        ("2001:db8::/32", "2001:db8:ffff::1", true), ("2001:db8::/32", "2001:db9::", false),
        ("2001:db8::1/128", "2001:db8:0::1", true), ("::1", "::1", true), ("::ffff:10.0.0.0/104", "10.9.9.9", true),
    ])
    func aNetworkContainsTheAddressesWithItsPrefix(network: String, address: String, isInside: Bool) throws {
        #expect(try IPNetwork(network).contains(#require(IPNumber(address))) == isInside)
    }

    @Test(arguments: [
        "", "proxy", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0/8", "2001:db8::/129",
        "10.0.0.1:80",
        "[::1]", "10.0.0.0/8/8", "10.0.0.1\u{0}", "1e1.0.0.1", "fe80::1%eth0", "10.0.0.0/99999999999999999999",
    ])
    func whatIsNoNetworkIsRefused(text: String) {
        #expect(throws: ArgumentError.self) { try IPNetwork(text) }
    }

    @Test func bitsBehindThePrefixAreRefusedWithTheRightOnes() throws {
        let error = #expect(throws: ArgumentError.self) { try IPNetwork("10.0.0.1/8") }
        #expect(error?.message.contains("give 10.0.0.0/8, or 10.0.0.1 alone") == true)
        let other = #expect(throws: ArgumentError.self) { try IPNetwork("2001:db8::1/32") }
        #expect(other?.message.contains("give 2001:db8:0:0:0:0:0:0/32, or 2001:db8:0:0:0:0:0:1 alone") == true)
    }

    @Test func aListHasBlanksAndCommas() throws {
        let proxies = try TrustedProxies(" 10.0.0.0/8, 192.0.2.1 ,::1")
        #expect(["10.1.1.1", "192.0.2.1", "::1"].allSatisfy { proxies.contains($0) })
        #expect(!proxies.contains("192.0.2.2") && !proxies.contains("unknown"))
        #expect(try TrustedProxies("") == .none)
        #expect(throws: ArgumentError.self) { try TrustedProxies("10.0.0.0/8,nginx") }
    }

    private static let proxies = "10.0.0.0/8,2001:db8::/32"

    @Test(arguments: [
        // A peer that is no proxy says nothing about others.
        ("203.0.113.7", ["198.51.100.1"], "203.0.113.7"),
        ("10.0.0.1", [], "10.0.0.1"), ("10.0.0.1", [""], "10.0.0.1"), ("10.0.0.1", ["203.0.113.7"], "203.0.113.7"),
        // What stands on the left comes from the client.
        ("10.0.0.1", ["198.51.100.1, 203.0.113.7"], "203.0.113.7"),
        ("10.0.0.1", ["10.9.9.9, 203.0.113.7, 10.0.0.2,10.0.0.3"], "203.0.113.7"),
        ("10.0.0.1", ["198.51.100.1", "203.0.113.7", "10.0.0.2"], "203.0.113.7"),
        ("10.0.0.1", ["203.0.113.7, ,"], "203.0.113.7"),
        // A client inside the network of the proxies.
        ("10.0.0.1", ["10.0.0.9, 10.0.0.2"], "10.0.0.9"),
        // A proxy that hides its peer.
        ("10.0.0.1", ["203.0.113.7, unknown, 10.0.0.2"], "10.0.0.2"), ("10.0.0.1", ["_hidden"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.7\u{0}"], "10.0.0.1"),
        // With ports, and as IPv6.
        ("10.0.0.1", ["203.0.113.7:5123"], "203.0.113.7"), ("10.0.0.1", ["[2001:db9::7]:443"], "2001:db9:0:0:0:0:0:7"),
        ("10.0.0.1", ["[2001:db9::7]"], "2001:db9:0:0:0:0:0:7"), ("10.0.0.1", ["[2001:db9::7"], "10.0.0.1"),
        ("10.0.0.1", ["[2001:db9::7]x"], "10.0.0.1"),
        ("2001:db8::1", ["2001:db9::7, 2001:db8::2"], "2001:db9:0:0:0:0:0:7"),
        ("::ffff:10.0.0.1", ["::ffff:203.0.113.7"], "203.0.113.7"),
    ])
    func theClientIsTheRightmostAddressThatIsNoProxy(peer: String, headers: [String], client: String) throws {
        #expect(try TrustedProxies(Self.proxies).client(behind: peer, headers) == client)
    }

    @Test func withoutProxiesNoHeaderCounts() {
        #expect(TrustedProxies.none.client(behind: "10.0.0.1", ["203.0.113.7"]) == "10.0.0.1")
    }
}
