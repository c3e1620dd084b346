import Dispatch
import Synchronization
import Testing

@testable import HatoPush

/// Names are given by users: those whose servers do not answer must take nothing from the others.
@Suite(.timeLimit(.minutes(5)))
struct HostResolverTests {
    /// Name servers that do not answer names under `slow.example` until the test lets them.
    private final class NameServers: Sendable {
        let asked = Mutex<[String]>([])
        private let slow = DispatchSemaphore(value: 0)

        func lookUp(_ host: String) -> Result<[IPAddress], AddressRefusal> {
            asked.withLock { $0.append(host) }
            if host.hasSuffix("slow.example") { slow.wait() }
            return .success([.v4(0x0808_0808)])
        }

        func answerSlowOnes(_ count: Int) { for _ in 0..<count { slow.signal() } }
    }

    private func resolver(
        _ servers: NameServers, _ change: (inout ResolverLimits) -> Void = { _ in }
    ) -> SystemHostResolver {
        var limits = ResolverLimits()
        limits.timeout = .seconds(60)
        change(&limits)
        return SystemHostResolver(limits: limits) { servers.lookUp($0) }
    }

    @Test func namesThatAreNotAnsweredHoldUpNoOthers() async throws {
        let servers = NameServers()
        let resolver = resolver(servers) { $0.lookUpsMax = 4 }
        let slow = (0..<40).map { number in
            Task { try await resolver.addresses(of: "\(number).slow.example") }
        }
        while servers.asked.withLock({ $0.count }) < 2 { await Task.yield() }
        #expect(try await resolver.addresses(of: "quick.test") == [.v4(0x0808_0808)])
        #expect(servers.asked.withLock { $0.filter { $0.hasSuffix("slow.example") } }.count == 2)
        servers.answerSlowOnes(40)
        for task in slow { #expect(try await task.value.count == 1) }
    }

    @Test func whoAsksForOneNameSharesItsLookUp() async throws {
        let servers = NameServers()
        let resolver = resolver(servers)
        let asking = (0..<100).map { _ in Task { try await resolver.addresses(of: "Hook.SLOW.example") } }
        while servers.asked.withLock({ $0.isEmpty }) { await Task.yield() }
        servers.answerSlowOnes(100)
        for task in asking { #expect(try await task.value.count == 1) }
        // Callers after the first response caused look-ups of their own; there were never two at a time.
        #expect(servers.asked.withLock { $0.allSatisfy { $0 == "hook.slow.example" } })
    }

    @Test func whoWaitsTooLongIsToldSo() async throws {
        let servers = NameServers()
        let resolver = resolver(servers) { $0.timeout = .milliseconds(50) }
        await #expect(throws: AddressRefusal.unresolvable(host: "a.slow.example", "the name server does not answer")) {
            try await resolver.addresses(of: "a.slow.example")
        }
        servers.answerSlowOnes(1)
    }

    @Test func namesOfOneDomainThatWaitAreBounded() async throws {
        let servers = NameServers()
        let resolver = resolver(servers) {
            $0.lookUpsPerDomainMax = 1
            $0.waitingPerDomainMax = 0
        }
        let first = Task { try await resolver.addresses(of: "a.slow.example") }
        while servers.asked.withLock({ $0.isEmpty }) { await Task.yield() }
        // Below the limit of look-ups a name needs no place among those that wait.
        let refused = await #expect(throws: AddressRefusal.self) {
            try await resolver.addresses(of: "b.slow.example")
        }
        #expect(refused?.reason == "unresolvable_host")
        servers.answerSlowOnes(2)
        _ = try await first.value
    }
}
