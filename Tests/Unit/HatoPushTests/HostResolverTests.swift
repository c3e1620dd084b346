import Dispatch
import Synchronization
import Testing

@testable import HatoPush

/// Names are given by users: those whose servers do not answer must take nothing from the others.
@Suite(.timeLimit(.minutes(5)))
struct HostResolverTests {
    /// Name servers that do not answer names with `slow` in them until the test lets them.
    private final class NameServers: Sendable {
        let asked = Mutex<[String]>([])
        private let slow = DispatchSemaphore(value: 0)

        func lookUp(_ host: String) -> Result<[IPAddress], AddressRefusal> {
            asked.withLock { $0.append(host) }
            if host.contains("slow") { slow.wait() }
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

    private func user(_ uid: String, isDelivery: Bool = false) -> LookUpCaller {
        LookUpCaller(uid: uid, isDelivery: isDelivery)
    }

    @Test func namesThatAreNotAnsweredHoldUpNoOthers() async throws {
        let servers = NameServers()
        let resolver = resolver(servers) { $0.lookUpsMax = 4 }
        let slow = (0..<40).map { number in
            Task { try await resolver.addresses(of: "\(number).slow.example", for: user("\(number)")) }
        }
        while servers.asked.withLock({ $0.count }) < 2 { await Task.yield() }
        #expect(try await resolver.addresses(of: "quick.test", for: user("other")) == [.v4(0x0808_0808)])
        #expect(servers.asked.withLock { $0.filter { $0.hasSuffix("slow.example") } }.count == 2)
        servers.answerSlowOnes(40)
        for task in slow { #expect(try await task.value.count == 1) }
    }

    @Test func whoAsksForOneNameSharesItsLookUp() async throws {
        let servers = NameServers()
        let resolver = resolver(servers)
        let asking = (0..<100).map { number in
            Task { try await resolver.addresses(of: "Hook.SLOW.example", for: user("\(number)")) }
        }
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
            try await resolver.addresses(of: "a.slow.example", for: user("a"))
        }
        // Its domain is not asked again for this user.
        await #expect(throws: AddressRefusal.unresolvable(host: "b.slow.example", "the name server does not answer")) {
            try await resolver.addresses(of: "b.slow.example", for: user("a"))
        }
        #expect(servers.asked.withLock { $0 } == ["a.slow.example"])
        servers.answerSlowOnes(2)
        _ = try? await resolver.addresses(of: "b.slow.example", for: user("b"))
        #expect(servers.asked.withLock { $0 } == ["a.slow.example", "b.slow.example"])
    }

    @Test func oneUserHoldsTwoLookUpsHoweverManyDomainsItNames() async throws {
        let servers = NameServers()
        let resolver = resolver(servers) { $0.lookUpsMax = 3 }
        let slow = (0..<20).map { number in
            Task { try await resolver.addresses(of: "hook.slow\(number).example\(number)", for: user("one")) }
        }
        while servers.asked.withLock({ $0.count }) < 2 { await Task.yield() }
        for number in 0..<5 {
            _ = try await resolver.addresses(of: "quick.test\(number)", for: user("other\(number)"))
        }
        #expect(servers.asked.withLock { $0.count { $0.contains("slow") } } == 2)
        servers.answerSlowOnes(20)
        for task in slow { _ = try await task.value }
    }

    @Test func deliveriesHaveLookUpsThatRegistrationsCannotTake() async throws {
        let servers = NameServers()
        let resolver = resolver(servers) {
            $0.lookUpsMax = 3
            $0.lookUpsToRegisterMax = 2
        }
        let slow = (0..<20).map { number in
            Task { try await resolver.addresses(of: "hook.slow\(number).example\(number)", for: user("\(number)")) }
        }
        while servers.asked.withLock({ $0.count }) < 2 { await Task.yield() }
        _ = try await resolver.addresses(of: "quick.test", for: user("other", isDelivery: true))
        #expect(servers.asked.withLock { $0.count { $0.contains("slow") } } == 2)
        servers.answerSlowOnes(20)
        for task in slow { _ = try await task.value }
    }

    @Test func addressesAreRememberedForAWhile() async throws {
        for (memory, count) in [(Duration.seconds(600), 1), (.zero, 3)] {
            let servers = NameServers()
            let resolver = resolver(servers) { $0.memory = memory }
            for uid in ["a", "b", "c"] { _ = try await resolver.addresses(of: "quick.test", for: user(uid)) }
            #expect(servers.asked.withLock { $0.count } == count)
        }
    }

    @Test func whoseLookUpDoesNotBeginIsToldThat() async throws {
        let servers = NameServers()
        let resolver = resolver(servers) {
            $0.lookUpsPerUserMax = 1
            $0.timeout = .milliseconds(50)
        }
        let first = Task { try await resolver.addresses(of: "slow.one", for: user("a", isDelivery: true)) }
        while servers.asked.withLock({ $0.isEmpty }) { await Task.yield() }
        await #expect(throws: AddressRefusal.noLookUp(host: "quick.two")) {
            try await resolver.addresses(of: "quick.two", for: user("a", isDelivery: true))
        }
        servers.answerSlowOnes(1)
        _ = try? await first.value
    }

    @Test func namesOfOneUserThatWaitAreBounded() async throws {
        let servers = NameServers()
        let resolver = resolver(servers) {
            $0.lookUpsPerUserMax = 1
            $0.waitingPerUserMax = 0
        }
        let first = Task { try await resolver.addresses(of: "a.slow.example", for: user("a")) }
        while servers.asked.withLock({ $0.isEmpty }) { await Task.yield() }
        // Below the limit of look-ups a name needs no place among those that wait.
        let refused = await #expect(throws: AddressRefusal.self) {
            try await resolver.addresses(of: "b.slow.example", for: user("a"))
        }
        #expect(refused?.reason == "unresolvable_host")
        servers.answerSlowOnes(2)
        _ = try await first.value
    }
}
