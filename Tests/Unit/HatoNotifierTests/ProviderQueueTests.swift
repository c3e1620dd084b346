import HatoModel
import HatoPush
import HatoStorage
import HatoTesting
import Logging
import Testing

@testable import HatoNotifier

/// The queues of providers: what waits for one provider, and what becomes of tokens that it refuses.
@Suite struct ProviderQueueTests {
    private let clock = TestClock()
    private let refused = DeliveryOutcome.tokenRefused(DeliveryResponse(status: 400, error: "BadDeviceToken"))
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private func queue() throws -> ProviderQueue { try #require(ProviderQueue(.apns, app: "default")) }

    private func running(
        _ outbox: Outbox, _ channel: ScriptedChannel, _ body: (ProviderDispatcher) async throws -> Void
    ) async throws {
        let dispatcher = try await ProviderDispatcher(
            outbox, channels: [channel], ResultWriter(outbox), logger: logger)
        let task = Task { await dispatcher.run() }
        let result: Result<Void, any Error>
        do { result = .success(try await body(dispatcher)) } catch { result = .failure(error) }
        await dispatcher.stop()
        await task.value
        try result.get()
    }

    @Test func aPhoneIsCalledByTheQueueOfItsAppAndNoOther() async throws {
        let (outbox, channel) = (try await Outbox.test(MemoryStore(), clock), ScriptedChannel(.apns))
        try await outbox.addPhone("p1", of: "u1")
        try await outbox.addDevice("d1", of: "u1")
        let id = try await outbox.send("a")
        #expect(try await outbox.lease(limit: 10).leases.map(\.delivery.content.device) == ["d1"])
        #expect(try await ProviderQueues(outbox).all() == [queue()])
        try await running(outbox, channel) { dispatcher in
            try await eventually("delivered") { try await outbox.states(of: id).contains(.delivered) }
            #expect(channel.deliveries.map(\.content.device) == ["p1"] && channel.deliveries.first?.app == "default")
            // What is sent while it runs wakes it.
            try await outbox.send("b")
            try await eventually("delivered too") { channel.titles == ["a", "b"] }
            #expect(await dispatcher.statuses[try queue()]?.status == .ready)
        }
        #expect(try await outbox.device("p1")?.hasSucceeded == true)
    }

    /// A round begins where the one before ended.
    @Test func aLaneThatComesBeforeWhereTheLastRoundEndedIsFound() async throws {
        let (outbox, channel) = (try await Outbox.test(MemoryStore(), clock), ScriptedChannel(.apns))
        for phone in ["p1", "p2"] { try await outbox.addPhone(phone, of: phone) }
        for title in ["a", "b"] { try await outbox.send(title, to: ["p1"]) }
        clock.advance(by: .seconds(10))
        try await outbox.send("c", to: ["p2"])
        try await running(outbox, channel) { _ in
            // The second one of a phone has its own time, which is past.
            try await eventually("all arrive") { Set(channel.titles) == ["a", "b", "c"] }
            clock.advance(by: .seconds(-5))
            try await outbox.send("d", to: ["p2"])
            try await eventually("the clock was set back") { channel.titles.contains("d") }
        }
        let queue = try queue()
        try await outbox.send("e", to: ["p1"])
        let search = QueueSearch(front: clock.now + 1_000, looksAhead: false)
        let round = try await ProviderQueues(outbox).lease(from: queue, limit: 10, search)
        #expect(round.leases.count == 1 && round.front == clock.now && round.nextDueAt == nil)
    }

    @Test func leasesOfAProcessThatIsNoMoreAreTakenBack() async throws {
        let store = try MemoryStore()
        let outbox = try await Outbox.test(store, clock)
        try await outbox.addPhone("p1", of: "u1")
        try await outbox.send("a")
        #expect(try await ProviderQueues(outbox).lease(from: try queue(), limit: 10).leases.count == 1)
        #expect(try await ProviderQueues(outbox).lease(from: try queue(), limit: 10).leases.isEmpty)
        let next = try await Outbox.test(store, clock)
        #expect(try await ProviderQueues(next).lease(from: try queue(), limit: 10).leases.count == 1)
    }

    @Test func whileTheProviderRefusesTheAppDeliveriesWaitAndKeepTheirOrder() async throws {
        let no = DeliveryOutcome.providerRefused(
            DeliveryResponse(status: 403, error: "InvalidProviderToken"), retryAfter: nil)
        let outbox = try await Outbox.test(MemoryStore(), clock)
        let channel = ScriptedChannel(.apns, script: [no, no, no])
        for phone in 1...3 { try await outbox.addPhone("p\(phone)", of: "u1") }
        let id = try await outbox.send("a")
        try await running(outbox, channel) { dispatcher in
            try await eventually("paused") { await dispatcher.statuses[try queue()]?.status == .paused }
            #expect(await dispatcher.statuses[try queue()]?.problem == "InvalidProviderToken")
            try await eventually("recorded") { try await outbox.counts().leased == 0 }
            let tried = channel.deliveries.count
            try await outbox.send("b")
            #expect(channel.deliveries.count == tried, "it is not called")
            clock.advance(by: .seconds(3))
            try await dispatcher.resume(app: "default")
            try await eventually("all arrive") { try await outbox.counts().pending == 0 }
        }
        #expect(try await outbox.states(of: id) == [.delivered, .delivered, .delivered])
        let first = channel.deliveries.filter { $0.content.device == "p1" }.compactMap(\.content.text.title)
        #expect(first.suffix(2) == ["a", "b"])
    }

    @Test func aTokenThatNeverWorkedIsTriedInTheOtherEnvironmentOnce() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        let id = try await outbox.send("a")
        var environments: [Notifier.APNsEnvironment] = []
        for _ in 0..<2 {
            let lease = try #require(try await ProviderQueues(outbox).lease(from: try queue(), limit: 1).leases.first)
            if case .apns(let device) = lease.delivery.address { environments.append(device.environment) }
            try await outbox.record(refused, of: lease)
        }
        #expect(environments == [.production, .sandbox])
        #expect(try await outbox.states(of: id) == [.dropped])
        #expect(try await outbox.device("p1") == nil)
        #expect(try await outbox.store.read { try $0.rows(RecordKey(.deviceAtAddress)).isEmpty })
    }

    @Test func aTokenThatWorkedIsKeptForAMinuteAndThenGoes() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1", hasSucceeded: true)
        let id = try await outbox.send("a")
        let first = try #require(try await ProviderQueues(outbox).lease(from: try queue(), limit: 1).leases.first)
        try await outbox.record(refused, of: first)
        #expect(try await outbox.device("p1")?.refusedSince == clock.now)
        #expect(try await ProviderQueues(outbox).lease(from: try queue(), limit: 1).leases.isEmpty)
        for _ in 0..<2 {
            clock.advance(by: .seconds(30))
            let next = try #require(try await ProviderQueues(outbox).lease(from: try queue(), limit: 1).leases.first)
            #expect(try await outbox.device("p1") != nil)
            try await outbox.record(refused, of: next)
        }
        #expect(try await outbox.device("p1") == nil)
        #expect(try await outbox.states(of: id) == [.dropped])
    }

    /// Our own mistake, such as a wrong environment, must not cost a single device.
    @Test func manyRefusedTokensStopTheQueueAndNoDeviceGoes() async throws {
        let store = try MemoryStore()
        var outbox = try await Outbox.test(store, clock)
        let users = (0..<60).map { "u\($0)" }
        for user in users { try await outbox.addPhone("p-\(user)", of: user, hasSucceeded: true) }
        let channel = ScriptedChannel(.apns, script: Array(repeating: refused, count: 1_000))
        try await outbox.accept(outbox.notification("a", to: users))
        try await running(outbox, channel) { dispatcher in
            try await eventually("stopped") { await dispatcher.statuses[try queue()]?.status == .stopped }
            try await eventually("recorded") { try await outbox.counts().leased == 0 }
        }
        // Also after a start, and however long it lasts.
        outbox = try await Outbox.test(store, clock)
        clock.advance(by: .seconds(3_600))
        let next = ScriptedChannel(.apns)
        try await running(outbox, next) { dispatcher in
            #expect(await dispatcher.statuses[try queue()]?.status == .stopped)
            #expect(next.deliveries.isEmpty)
            #expect(try await store.read { try $0.count(.device) } == 60)
            try await dispatcher.resume(app: "default")
            try await eventually("all arrive") { try await outbox.counts().pending == 0 }
        }
        #expect(next.deliveries.count == 60)
    }

    @Test func whatExpiresInAStoppedQueueEndsAndOneWithoutAnAppIsResumed() async throws {
        let store = try MemoryStore()
        let outbox = try await Outbox.test(store, clock)
        for user in ["u1", "u2"] { try await outbox.addPhone("p-\(user)", of: user) }
        let short = try await outbox.send("short", to: ["u1"])
        let week = outbox.notification("long", to: ["u2"], timeToLive: .seconds(7 * 86_400))
        let long = try await outbox.accept(week).notification
        try await ProviderQueues(outbox).stop(try queue(), problem: "wrong topic")
        clock.advance(by: .seconds(25 * 3_600))
        let channel = ScriptedChannel(.apns)
        try await running(outbox, channel) { dispatcher in
            try await eventually("expired") { try await outbox.states(of: short) == [.dropped] }
            #expect(try await outbox.states(of: try #require(long)) == [.pending] && channel.deliveries.isEmpty)
            #expect(dispatcher.knows(app: "default") && !dispatcher.knows(app: "other"))
        }
    }

    @Test func aQueueIsSweptInPages() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        let users = (0..<600).map { "u\($0)" }
        for user in users { try await outbox.addPhone("p-\(user)", of: user) }
        let id = try #require(try await outbox.accept(outbox.notification("a", to: users)).notification)
        clock.advance(by: .seconds(25 * 3_600))
        let first = try await ProviderQueues(outbox).endExpired(in: try queue(), after: nil)
        #expect(try await outbox.states(of: id).count { $0 == .dropped } == 512)
        #expect(try await ProviderQueues(outbox).endExpired(in: try queue(), after: try #require(first)) == nil)
        #expect(try await outbox.states(of: id).allSatisfy { $0 == .dropped })
    }

    @Test func anEndpointThatAlwaysFindsPushesWrongGoesAfterFiveDays() {
        let policy = DeliveryPolicy()
        let tooLarge = DeliveryOutcome.rejected(DeliveryResponse(status: 413, error: "too large"))
        let ours = DeliveryOutcome.rejected(DeliveryResponse(error: "the message is too large"))
        func verdicts(_ outcome: DeliveryOutcome, _ platform: Notifier.Platform) -> [DeviceVerdict] {
            var device = DeviceRecord(device: "d", uid: "u", platform: platform, createdAt: 0)
            return [0, 5 * 86_400_000].map { now in
                device.attemptEnded(
                    outcome, .init(now: now, began: now, environment: nil, isStopped: false), policy)
            }
        }
        #expect(verdicts(tooLarge, .webpush) == [.stays, .ends(.failing)])
        #expect(verdicts(ours, .webpush) == [.stays, .stays])
        #expect(verdicts(tooLarge, .fcm) == [.stays, .stays])
    }

    /// Two attempts in the wrong environment under way at a time are one mistake.
    @Test func anAttemptOfBeforeASwitchCostsNoDevice() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        try await outbox.accept(outbox.notification("a", collapseKey: "a"))
        try await outbox.accept(outbox.notification("b", collapseKey: "b"))
        let leases = try await ProviderQueues(outbox).lease(from: try queue(), limit: 2).leases
        #expect(leases.count == 2)
        _ = try await outbox.record(leases.map { EndedAttempt(outcome: refused, lease: $0) })
        #expect(try await outbox.device("p1")?.environment == .sandbox)
        #expect(try await ProviderQueues(outbox).lease(from: try queue(), limit: 2).leases.count == 2)
    }

    /// What was refused long ago must not cost the device at the first refusal now.
    @Test func anOldRefusalDoesNotCount() throws {
        var device = DeviceRecord(device: "d", uid: "u", platform: .fcm, createdAt: 0)
        (device.hasSucceeded, device.refusedSince) = (true, 1_000)
        let circumstances = DeviceVerdict.Circumstances(
            now: 10_000_000, began: 9_000_000, environment: nil, isStopped: false)
        #expect(device.attemptEnded(refused, circumstances, DeliveryPolicy()) == .isSuspect)
        #expect(device.refusedSince == 10_000_000)
    }

    /// Else it would be the one that decides after each pause, and its reason may be its own.
    @Test func aDeliveryThatTheProviderRefusesGoesBehindTheOthers() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        for name in ["p1", "p2"] { try await outbox.addPhone(name, of: name) }
        try await outbox.accept(outbox.notification("a", to: ["p1", "p2"]))
        let first = try #require(try await ProviderQueues(outbox).lease(from: try queue(), limit: 1).leases.first)
        let no = DeliveryOutcome.providerRefused(DeliveryResponse(status: 403, error: "no"), retryAfter: nil)
        try await outbox.record(no, of: first)
        clock.advance(by: .seconds(10))
        let next = try #require(try await ProviderQueues(outbox).lease(from: try queue(), limit: 1).leases.first)
        #expect(next.delivery.content.device != first.delivery.content.device)
    }

    @Test func aFewRefusedTokensAmongManyStopNothing() throws {
        var refusals = TokenRefusals()
        var stops = false
        for number in 0..<30 {
            let lease = try lease("d\(number)")
            for _ in 0..<9 {
                let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 200))
                _ = refusals.attemptEnded(delivered, of: lease, at: 1_000)
            }
            if refusals.attemptEnded(refused, of: lease, at: 1_000) { stops = true }
        }
        #expect(!stops)
        // The same, over a longer time: the old ones count no more.
        refusals = TokenRefusals()
        for number in 0..<100 {
            if refusals.attemptEnded(refused, of: try lease("d\(number)"), at: Int64(number) * 4_000) { stops = true }
        }
        #expect(!stops)
        // One device counts once.
        refusals = TokenRefusals()
        for _ in 0..<100 where refusals.attemptEnded(refused, of: try lease("d"), at: 0) { stops = true }
        #expect(!stops)
    }

    /// A user could register any number of devices.
    @Test func devicesAreCountedButFewOfEachUser() throws {
        func stops(users: Int, devices: Int) throws -> Bool {
            var (refusals, stops) = (TokenRefusals(), false)
            for user in 0..<users {
                for device in 0..<devices {
                    let lease = try lease("d\(user)-\(device)", of: "u\(user)")
                    if refusals.attemptEnded(refused, of: lease, at: 1_000) { stops = true }
                }
            }
            return stops
        }
        #expect(try stops(users: 7, devices: 3))
        #expect(try stops(users: 20, devices: 1))
        #expect(try !stops(users: 6, devices: 3))
        #expect(try !stops(users: 3, devices: 32))
        #expect(try stops(users: 4, devices: 5))
    }

    /// Each one is looked at in a time that does not depend on how many there were.
    @Test(.timeLimit(.minutes(1))) func manyRefusedTokensAmongMoreOthersCostLittle() throws {
        var (refusals, stops) = (TokenRefusals(), false)
        let (delivered, other) = (DeliveryOutcome.delivered(DeliveryResponse(status: 200)), try lease("other"))
        for number in 0..<20_000 {
            for _ in 0..<5 { _ = refusals.attemptEnded(delivered, of: other, at: 1_000) }
            let lease = try lease("d\(number)", of: number % 2 == 0 ? "one" : nil)
            if refusals.attemptEnded(refused, of: lease, at: 1_000) { stops = true }
        }
        #expect(!stops)
    }

    /// Devices that come again, in any order of times.
    @Test(arguments: 1...5 as ClosedRange<UInt64>) func theCountIsThatOfTheLastMinute(_ seed: UInt64) throws {
        var (random, refusals, now) = (SeededRandom(seed: seed), TokenRefusals(), Int64(1_000_000))
        var (ended, stopped): ([(slot: Int64, lease: Lease?)], Int) = ([], 0)
        for _ in 0..<400 {
            now += Int64.random(in: -200...900, using: &random)
            if Int.random(in: 0..<100, using: &random) == 0 { now -= 15_000 }
            let slot = now / 5_000
            let isRefused = Int.random(in: 0..<3, using: &random) == 0
            let user = Int.random(in: 0..<9, using: &random)
            let lease = try lease("d\(user)-\(Int.random(in: 0..<9, using: &random))", of: "u\(user)")
            let outcome = isRefused ? refused : .delivered(DeliveryResponse(status: 200))
            let stops = refusals.attemptEnded(outcome, of: lease, at: now)
            ended.removeAll { slot - $0.slot >= 12 || $0.slot > slot }
            ended.append((slot, isRefused ? lease : nil))
            let devices = Set(ended.compactMap { $0.lease?.delivery.content.device })
            let count = Dictionary(grouping: devices) { $0.prefix(2) }.values.reduce(0) { $0 + min($1.count, 5) }
            #expect(stops == (isRefused && count >= 20 && count * 5 >= ended.count))
            stopped += stops ? 1 : 0
        }
        #expect(stopped > 0)
    }

    private func lease(_ device: String, of uid: String? = nil) throws -> Lease {
        let content = DeliveryContent(notification: "n", device: device, uid: uid ?? device, text: .init(title: "a"))
        let address = DeviceAddress.apns(
            try APNsDevice(token: String(repeating: "0", count: 64), environment: .sandbox))
        return Lease(
            key: RecordKey(.delivery), attempt: 1, platform: .apns, group: AttemptGroup(host: "apns", uid: "u"),
            hasSucceeded: true, began: 0,
            delivery: Delivery(id: "n-0", address: address, content: content, createdAt: 0))
    }

    @Test func aPhoneThatWasNotRegisteredForSixtyDaysIsRemovedWithWhatWaits() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("old", of: "u1")
        try await outbox.addDevice("hook", of: "u1")
        try await outbox.addPhone("new", of: "u1", seenAt: clock.now)
        let id = try await outbox.send("a")
        try await SilentDevices(outbox: outbox).remove()
        #expect(try await outbox.device("old") == nil)
        #expect(try await outbox.device("new") != nil)
        #expect(try await outbox.device("hook") != nil)
        #expect(try await outbox.states(of: id).count { $0 == .dropped } == 1)
        clock.advance(by: .seconds(60 * 86_400) + .seconds(1))
        try await SilentDevices(outbox: outbox).remove()
        #expect(try await outbox.device("new") == nil)
    }

    @Test func aDeviceThatWasRegisteredAgainIsNotGone() throws {
        var device = DeviceRecord(device: "d", uid: "u", platform: .apns, createdAt: 0)
        device.seenAt = 1_000
        let policy = DeliveryPolicy()
        let gone = { (since: Int64?) in DeliveryOutcome.deviceGone(DeliveryResponse(status: 410), since: since) }
        func verdict(_ outcome: DeliveryOutcome, began: Int64) -> DeviceVerdict {
            var device = device
            return device.attemptEnded(
                outcome, .init(now: 2_000, began: began, environment: nil, isStopped: false), policy)
        }
        #expect(verdict(gone(999), began: 1_500) == .stays)
        #expect(verdict(gone(1_000), began: 1_500) == .ends(.gone))
        #expect(verdict(gone(nil), began: 900) == .stays, "it was registered while the attempt was under way")
        #expect(verdict(gone(nil), began: 1_500) == .ends(.gone))
    }
}
