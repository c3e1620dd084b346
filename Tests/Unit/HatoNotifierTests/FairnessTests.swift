import HatoModel
import HatoPush
import HatoStorage
import HatoTesting
import Logging
import Testing

@testable import HatoNotifier

/// Receivers that hang delay only deliveries to the same user or host.
@Suite(.timeLimit(.minutes(10))) struct FairnessTests {
    private let clock = TestClock()
    private let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 200))

    private func outbox(_ store: any Store, _ change: (inout DeliveryPolicy) -> Void = { _ in }) async throws -> Outbox
    {
        try await Outbox.test(store, clock) { configuration in
            configuration.delivery.attemptsInFlightMax = 8
            configuration.delivery.attemptsPerUserMax = 3
            configuration.delivery.attemptsPerHostMax = 5
            change(&configuration.delivery)
        }
    }

    private func running(
        _ outbox: Outbox, _ channel: ScriptedChannel, _ gate: Gate, _ body: () async throws -> Void
    ) async throws {
        let dispatcher = Dispatcher(
            outbox, channels: [channel], ResultWriter(outbox),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let task = Task { await dispatcher.run() }
        let result: Result<Void, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        gate.open()
        await dispatcher.stop()
        await task.value
        try result.get()
    }

    private func uids(_ leases: [Lease]) -> [String] { leases.map(\.group.uid) }

    @Test func hangingDevicesOfOneUserDelayNoOtherUser() async throws {
        let outbox = try await outbox(MemoryStore())
        for index in 0..<150 { try await outbox.addDevice("slow\(index)", of: "slow", at: "h\(index).example.com") }
        try await outbox.addDevice("good", of: "good")
        let gate = Gate()
        let channel = ScriptedChannel(gate: gate) { $0.content.uid == "slow" }
        try await running(outbox, channel, gate) {
            let slow = try await outbox.send("a", to: ["slow"])
            try await eventually("the hanging attempts") { channel.deliveries.count == 3 }
            for title in ["1", "2", "3"] {
                let id = try await outbox.send(title, to: ["good"])
                try await eventually("delivered beside them") { try await outbox.states(of: id) == [.delivered] }
            }
            #expect(channel.deliveries.count { $0.content.uid == "slow" } == 3)
            gate.open()
            try await eventually("all are delivered in the end") { outbox.pending == 0 }
            #expect(try await Set(outbox.states(of: slow)) == [.delivered])
        }
    }

    @Test func aHostThatHangsHoldsAPartOfTheAttempts() async throws {
        let outbox = try await outbox(MemoryStore())
        let users = (0..<40).map { "u\($0)" }
        for user in users { try await outbox.addDevice(user, of: user, at: "slow.example.com") }
        try await outbox.addDevice("good", of: "good", at: "good.example.com")
        let gate = Gate()
        let channel = ScriptedChannel(gate: gate) { $0.content.uid != "good" }
        try await running(outbox, channel, gate) {
            try await outbox.send("a", to: users)
            // The last quarter of the slots of a host is for users whose receivers responded.
            try await eventually("the hanging attempts") { channel.deliveries.count == 4 }
            let id = try await outbox.send("b", to: ["good"])
            try await eventually("delivered beside them") { try await outbox.states(of: id) == [.delivered] }
            #expect(channel.deliveries.count == 5)
            gate.open()
            try await eventually("all are delivered in the end") { outbox.pending == 0 }
        }
    }

    @Test func noMoreAttemptsAreUnderWayThanMayBeInAll() async throws {
        let outbox = try await outbox(MemoryStore())
        let users = (0..<40).map { "u\($0)" }
        for user in users { try await outbox.addDevice(user, of: user, at: "\(user).example.com") }
        let gate = Gate()
        let channel = ScriptedChannel(gate: gate)
        try await running(outbox, channel, gate) {
            try await outbox.send("a", to: users)
            try await eventually("the hanging attempts") { channel.deliveries.count >= 8 }
            // Meanwhile others would have begun, too.
            for _ in 0..<20 { _ = try await outbox.counts() }
            gate.open()
            try await eventually("all are delivered in the end") { outbox.pending == 0 }
            #expect(channel.inFlightMax == 8)
        }
    }

    /// Users of one host, and hosts, take turns however much each of them waits for.
    @Test func groupsThatWaitTakeTurns() async throws {
        let outbox = try await outbox(MemoryStore()) {
            $0.attemptsPerUserMax = 1
            $0.attemptsInFlightMax = 1
        }
        for (uid, host) in [("a", "x"), ("b", "x"), ("c", "y")] {
            for index in 0..<4 { try await outbox.addDevice("\(uid)\(index)", of: uid, at: "\(host).example.com") }
        }
        for uid in ["a", "b", "c"] { try await outbox.send("1", to: [uid]) }
        var slots = AttemptSlots(outbox.policy)
        // As if each user had an attempt under way: all that is due is parked.
        for uid in ["a", "b", "c"] { slots.began(AttemptGroup(host: "elsewhere", uid: uid), at: clock.now) }
        #expect(try await outbox.lease(limit: 9, beside: slots).leases.isEmpty)
        #expect(try await outbox.store.read { try $0.count(.due) } == 0)
        slots = AttemptSlots(outbox.policy)
        var order: [String] = []
        for _ in 0..<12 {
            let round = try await outbox.lease(limit: 1, beside: slots)
            slots.position = round.slots.position
            let lease = try #require(round.leases.first)
            order.append(lease.group.uid)
            try await outbox.record(delivered, of: lease)
        }
        #expect(order == (0..<4).flatMap { _ in ["a", "b", "c"] })
        #expect(outbox.pending == 0)
        #expect(try await outbox.store.read { try $0.count(.parked) } == 0)
    }

    /// A round searches few groups, and the next one goes on behind them.
    @Test func aGroupBehindHundredsThatMustWaitHasItsTurnInOneOfTheNextRounds() async throws {
        let outbox = try await outbox(MemoryStore()) {
            $0.attemptsPerUserMax = 1
            $0.attemptsInFlightMax = 1_000
        }
        let users = (0..<300).map { "u\(1_000 + $0)" }
        for user in users { try await outbox.addDevice(user, of: user, at: "\(user).example.com") }
        try await outbox.send("a", to: users)
        var slots = AttemptSlots(outbox.policy)
        for user in users { slots.began(AttemptGroup(host: "elsewhere", uid: user), at: clock.now) }
        #expect(try await outbox.lease(limit: 8, beside: slots).leases.isEmpty)
        slots.ended(300, delivered, at: clock.now)
        var round = try await outbox.lease(limit: 8, beside: slots)
        #expect(round.leases.isEmpty && round.nextDueAt == clock.now + 50)
        slots.position = round.slots.position
        round = try await outbox.lease(limit: 8, beside: slots)
        #expect(uids(round.leases) == ["u1299"])
    }

    /// A host at which many users wait is searched for a part of a round, and goes on there in the next one.
    @Test func groupsBehindHundredsAtOneHostHaveTheirTurnInTheSameRound() async throws {
        let outbox = try await outbox(MemoryStore()) {
            ($0.attemptsPerUserMax, $0.attemptsPerHostMax, $0.attemptsInFlightMax) = (1, 8, 1_000)
        }
        let users = (0..<300).map { "u\(1_000 + $0)" }
        for user in users { try await outbox.addDevice(user, of: user, at: "a.example.com") }
        try await outbox.addDevice("good", of: "good", at: "z.example.com")
        try await outbox.send("a", to: users + ["good"])
        // Six of eight slots are taken: the others are for users whose receivers responded.
        var slots = AttemptSlots(outbox.policy)
        for user in 0..<6 { slots.began(AttemptGroup(host: "a.example.com:443", uid: "\(user)"), at: clock.now) }
        let other = slots.began(AttemptGroup(host: "elsewhere", uid: "good"), at: clock.now)
        #expect(try await outbox.lease(limit: 8, beside: slots).leases.isEmpty)
        slots.ended(other, delivered, at: clock.now)
        var round = try await outbox.lease(limit: 8, beside: slots)
        #expect(uids(round.leases) == ["good"] && round.nextDueAt == clock.now + 50)
        // One of the last users is found, though each round skips few.
        slots.ended(slots.began(AttemptGroup(host: "elsewhere", uid: "u1290"), at: clock.now), delivered, at: clock.now)
        var rounds = 0
        while round.leases.allSatisfy({ $0.group.uid != "u1290" }), rounds < 10 {
            slots.position = round.slots.position
            round = try await outbox.lease(limit: 8, beside: slots)
            rounds += 1
        }
        #expect(rounds <= 5)
    }

    /// What is new and what waits get slots side by side.
    @Test func whatWaitsIsNotStarvedByWhatComes() async throws {
        let outbox = try await outbox(MemoryStore())
        for uid in ["waits", "comes", "more"] {
            for index in 0..<4 { try await outbox.addDevice("\(uid)\(index)", of: uid, at: "\(uid).example.com") }
        }
        try await outbox.send("1", to: ["waits"])
        var slots = AttemptSlots(outbox.policy)
        for _ in 0..<3 { slots.began(AttemptGroup(host: "elsewhere", uid: "waits"), at: clock.now) }
        #expect(try await outbox.lease(limit: 8, beside: slots).leases.isEmpty)
        try await outbox.send("2", to: ["comes"])
        try await outbox.send("3", to: ["more"])
        #expect(uids(try await outbox.lease(limit: 4).leases) == ["waits", "waits", "comes", "comes"])
    }

    @Test func parkedLanesAreTakenUpAfterARestartAndByADeviceThatIsGone() async throws {
        let store = try MemoryStore()
        var outbox = try await outbox(store)
        for index in 0..<6 { try await outbox.addDevice("d\(index)", of: "u1", at: "h\(index).example.com") }
        let id = try await outbox.send("a")
        #expect(try await outbox.lease(limit: 8).leases.count == 3)
        #expect(try await store.read { try $0.count(.parked) } == 3)
        #expect(try await outbox.counts().nextDueAt == clock.now)
        try await outbox.dropDeliveries(of: "d5")
        #expect(try await store.read { try $0.count(.parked) } == 2)
        outbox = try await self.outbox(store)
        #expect(outbox.pending == 5)
        for _ in 1...2 {
            for lease in try await outbox.lease(limit: 8).leases { try await outbox.record(delivered, of: lease) }
        }
        #expect(try await outbox.states(of: id).sorted { $0.rawValue < $1.rawValue }.count { $0 == .delivered } == 5)
        #expect(try await store.read { try $0.count(.parked) + $0.count(.due) } == 0)
    }

    @Test func aParkedLaneIsReplacedUnderItsCollapseKey() async throws {
        let outbox = try await outbox(MemoryStore()) { $0.attemptsPerUserMax = 1 }
        for name in ["d1", "d2"] { try await outbox.addDevice(name, of: "u1") }
        try await outbox.send("1", collapseKey: "room")
        let lease = try #require(try await outbox.lease(limit: 8).leases.first)
        try await outbox.send("2", collapseKey: "room")
        #expect(try await outbox.store.read { try $0.count(.parked) } == 0)
        try await outbox.record(delivered, of: lease)
        var titles: [String?] = []
        for _ in 1...2 {
            for lease in try await outbox.lease(limit: 8).leases {
                titles.append(lease.delivery.content.text.title)
                try await outbox.record(delivered, of: lease)
            }
        }
        #expect(titles == ["2", "2"] && outbox.pending == 0)
        #expect(try await outbox.lease(limit: 8).leases.isEmpty)
    }

    /// One transaction for many deliveries, not one for each when it is due.
    @Test func whatWaitsForADeviceThatIsGoneIsDroppedInPages() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        for _ in 0..<50 { try await outbox.send("x") }
        let lease = try #require(try await outbox.lease(limit: 8).leases.first)
        let version = outbox.store.version
        try await outbox.record(.deviceGone(DeliveryResponse(status: 410), since: nil), of: lease)
        #expect(outbox.pending == 0 && outbox.store.version <= version + 3)
    }
}
