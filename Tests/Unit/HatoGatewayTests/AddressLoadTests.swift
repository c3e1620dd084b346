import Testing

@testable import HatoGateway

/// What the clients of one address may take.
@Suite struct AddressLoadTests {
    private static let second: Int64 = 1_000_000

    private func load(connections: Int = 3, requests: Int = 0, addresses: Int = 100) -> AddressLoad {
        var limits = AddressLoad.Limits(connectionsMax: connections, requestsPerSecondMax: requests)
        limits.addressesMax = addresses
        return AddressLoad(limits)
    }

    @Test func connectionsOfAnAddressAreRefusedAndThenDropped() {
        var load = load()
        for _ in 0..<3 { #expect(load.began("a") == .admitted) }
        for _ in 0..<AddressLoad.refusedMax { #expect(load.began("a") == .refused) }
        #expect(load.began("a") == .dropped && load.began("b") == .admitted)
        for _ in 0..<(AddressLoad.refusedMax + 1) { load.ended("a") }
        #expect(load.began("a") == .admitted && load.began("a") == .refused)
    }

    @Test func addressesWithoutConnectionsTakeNoMemory() {
        var load = load()
        for number in 0..<1_000 {
            _ = load.began("\(number)")
            load.ended("\(number)")
        }
        load.ended("unknown")
        #expect(load.counts.connections == 0)
    }

    @Test func connectionsOfASiteAreBounded() {
        let limits = AddressLoad.Limits(connectionsMax: 3, connectionsOfSiteMax: 12, requestsPerSecondMax: 0)
        var load = AddressLoad(limits)
        for number in 0..<12 { #expect(load.began("a\(number / 3)", site: "s") == .admitted) }
        #expect(load.began("b", site: "s") == .refused && load.began("c", site: "t") == .admitted)
        for number in 1..<AddressLoad.refusedMax { #expect(load.began("b\(number)", site: "s") == .refused) }
        #expect(load.began("d", site: "s") == .dropped && load.began("e") == .admitted)
        load.ended("b", site: "s")
        for number in 1..<AddressLoad.refusedMax { load.ended("b\(number)", site: "s") }
        #expect(load.began("b", site: "s") == .refused)
        load.ended("b", site: "s")
        load.ended("a0", site: "s")
        #expect(load.began("b", site: "s") == .admitted)
        for (address, count) in [("a0", 2), ("a1", 3), ("a2", 3), ("a3", 3), ("b", 1)] {
            for _ in 0..<count { load.ended(address, site: "s") }
        }
        load.ended("c", site: "t")
        load.ended("e")
        #expect(load.counts.connections == 0)
    }

    @Test func aSiteSendsFourTimesTheRequestsOfAnAddress() {
        var load = load(requests: 1)
        for number in 0..<40 { #expect(load.requestCame(from: "a\(number)", site: "s", at: 0) == nil) }
        #expect(load.requestCame(from: "b", site: "s", at: 0) == 1 && load.requestCame(from: "b", at: 0) == nil)
        #expect(load.requestCame(from: "c", site: "t", at: 0) == nil)
        // An address of the site has its own bound.
        for _ in 0..<10 { #expect(load.requestCame(from: "d", site: "u", at: 0) == nil) }
        #expect(load.requestCame(from: "d", site: "u", at: 0) == 1)
        // What was refused by the address has not counted for the site.
        for number in 0..<30 { #expect(load.requestCame(from: "e\(number)", site: "u", at: 0) == nil) }
        #expect(load.requestCame(from: "f", site: "u", at: 0) == 1)
    }

    @Test func tenSecondsOfRequestsMayComeAtOnceAndThenTheLimitHolds() {
        var load = load(requests: 5)
        for _ in 0..<50 { #expect(load.requestCame(from: "a", at: 1_000) == nil) }
        #expect(load.requestCame(from: "a", at: 1_000) == 1)
        #expect(load.requestCame(from: "b", at: 1_000) == nil)
        // Refused requests cost nothing; a fifth of a second brings one.
        #expect(load.requestCame(from: "a", at: 1_000 + Self.second / 5) == nil)
        #expect(load.requestCame(from: "a", at: 1_000 + Self.second / 5) == 1)
        var handled = 0
        for step in 0..<1_000 where load.requestCame(from: "a", at: 2 * Self.second + Int64(step) * 10_000) == nil {
            handled += 1
        }
        #expect((55...60).contains(handled))
    }

    @Test func noLimitCountsNothing() {
        var load = load(requests: 0)
        for _ in 0..<10_000 { #expect(load.requestCame(from: "a", at: 0) == nil) }
        #expect(load.counts.requests == 0)
    }

    @Test func theTableOfRequestsIsBoundedAndKeepsTheNewestAddresses() {
        var load = load(requests: 1, addresses: 100)
        for _ in 0..<10 { _ = load.requestCame(from: "a", at: 0) }
        for number in 0..<150 { #expect(load.requestCame(from: "\(number)", at: 1) == nil) }
        #expect(load.requestCame(from: "a", at: 1) == 1)
        for number in 0..<10_000 { _ = load.requestCame(from: "n\(number)", at: 1) }
        #expect(load.counts.requests <= 200)
        #expect(load.requestCame(from: "n9999", at: 1) == nil)
    }

    @Test func clocksFarAheadDoNoHarm() {
        var load = load(requests: 1_000_000)
        #expect(load.requestCame(from: "a", at: .max / 2) == nil)
        #expect(load.requestCame(from: "a", at: 0) != nil)
    }
}
