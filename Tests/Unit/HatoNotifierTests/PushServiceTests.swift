import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Logging
import Testing

@testable import HatoNotifier

/// Push services of browsers that fail are not called for a while, and others are.
@Suite(.timeLimit(.minutes(5))) struct PushServiceTests {
    private let clock = TestClock()
    private static let down = DeliveryOutcome.failed(DeliveryResponse(status: 502), retryAfter: nil)
    private static let silent = DeliveryOutcome.failed(DeliveryResponse(error: "no response"), retryAfter: nil)
    private static let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 201))

    private func group(_ uid: String, at host: String = "push.example.com", app: String = "default") throws
        -> AttemptGroup
    {
        AttemptGroup(at: .webpush(try TestSubscription.at("https://\(host)/1")), of: uid, app: app)
    }

    private func end(_ group: AttemptGroup, _ outcome: DeliveryOutcome, at now: Int64, in slots: inout AttemptSlots) {
        slots.ended(slots.began(group, at: now), outcome, at: now, random: 0)
    }

    // MARK: By value

    @Test func afterTwentyFailuresOneAttemptIsMadeAfterEachPause() throws {
        var slots = AttemptSlots(DeliveryPolicy())
        for number in 0..<20 {
            #expect(try slots.admits(group("u\(number)")) && slots.services.paused.isEmpty)
            end(try group("u\(number)"), number % 2 == 0 ? Self.down : Self.silent, at: 1_000, in: &slots)
        }
        #expect(
            slots.services.paused == [
                .init(app: "default", host: "push.example.com:443", since: 1_000, isOfMany: true)
            ])
        #expect(try !slots.admits(group("u1")) && !slots.admitsHost(group("u1").host))
        // Other services, the same one for another app, and webhooks there are called.
        let webhook = DeviceAddress.webhook(url: "https://push.example.com/1", secrets: [])
        #expect(
            try slots.admits(group("u1", at: "other.example.com")) && slots.admits(group("u1", app: "two words")))
        #expect(slots.admits(AttemptGroup(at: webhook, of: "u1")))
        let probe = try #require(slots.nextChange)
        #expect(probe == 1_000 + 7_500)
        _ = slots.timePassed(at: probe - 1)
        #expect(try !slots.admits(group("u1")))
        _ = slots.timePassed(at: probe)
        #expect(try slots.admits(group("u1")) && slots.nextChange == nil)
        let number = slots.began(try group("u1"), at: probe)
        #expect(try !slots.admits(group("u2")))
        slots.ended(number, Self.down, at: probe + 100, random: 0)
        #expect(try !slots.admits(group("u2")) && slots.nextChange == probe + 100 + 15_000)
        _ = slots.timePassed(at: probe + 100 + 15_000)
        end(try group("u2"), Self.delivered, at: probe + 100 + 15_000, in: &slots)
        #expect(try slots.admits(group("u1")) && slots.services.paused.isEmpty && slots.nextChange == nil)
    }

    @Test func whatAServiceRefusesIsNoFailureOfIt() throws {
        var slots = AttemptSlots(DeliveryPolicy())
        let outcomes = [400, 401, 403, 413, 429].map {
            DeliveryOutcome.failed(DeliveryResponse(status: $0), retryAfter: nil)
        }
        for number in 0..<200 { end(try group("u\(number)"), outcomes[number % 5], at: 0, in: &slots) }
        for _ in 0..<19 { end(try group("u"), Self.down, at: 0, in: &slots) }
        end(try group("u"), Self.delivered, at: 0, in: &slots)
        for _ in 0..<19 { end(try group("u"), Self.down, at: 0, in: &slots) }
        #expect(try slots.services.paused.isEmpty && slots.admits(group("u")))
        // Webhooks have no breaker.
        let webhook = AttemptGroup(at: .webhook(url: "https://example.com/1", secrets: []), of: "u")
        for _ in 0..<100 { end(webhook, Self.down, at: 0, in: &slots) }
        #expect(slots.admits(webhook))
    }

    @Test func manyServicesAreNotRemembered() throws {
        var services = PushServices()
        let times = CircuitBreaker.Times(began: 0, ended: 0)
        for _ in 0..<20 { services.attemptEnded(Self.down, of: try group("u"), times, random: 0) }
        for number in 0..<3_000 {
            let group = try group("u", at: "\(number).example.com")
            for _ in 0..<2 { services.attemptEnded(Self.down, of: group, times, random: 0) }
        }
        #expect(services.paused.map(\.host) == ["push.example.com:443"] && services.paused.first?.isOfMany == false)
        for number in 0..<1_100 {
            let group = try group("u", at: "\(number).example.com")
            for _ in 0..<20 { services.attemptEnded(Self.down, of: group, times, random: 0) }
        }
        #expect((1...1_024).contains(services.paused.count))
        services.resume("other")
        #expect(!services.paused.isEmpty)
        services.resume("default")
        #expect(services.paused.isEmpty)
    }

    // MARK: In the outbox

    private func addBrowser(_ uid: String, at host: String, _ outbox: Outbox) async throws {
        var new = DeviceRecord(device: "\(uid)@\(host)", uid: uid, platform: .webpush, createdAt: clock.now)
        let subscription = try TestSubscription.at("https://\(host)/\(uid)")
        (new.url, new.hasSucceeded) = (subscription.endpoint, true)
        (new.p256dh, new.auth) = (Base64.url.encode(subscription.p256dh), Base64.url.encode(subscription.auth))
        let device = new
        try await outbox.change { draft in
            draft.writes.put(device.key, device)
            draft.writes.put(device.userKey)
        }
    }

    @Test func aServiceThatFailsIsCalledByOneAttemptAndOthersGoOn() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) { $0.delivery.attemptsInFlightMax = 1_000 }
        let users = (100..<160).map { "u\($0)" }
        for uid in users { try await addBrowser(uid, at: "down.example.com", outbox) }
        try await addBrowser("other", at: "up.example.com", outbox)
        let channel = ScriptedChannel(.webpush, script: Array(repeating: Self.down, count: 61))
        let dispatcher = Dispatcher(
            outbox, channels: [channel], ResultWriter(outbox),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let task = Task { await dispatcher.run() }
        let id = try #require(try await outbox.accept(outbox.notification("a", to: users)).notification)
        try await eventually("it is paused") { outbox.pushServices.paused.map(\.host) == ["down.example.com:443"] }
        #expect(outbox.pushServices.paused.first?.isOfMany == true)
        try await eventually("all were attempted, or are parked") { try await outbox.counts().leased == 0 }
        let attempted = channel.deliveries.count
        #expect((20...60).contains(attempted))
        // They are due again, and are not called.
        clock.advance(by: .seconds(6))
        channel.dropScript()
        let other = try await outbox.send("b", to: ["other"])
        try await eventually("another service is called") { try await outbox.states(of: other) == [.delivered] }
        #expect(channel.deliveries.count == attempted + 1)
        channel.respondNext([Self.down])
        clock.advance(by: .seconds(10))
        try await eventually("one attempt") { channel.deliveries.count == attempted + 2 }
        try await eventually("it ended") { try await outbox.counts().leased == 0 }
        #expect(channel.deliveries.count == attempted + 2)
        clock.advance(by: .seconds(31))
        try await eventually("all are delivered then") {
            try await outbox.states(of: id).allSatisfy { $0 == .delivered }
        }
        #expect(outbox.pushServices.paused.isEmpty)
        await dispatcher.stop()
        await task.value
    }

    // MARK: What operators see

    @Test func operatorsSeeAServiceThatIsNotCalledAndLetItGoOn() async throws {
        let channel = ScriptedChannel(.webpush, script: Array(repeating: Self.down, count: 1_000))
        let clock = clock
        let notifier = try await TestNotifier.start(channels: [channel]) { $0.time = clock.source }
        let users = (10..<40).map { "u\($0)" }
        for user in users {
            _ = try await notifier.client.call(
                method: "notifier.devices.register",
                params: [
                    "platform": "webpush", "uid": .string(user),
                    "subscription": TestSubscription.json(at: "https://push.example.com/\(user)"),
                ])
        }
        let send = Notifier.Send(to: .init(uids: users), notification: .init(title: "a"))
        _ = try await notifier.client.call(send)
        func provider() async throws -> Notifier.AppProvider? {
            try await notifier.client.call(Notifier.Apps.List()).apps.first?.providers.first { $0.platform == .webpush }
        }
        try await eventually("it is known") { try await provider()?.problem != nil }
        let shown = try #require(try await provider())
        #expect(shown.problem?.hasPrefix("the push service push.example.com:443 failed 20 times in a row") == true)
        #expect(shown.status == .unchecked && shown.since == Int(clock.now))
        let health = try await notifier.client.call(method: "service.health")
        let words = health["checks"]?["providers"]?["webpush default"]?.string
        #expect(words == "unchecked: \(shown.problem ?? "")")
        try await eventually("nothing is under way") { try await notifier.stats.leased == 0 }
        channel.dropScript()
        clock.advance(by: .seconds(3))
        _ = try await notifier.client.call(Notifier.Apps.Resume(app: "default", platform: .webpush))
        try await eventually("all are delivered") { try await notifier.stats.pending == 0 }
        let last = try await provider()
        #expect(last?.problem == nil && last?.status == .ready)
        await notifier.stop()
    }
}
