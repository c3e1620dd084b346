import AsyncHTTPClient
import Testing

@testable import HatoFetch

@Suite struct PinnedClientsTests {
    private func admitted() async throws -> AddressGuard.Admitted {
        try await AddressGuard(.init(allowsPrivate: true))
            .admit("http://127.0.0.1:1/", for: LookUpCaller(uid: "u", isDelivery: true))
    }

    /// One connection of HTTP/2 would keep every call waiting for as long as the operating system takes it for whole.
    @Test func afterTwoLateCallsInARowTheNextOneGetsANewClient() async throws {
        let clients = PinnedClients(.init(), clientsMax: 4)
        let address = try await admitted()
        var used: [ObjectIdentifier] = []
        // They stay alive, so that no identifier is used twice.
        var kept: [any AnyObject & Sendable] = []
        for isLate in [true, false, true, true, false] {
            let client = try #require(await clients.withClient(for: address, isLate: { _ in isLate }) { $0 })
            used.append(ObjectIdentifier(client))
            kept.append(client)
        }
        #expect(Set(used[..<4]).count == 1 && used[4] != used[0])
        await clients.shutdown()
        #expect(await clients.withClient(for: address) { _ in true } == nil)
    }

    @Test func aClientThatIsReplacedServesItsCallsToTheirEnd() async throws {
        let clients = PinnedClients(.init(), clientsMax: 4)
        let address = try await admitted()
        let outcome = await clients.withClient(for: address, isLate: { _ in true }) { client in
            for _ in 0..<2 { _ = await clients.withClient(for: address, isLate: { _ in true }) { _ in 0 } }
            let next = await clients.withClient(for: address) { $0 }
            return next !== client
        }
        #expect(outcome == true)
        await clients.shutdown()
    }
}
