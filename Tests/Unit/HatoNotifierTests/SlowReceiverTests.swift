import HatoModel
import HatoPush
import HatoRPC
import HatoRuntime
import HatoStorage
import HatoTesting
import Synchronization
import Testing

@testable import HatoNotifier

/// Receivers of many accounts that hang delay no others.
@Suite(.timeLimit(.minutes(10))) struct SlowReceiverTests {
    private let clock = TestClock()
    private let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 200))
    private let failed = DeliveryOutcome.failed(DeliveryResponse(error: "timeout"), retryAfter: nil)

    /// A receiver of webhooks that responds with an error when its gate is open.
    private final class HangingReceiver: Sendable {
        private struct State {
            var gate = Gate()
            var received = 0
            var hanging = 0
            var listener: HTTPListener?
        }

        private let state = Mutex(State())

        init() async throws {
            var limits = HTTPLimits()
            limits.idleSecondsMax = 600
            let listener = try await HTTPListener(host: "127.0.0.1", port: 0, limits: limits) { _ in
                let gate = self.state.withLock { state in
                    state.received += 1
                    state.hanging += 1
                    return state.gate
                }
                await gate.pass()
                self.state.withLock { $0.hanging -= 1 }
                return HTTPResponse(status: 500)
            }
            state.withLock { $0.listener = listener }
        }

        var url: String { "http://127.0.0.1:\(state.withLock { $0.listener?.port } ?? 0)/hook" }
        var received: Int { state.withLock { $0.received } }
        var hanging: Int { state.withLock { $0.hanging } }
        func respond() { state.withLock { $0.gate }.open() }
        func hang() { state.withLock { $0.gate = Gate() } }

        func stop() async {
            respond()
            await state.withLock { $0.listener }?.stop()
        }
    }

    /// Also when they hold every attempt at first.
    @Test func aDeliveryWaitsForNoHangingWebhooksOfManyAccounts() async throws {
        let (hanging, good) = (try await HangingReceiver(), try await TestReceiver())
        let notifier = try await TestNotifier.start { [clock] configuration in
            configuration.time = clock.source
            configuration.delivery.attemptsInFlightMax = 8
            configuration.delivery.attemptsPerUserMax = 4
            configuration.delivery.attemptsPerHostMax = 100
        }
        let hostile = (0..<6).map { "hostile\($0)" }
        for uid in hostile {
            for index in 0..<4 { try await notifier.addDevice(of: uid, at: "\(hanging.url)\(index)") }
        }
        try await notifier.addDevice(of: "good", at: good.url)
        _ = try await notifier.client.call(Notifier.Send(to: .init(uids: hostile), notification: .init(title: "a")))
        try await eventually("all attempts hang") { hanging.hanging == 8 }
        hanging.respond()
        try await eventually("each device was attempted") { hanging.received == 24 && hanging.hanging == 0 }
        hanging.hang()
        // They stay slow, but are due again.
        clock.advance(by: .seconds(1))
        try await eventually("half of all attempts hang") { hanging.hanging == 4 }
        _ = try await notifier.client.call(Notifier.Send(to: .init(uids: ["good"]), notification: .init(title: "b")))
        try await eventually("delivered beside them") { good.received.count == 1 }
        #expect(hanging.hanging == 4)
        await hanging.stop()
        await notifier.stop()
        await good.stop()
    }

    private func outbox(_ store: any Store) async throws -> Outbox {
        try await Outbox.test(store, clock) { configuration in
            configuration.delivery.attemptsInFlightMax = 8
            configuration.delivery.attemptsPerUserMax = 3
            configuration.delivery.attemptsPerHostMax = 4
            configuration.delivery.attemptsMax = 100
            configuration.delivery.lease = .seconds(1_000_000)
            configuration.delivery.timeToLive = .seconds(10_000_000)
        }
    }

    /// Of slow users each has its turn, however much others wait for, and whether they came earlier or later.
    @Test func slowUsersTakeTurns() async throws {
        let outbox = try await outbox(MemoryStore())
        let users = (0..<6).map { "u\($0)" }
        for uid in users {
            for index in 0..<3 { try await outbox.addDevice("\(uid)-\(index)", of: uid, at: "\(uid).example.com") }
        }
        var slots = AttemptSlots(outbox.policy)
        for uid in users {
            let slot = try #require(slots.slot(for: ParkedGroup(host: "elsewhere", uid: uid), at: clock.now))
            slots.began(slot)
            slots.ended(slot, failed, after: 60_000, at: clock.now)
        }
        try await outbox.send("1", to: users)
        var order: [String] = []
        var running: [Lease] = []
        while order.count < 18 {
            let round = try await outbox.lease(limit: slots.free, beside: slots)
            slots.turns = round.slots.turns
            for lease in round.leases { slots.began(lease.slot) }
            running += round.leases
            order += round.leases.map(\.slot.group.uid)
            #expect(slots.slowCount <= 4)
            if round.isFull { continue }
            let first = try #require(running.first)
            running.removeFirst()
            try await outbox.record(delivered, of: first)
            slots.ended(first.slot, delivered, after: 0, at: clock.now)
        }
        // Four begin when they come; from then on each has its turn.
        for first in [4, 10] { #expect(Set(order[first..<first + 6]) == Set(users), "\(order)") }
        #expect(slots.slowCount <= 4)
    }

    /// What is under way, as the dispatcher keeps it.
    private struct Driver {
        let outbox: Outbox
        var slots: AttemptSlots
        var running: [Lease] = []

        /// Leases until nothing more may begin; fails when that has no end.
        mutating func lease() async throws {
            for _ in 0..<50 {
                guard slots.free > 0 else { return }
                let round = try await outbox.lease(limit: slots.free, beside: slots)
                slots.turns = round.slots.turns
                for lease in round.leases { slots.began(lease.slot) }
                running += round.leases
                if !round.isFull { return }
            }
            throw NeverHappened("a round that is not full")
        }

        /// Groups whose lanes are due and might be attempted now.
        func forgotten(at now: Int64) async throws -> [ParkedGroup] {
            let slots = slots
            guard slots.free > 0 else { return [] }
            return try await outbox.store.read { snapshot in
                let due = try snapshot.rows(RecordKey(.due), before: RecordKey(.due).with(time: now + 1))
                return try (due + snapshot.rows(RecordKey(.parked))).compactMap { row in
                    let key = RecordKey(bytes: row.value)
                    guard let delivery = try snapshot.record(DeliveryRecord.self, key),
                        let device = try snapshot.record(DeviceRecord.self, DeviceRecord.key(delivery.device))
                    else { return nil }
                    let group = ParkedGroup(host: try device.address(at: now).host, uid: delivery.uid)
                    return slots.slot(for: group, at: now) == nil ? nil : group
                }
            }
        }
    }

    /// Whatever receivers do, limits hold, no lane is forgotten, and leasing comes to rest.
    @Test(arguments: 1...12 as ClosedRange<UInt64>) func nothingThatMayBeginIsForgotten(seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        let outbox = try await outbox(MemoryStore())
        let users = (0..<10).map { "u\($0)" }
        for (index, uid) in users.enumerated() {
            for number in 0..<3 {
                try await outbox.addDevice("\(uid)-\(number)", of: uid, at: "h\((index + number) % 4).example.com")
            }
        }
        var driver = Driver(outbox: outbox, slots: AttemptSlots(outbox.policy))
        var steps = 0
        while steps < 150 || outbox.pending > 0 {
            steps += 1
            try #require(steps < 20_000, "seed \(seed): something never ends")
            if steps < 150, Bool.random(using: &random) {
                try await outbox.send("\(steps)", to: [users.randomElement(using: &random) ?? "u0"])
            }
            clock.advance(by: .milliseconds(Int.random(in: 0...3_000, using: &random)))
            try await driver.lease()
            #expect(try await driver.forgotten(at: clock.now).isEmpty, "seed \(seed), step \(steps)")
            #expect(driver.slots.slowCount <= 4 && driver.slots.count <= 8)
            while !driver.running.isEmpty, Int.random(in: 0..<3, using: &random) > 0 {
                let lease = driver.running.remove(at: Int.random(in: 0..<driver.running.count, using: &random))
                let fails = steps < 150 && Bool.random(using: &random)
                try await outbox.record(fails ? failed : delivered, of: lease)
                driver.slots.ended(lease.slot, fails ? failed : delivered, after: fails ? 15_000 : 5, at: clock.now)
            }
        }
        #expect(try await outbox.store.read { try $0.count(.parked) + $0.count(.due) } == 0)
    }
}
