import Dispatch
import Synchronization
import Testing

@testable import HatoFetch

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

        func finishSlowOnes(_ count: Int) { for _ in 0..<count { slow.signal() } }
    }

    private func resolver(
        _ servers: NameServers, _ change: (inout ResolverLimits) -> Void = { _ in }
    ) -> SystemHostResolver {
        var limits = ResolverLimits()
        limits.lookUpMsMax = 60_000
        // A loaded machine is no slow name server.
        limits.slowLookUpMs = 60_000
        change(&limits)
        return SystemHostResolver(limits: limits) { servers.lookUp($0) }
    }

    private func user(_ uid: String, isDelivery: Bool = false) -> LookUpCaller {
        LookUpCaller(uid: uid, isDelivery: isDelivery)
    }

    @Test func namesWithoutAResponseDelayNoOthers() async throws {
        let servers = NameServers()
        let resolver = resolver(servers) { $0.lookUpsMax = 4 }
        let slow = (0..<40).map { number in
            Task { try await resolver.addresses(of: "\(number).slow.example", for: user("\(number)")) }
        }
        while servers.asked.withLock({ $0.count }) < 2 { await Task.yield() }
        #expect(try await resolver.addresses(of: "quick.test", for: user("other")) == [.v4(0x0808_0808)])
        #expect(servers.asked.withLock { $0.filter { $0.hasSuffix("slow.example") } }.count == 2)
        servers.finishSlowOnes(40)
        for task in slow { #expect(try await task.value.count == 1) }
    }

    @Test func callersOfOneNameShareItsLookUp() async throws {
        let servers = NameServers()
        let resolver = resolver(servers)
        let asking = (0..<100).map { number in
            Task { try await resolver.addresses(of: "Hook.SLOW.example", for: user("\(number)")) }
        }
        while servers.asked.withLock({ $0.isEmpty }) { await Task.yield() }
        servers.finishSlowOnes(100)
        for task in asking { #expect(try await task.value.count == 1) }
        // Callers after the first response caused look-ups of their own; there were never two at a time.
        #expect(servers.asked.withLock { $0.allSatisfy { $0 == "hook.slow.example" } })
    }

    @Test func callerThatWaitsTooLongGetsAnError() async throws {
        let servers = NameServers()
        let resolver = resolver(servers) { $0.lookUpMsMax = 50 }
        await #expect(throws: AddressRefusal.unresolvable(host: "a.slow.example", "the name server does not respond")) {
            try await resolver.addresses(of: "a.slow.example", for: user("a"))
        }
        // Its domain is not asked again for this user.
        await #expect(throws: AddressRefusal.unresolvable(host: "b.slow.example", "the name server does not respond")) {
            try await resolver.addresses(of: "b.slow.example", for: user("a"))
        }
        #expect(servers.asked.withLock { $0 } == ["a.slow.example"])
        servers.finishSlowOnes(2)
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
        servers.finishSlowOnes(20)
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
        servers.finishSlowOnes(20)
        for task in slow { _ = try await task.value }
    }

    @Test func addressesAreRememberedForAWhile() async throws {
        for (memory, count) in [(600_000, 1), (0, 3)] {
            let servers = NameServers()
            let resolver = resolver(servers) { $0.lookUpMemoryMs = memory }
            for uid in ["a", "b", "c"] { _ = try await resolver.addresses(of: "quick.test", for: user(uid)) }
            #expect(servers.asked.withLock { $0.count } == count)
        }
    }

    @Test func callerWhoseLookUpDoesNotBeginGetsAnError() async throws {
        let servers = NameServers()
        let resolver = resolver(servers) {
            $0.lookUpsPerUserMax = 1
            $0.lookUpMsMax = 50
        }
        let first = Task { try await resolver.addresses(of: "slow.one", for: user("a", isDelivery: true)) }
        while servers.asked.withLock({ $0.isEmpty }) { await Task.yield() }
        await #expect(throws: AddressRefusal.noLookUp(host: "quick.two")) {
            try await resolver.addresses(of: "quick.two", for: user("a", isDelivery: true))
        }
        servers.finishSlowOnes(1)
        _ = try? await first.value
    }

    @Test func namesOfOneUserThatWaitAreBounded() async throws {
        let servers = NameServers()
        let resolver = resolver(servers) {
            $0.lookUpsPerUserMax = 1
            $0.lookUpsWaitingPerUserMax = 0
        }
        let first = Task { try await resolver.addresses(of: "a.slow.example", for: user("a")) }
        while servers.asked.withLock({ $0.isEmpty }) { await Task.yield() }
        // Below the limit of look-ups a name needs no place among those that wait.
        let refused = await #expect(throws: AddressRefusal.self) {
            try await resolver.addresses(of: "b.slow.example", for: user("a"))
        }
        #expect(refused?.reason == "unresolvable_host")
        servers.finishSlowOnes(2)
        _ = try await first.value
    }

    /// Many accounts under one ending, whose name server does not respond, stop no delivery to other names under it.
    @Test func namesUnderOneEndingHoldUpNoDelivery() async throws {
        let servers = NameServers()
        let resolver = resolver(servers) { $0.lookUpsMax = 8 }
        let slow = (0..<4).map { number in
            Task {
                try await resolver.addresses(
                    of: "\(number).slow.co.jp", for: user("\(number)", isDelivery: number % 2 == 0))
            }
        }
        while servers.asked.withLock({ $0.count }) < 4 { await Task.yield() }
        #expect(try await resolver.addresses(of: "quick.co.jp", for: user("other", isDelivery: true)).count == 1)
        servers.finishSlowOnes(4)
        for task in slow { _ = try await task.value }
    }

    /// What a queue decides for calls whose answers are not needed.
    private func asked(_ queue: inout LookUpQueue, _ host: String, _ caller: LookUpCaller) -> LookUpQueue.Decision {
        queue.requested(LookUpQueue.Call(host: host, caller: caller) { _ in }, at: .now)
    }

    /// The name that loses its place to the call; empty: none does; nil: the call is refused.
    private func loser(_ queue: inout LookUpQueue, _ host: String, _ caller: LookUpCaller) -> String? {
        if case .waits(_, let instead) = asked(&queue, host, caller) { instead?.host ?? "" } else { nil }
    }

    @Test func whenTooManyWaitTheUserWithTheMostLosesItsNewest() {
        var limits = ResolverLimits()
        limits.lookUpsMax = 1
        limits.lookUpsWaitingMax = 4
        var queue = LookUpQueue(limits)
        guard case .begins = asked(&queue, "first.test", user("a")) else {
            Issue.record("the first look-up does not begin")
            return
        }
        for number in 0..<3 { #expect(loser(&queue, "\(number).many.test", user("many")) == "") }
        #expect(loser(&queue, "delivery.test", user("b", isDelivery: true)) == "")
        #expect(loser(&queue, "3.many.test", user("many")) == nil)
        #expect(loser(&queue, "c.test", user("c")) == "2.many.test")
        #expect(loser(&queue, "d.test", user("d")) == "1.many.test")
        // Each has one: one more registration is refused, and a delivery takes the place of a registration.
        #expect(loser(&queue, "e.test", user("e")) == nil)
        for uid in ["f", "g", "h"] {
            let instead = loser(&queue, "\(uid).test", user(uid, isDelivery: true))
            #expect(["0.many.test", "c.test", "d.test"].contains(instead))
        }
        #expect(loser(&queue, "i.test", user("i", isDelivery: true)) == nil)
        // All that wait get their look-ups, one after the other.
        var (host, begun) = ("first.test", [String]())
        while let next = queue.lookedUp(host, .success([]), at: .now).next.first {
            begun.append(next)
            host = next
        }
        #expect(begun == ["delivery.test", "f.test", "g.test", "h.test"])
    }

    @Test func whatAnEarlierCallOfTheNameWaitsForIsShared() {
        var limits = ResolverLimits()
        limits.lookUpsMax = 1
        var queue = LookUpQueue(limits)
        _ = asked(&queue, "first.test", user("a"))
        guard case .waits(let ticket, nil) = asked(&queue, "shared.test", user("b")) else {
            Issue.record("it does not wait")
            return
        }
        _ = asked(&queue, "shared.test", user("c", isDelivery: true))
        _ = asked(&queue, "shared.test", user("b"))
        let late = [queue.timePassed(for: ticket, at: .now), queue.timePassed(for: ticket, at: .now)]
        #expect(late.map { $0?.1 } == [.failure(.noLookUp(host: "shared.test")), nil])
        let next = queue.lookedUp("first.test", .success([]), at: .now).next
        let calls = queue.lookedUp("shared.test", .success([]), at: .now).calls
        #expect(next == ["shared.test"] && calls.count == 2)
    }

    // MARK: Slow look-ups

    /// Whether the look-up of a call begins at once.
    private func begins(
        _ queue: inout LookUpQueue, _ host: String, _ caller: LookUpCaller, at now: ContinuousClock.Instant
    ) -> Bool {
        let call = LookUpQueue.Call(host: host, caller: caller) { _ in }
        if case .begins = queue.requested(call, at: now) { return true }
        return false
    }

    /// Four users hold all places for registrations with names whose servers do not respond.
    @Test func slowLookUpsLeaveTheirPlacesToOthers() {
        var queue = LookUpQueue(ResolverLimits())
        let now = ContinuousClock.now
        for user in 0..<4 {
            for name in ["a", "b"] { #expect(begins(&queue, "x.\(name)\(user)", self.user("\(user)"), at: now)) }
        }
        #expect(!begins(&queue, "quick.test", user("other"), at: now))
        #expect(begins(&queue, "localhost", user("other"), at: now))
        #expect(queue.timePassed(at: now + .milliseconds(999)).isEmpty)
        #expect(queue.timePassed(at: now + .seconds(1)) == ["quick.test"])
        // They count as those of their users, until they end.
        #expect(!begins(&queue, "more.test9", user("0"), at: now + .seconds(1)))
        #expect(begins(&queue, "delivery.test", user("another", isDelivery: true), at: now + .seconds(1)))
        #expect(queue.lookedUp("x.a0", .success([]), at: now + .seconds(2)).next == ["more.test9"])
    }

    /// However many there are, they have a bound, and some are for users that have none.
    @Test func slowLookUpsAreBounded() {
        var limits = ResolverLimits()
        limits.slowLookUpsMax = 8
        var queue = LookUpQueue(limits)
        var now = ContinuousClock.now
        for user in 0..<4 { #expect(begins(&queue, "slow.test\(user)", self.user("\(user)"), at: now)) }
        now += .seconds(1)
        #expect(queue.timePassed(at: now).isEmpty)
        #expect(!begins(&queue, "second.test0", user("0"), at: now))
        for user in 4..<8 { #expect(begins(&queue, "slow.test\(user)", self.user("\(user)"), at: now)) }
        now += .seconds(1)
        #expect(queue.timePassed(at: now).isEmpty)
        #expect(!begins(&queue, "slow.test8", user("8"), at: now))
        #expect(queue.lookedUp("slow.test3", .success([]), at: now).next == ["slow.test8"])
    }
}
