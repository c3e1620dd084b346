import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

/// Notifications to many devices and to topics: a job beside the notification, and deliveries page by page.
@Suite(.timeLimit(.minutes(10))) struct FanOutPageTests {
    private let clock = TestClock()

    private func outbox(
        _ store: any Store, atOnce: Int = 100, _ change: (inout NotifierConfiguration) -> Void = { _ in }
    ) async throws -> Outbox {
        try await Outbox.test(store, clock) { configuration in
            configuration.limits.deliveriesAtOnceMax = atOnce
            change(&configuration)
        }
    }

    private static func uid(_ number: Int) -> String {
        "u" + String(repeating: "0", count: 5 - String(number).count) + String(number)
    }

    /// Users with devices, that are subscribed.
    private func subscribe(
        _ users: Range<Int>, to topic: String, devices: Int = 1, _ outbox: Outbox
    ) async throws {
        try await outbox.change { draft in
            for number in users {
                let uid = Self.uid(number)
                for index in 0..<devices {
                    var device = DeviceRecord(device: "d\(index)-\(uid)", uid: uid, platform: .webhook, createdAt: 0)
                    (device.url, device.secret) = ("https://example.com/\(device.device)", WebhookSecret { 1 }.text)
                    draft.writes.put(device.key, device)
                    draft.writes.put(device.userKey)
                }
                draft.writes.put(TopicRecord.userKey(uid, topic))
                draft.writes.put(TopicRecord.subscriberKey(topic, uid))
            }
            draft.writes.put(TopicRecord.key(topic), TopicRecord(users: users.count))
        }
    }

    private func change(
        _ outbox: Outbox, _ body: @escaping @Sendable (inout TopicChanges, any StoreTransaction) throws -> Void
    ) async throws {
        _ = try await outbox.store.write { transaction in
            var changes = TopicChanges()
            try body(&changes, transaction)
            try changes.writes.apply(to: transaction)
        }
    }

    private func accept(
        _ recipients: NewNotification.Recipients, key: String? = nil, _ outbox: Outbox
    ) async throws -> AcceptedNotification {
        var new = outbox.notification("text", key: key)
        new.recipients = recipients
        return try await outbox.accept(new)
    }

    private func turnAll(_ outbox: Outbox) async throws {
        var last: RecordKey?
        while let job = try await FanOutPages(outbox).turn(after: last) { last = job }
    }

    private func devices(_ outbox: Outbox, _ id: String) async throws -> [String] {
        try await outbox.status(of: id)?.deliveries.map(\.device) ?? []
    }

    @Test(arguments: [false, true]) func whatComesInPagesIsPacedAndAsUsersWantIt(byTopic: Bool) async throws {
        let outbox = try await outbox(MemoryStore(), atOnce: 2) { $0.limits.deviceBurstMax = 1 }
        try await subscribe(0..<3, to: "news", devices: 0, outbox)
        for number in 0..<3 { try await outbox.addPhone("p\(number)", of: Self.uid(number)) }
        try await PreferenceRows(uid: Self.uid(0), mutesMax: 1).mute("c1", until: nil, in: outbox)
        let always = Notifier.QuietWindow(
            days: Notifier.Weekday.allCases, from: try Notifier.WallTime("00:00"), to: try Notifier.WallTime("00:00"),
            mode: .hold)
        var request = Notifier.Preferences.Set()
        request.quiet = .value([always])
        try await outbox.change { [request] draft in
            _ = try PreferenceRows(uid: Self.uid(1), mutesMax: 1).replace(by: request, in: &draft)
        }
        for title in ["a", "b", "c"] {
            var new = outbox.notification(title)
            new.recipients = byTopic ? .topic("news") : .uids((0..<3).map(Self.uid))
            new.options = Notifier.DeliveryOptions()
            new.options?.thread = "c1"
            #expect(try await outbox.accept(new).isFannedOut)
            // Ids of one millisecond have no order.
            clock.advance(by: .milliseconds(1))
        }
        try await turnAll(outbox)
        let first = try await outbox.deliverAll().map(\.delivery.content)
        #expect(first.map(\.uid) == [Self.uid(2)] && first.first?.text.title == "a")
        let states = try await outbox.store.read { rows in
            try rows.rows(RecordKey(.delivery)).compactMap { row in
                try rows.readable(DeliveryRecord.self, row.key)
            }
        }
        #expect(states.filter { $0.uid == Self.uid(0) }.map(\.machine.reason) == ["muted", "muted", "muted"])
        #expect(states.contains { $0.uid == Self.uid(1) && $0.machine.hold == .quiet })
        clock.advance(by: .seconds(3))
        let next = try await outbox.deliverAll().map(\.delivery.content)
        #expect(next.map(\.uid) == [Self.uid(2)] && next.first?.text.title == "c")
        #expect(next.first?.text.body?.hasPrefix("2 new messages") == true)
    }

    @Test func aTopicIsDeliveredInPagesAlsoWhenTheProcessEndsBetweenThem() async throws {
        let store = try MemoryStore()
        var outbox = try await outbox(store)
        try await subscribe(0..<5_000, to: "news", outbox)
        let before = store.version
        let accepted = try await accept(.topic("news"), outbox)
        let id = try #require(accepted.notification)
        #expect(accepted.recipients == 5_000 && accepted.isFannedOut)
        #expect(outbox.pending == 0 && outbox.fanOuts.waiting == 1 && store.version == before + 1)
        var (last, turns): (RecordKey?, Int) = (nil, 0)
        while let job = try await FanOutPages(outbox).turn(after: last) {
            (last, turns) = (job, turns + 1)
            if turns < 50 {
                #expect(outbox.pending == turns * 100)
                let fanOut = Notifier.FanOut(done: turns * 100, total: 5_000, deliveries: turns * 100)
                #expect(try await outbox.status(of: id)?.fanOut == fanOut)
            }
            if turns == 10 {
                // Behind the position nothing changes any more; before it, all counts.
                try await change(outbox) { changes, rows in
                    try changes.removeAll(of: [Self.uid(5), Self.uid(4_000), Self.uid(4_999)], in: rows)
                    _ = try changes.subscribe("u00000-late", to: "news", topicsMax: 9, in: rows)
                }
                try await outbox.addDevice("late", of: "u99999")
                try await change(outbox) { _ = try $0.subscribe("u99999", to: "news", topicsMax: 9, in: $1) }
            }
            // The process ends, and another one opens the store.
            if turns.isMultiple(of: 7) { (outbox, last) = (try await self.outbox(store), nil) }
        }
        let devices = try await devices(outbox, id)
        #expect(devices.count == 4_999 && Set(devices).count == 4_999)
        #expect(devices.contains("late") && devices.contains("d0-u00005"))
        #expect(!devices.contains("d0-u04000") && !devices.contains("d0-u04999"))
        #expect(outbox.fanOuts.waiting == 0 && outbox.pending == 4_999)
        #expect(try await outbox.status(of: id)?.fanOut == nil)
    }

    @Test func tenThousandDevicesOfUsersAreOneSmallTransaction() async throws {
        let store = try MemoryStore()
        let outbox = try await outbox(store, atOnce: 1_000)
        try await subscribe(0..<1_000, to: "news", devices: 10, outbox)
        func rowCount() async throws -> Int { try await store.read { try $0.rows(RecordKey(bytes: [])).count } }
        let before = try await rowCount()
        let uids = (0..<1_000).map(Self.uid)
        let accepted = try await accept(.uids(uids + uids), key: "k", outbox)
        #expect(accepted.isFannedOut && accepted.recipients == 1_000)
        // The notification, when to forget it, its key, the job, and that it needs the texts.
        #expect(try await rowCount() == before + 5)
        let again = try await accept(.uids(uids + uids), key: "k", outbox)
        #expect(again.isRepetition && again.isFannedOut && again.notification == accepted.notification)
        try await turnAll(outbox)
        let devices = try await devices(outbox, try #require(accepted.notification))
        #expect(devices.count == 10_000 && Set(devices).count == 10_000)
        let last = try await accept(.uids(uids + uids), key: "k", outbox)
        #expect(last.isRepetition && last.isFannedOut && last.recipients == 1_000 && outbox.fanOuts.waiting == 0)
    }

    @Test func whatIsNotTooManyIsMadeAtOnce() async throws {
        let outbox = try await outbox(MemoryStore(), atOnce: 3)
        for name in ["a", "b", "c", "d"] { try await outbox.addDevice(name, of: "u-\(name)") }
        let three = try await accept(.uids(["u-a", "u-b", "u-c"]), outbox)
        #expect(!three.isFannedOut && three.recipients == 3 && outbox.pending == 3)
        let four = try await accept(.uids(["u-a", "u-b", "u-c", "u-d"]), outbox)
        #expect(four.isFannedOut && four.recipients == 4 && outbox.pending == 3)
        try await turnAll(outbox)
        #expect(outbox.pending == 7)
    }

    /// The caller knows deliveries by the places of their devices in its list.
    @Test func namedDevicesHaveTheNumbersOfTheirPlaces() async throws {
        let outbox = try await outbox(MemoryStore(), atOnce: 2)
        let names = ["e", "a", "d", "b", "c"]
        for name in names { try await outbox.addDevice(name, of: "u") }
        let accepted = try await accept(.devices(names), outbox)
        #expect(accepted.isFannedOut && accepted.recipients == 5)
        try await outbox.change { $0.writes.delete(DeviceRecord.key("d")) }
        try await turnAll(outbox)
        let id = try #require(accepted.notification)
        let deliveries = try await outbox.status(of: id)?.deliveries
        #expect(deliveries?.map(\.device) == ["e", "a", "b", "c"])
        #expect(deliveries?.map(\.delivery) == ["\(id)-0", "\(id)-1", "\(id)-3", "\(id)-4"])
    }

    @Test func jobsTakeTurns() async throws {
        let outbox = try await outbox(MemoryStore())
        try await subscribe(0..<1_000, to: "large", outbox)
        try await subscribe(2_000..<2_003, to: "small", outbox)
        let large = try #require(try await accept(.topic("large"), outbox).notification)
        clock.advance(by: .milliseconds(1))
        let small = try #require(try await accept(.topic("small"), outbox).notification)
        let first = try await FanOutPages(outbox).turn(after: nil)
        _ = try await FanOutPages(outbox).turn(after: first)
        #expect(try await devices(outbox, small).count == 3)
        #expect(try await devices(outbox, large).count == 100)
        clock.advance(by: .milliseconds(1))
        // What comes meanwhile is not behind all of it either.
        let late = try #require(try await accept(.topic("small"), outbox).notification)
        let next = try await FanOutPages(outbox).turn(after: FanOutRecord.key(small))
        #expect(next == FanOutRecord.key(late))
        try await turnAll(outbox)
        #expect(try await devices(outbox, large).count == 1_000)
    }

    @Test func usersWithoutDevicesFillNoPage() async throws {
        let outbox = try await outbox(MemoryStore())
        try await subscribe(0..<900, to: "t", devices: 0, outbox)
        try await subscribe(900..<901, to: "t", devices: 2, outbox)
        let id = try #require(try await accept(.topic("t"), outbox).notification)
        var (last, turns): (RecordKey?, Int) = (nil, 0)
        while let job = try await FanOutPages(outbox).turn(after: last) { (last, turns) = (job, turns + 1) }
        #expect(turns == 5)
        #expect(try await devices(outbox, id) == ["d0-u00900", "d1-u00900"])
    }

    @Test func aJobEndsWhenItsNotificationHasExpired() async throws {
        let store = try MemoryStore()
        let outbox = try await outbox(store)
        try await subscribe(0..<300, to: "t", outbox)
        let id = try #require(try await accept(.topic("t"), outbox).notification)
        let first = try await FanOutPages(outbox).turn(after: nil)
        clock.advance(by: .seconds(86_400))
        _ = try await FanOutPages(outbox).turn(after: first)
        #expect(try await FanOutPages(outbox).turn(after: nil) == nil)
        #expect(try await devices(outbox, id).count == 100 && outbox.fanOuts.waiting == 0)
        #expect(try await outbox.lease(limit: 200).leases.isEmpty && outbox.pending == 0)
        // Nothing needs its text.
        #expect(try await outbox.status(of: id)?.title == nil)
    }

    @Test func noMoreWaitThanMay() async throws {
        let outbox = try await outbox(MemoryStore()) { $0.limits.pendingMax = 150 }
        try await subscribe(0..<500, to: "t", outbox)
        let id = try #require(try await accept(.topic("t"), outbox).notification)
        try await turnAll(outbox)
        #expect(outbox.pending == 150 && outbox.waiting.total == 150)
        let reasons = try await outbox.status(of: id)?.deliveries.map(\.reason)
        #expect(reasons?.count == 500 && reasons?.count { $0 == "outbox_full" } == 350)
    }

    @Test func furtherJobsAreRefusedWhenTooManyWait() async throws {
        let outbox = try await outbox(MemoryStore()) { $0.limits.fanOutsMax = 2 }
        try await subscribe(0..<1, to: "t", outbox)
        for _ in 0..<2 { _ = try await accept(.topic("t"), outbox) }
        await #expect(throws: OutboxRefusal.tooManyFanOuts(2)) { try await accept(.topic("t"), outbox) }
        try await turnAll(outbox)
        #expect(try await accept(.topic("t"), outbox).recipients == 1)
    }

    @Test func aJobThatCannotBeReadDelaysNoOther() async throws {
        let outbox = try await outbox(MemoryStore())
        try await subscribe(0..<3, to: "t", outbox)
        try await outbox.change { $0.writes.put(FanOutRecord.key("ntf_"), bytes: [1]) }
        let id = try #require(try await accept(.topic("t"), outbox).notification)
        try await turnAll(outbox)
        #expect(try await devices(outbox, id).count == 3 && outbox.unreadableCount == 1)
    }

    @Test func aJobWithoutItsNotificationEnds() async throws {
        let outbox = try await outbox(MemoryStore())
        try await subscribe(0..<3, to: "t", outbox)
        let id = try #require(try await accept(.topic("t"), outbox).notification)
        try await outbox.change { $0.writes.put(NotificationRecord.key(id), bytes: [1]) }
        try await turnAll(outbox)
        #expect(outbox.pending == 0 && outbox.fanOuts.waiting == 0 && outbox.unreadableCount == 1)
    }

    // MARK: Forgetting

    @Test func manyDeliveriesArePurgedPageByPage() async throws {
        let store = try MemoryStore()
        let outbox = try await outbox(store)
        try await subscribe(0..<450, to: "t", outbox)
        func rowCount() async throws -> Int { try await store.read { try $0.rows(RecordKey(bytes: [])).count } }
        let before = try await rowCount()
        let id = try #require(try await accept(.topic("t"), key: "k", outbox).notification)
        try await turnAll(outbox)
        while true {
            let leases = try await outbox.lease(limit: 500).leases
            guard !leases.isEmpty else { break }
            for (index, lease) in leases.enumerated() {
                let isLast = outbox.pending == 1 && index == leases.count - 1
                try await outbox.record(isLast ? ScriptedChannel.wrong : Self.delivered, of: lease)
            }
        }
        #expect(outbox.pending == 0 && outbox.deadCount == 1)
        clock.advance(by: .seconds(9 * 86_400))
        let version = store.version
        _ = try await outbox.purge()
        #expect(store.version >= version + 5)
        // The dead one stays, and can be replayed.
        let kept = try await outbox.status(of: id)
        #expect(kept?.deliveries.map(\.state) == [.dead] && kept?.title == "text")
        clock.advance(by: .seconds(22 * 86_400))
        _ = try await outbox.purge()
        #expect(try await outbox.status(of: id) == nil && outbox.deadCount == 0)
        #expect(try await rowCount() == before)
    }

    private static let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 200))

    @Test func whatWasDroppedEarlyIsKeptWhileTheJobGoesOn() async throws {
        let outbox = try await outbox(MemoryStore()) { $0.limits.pendingMax = 100 }
        try await subscribe(0..<400, to: "t", outbox)
        let id = try #require(try await accept(.topic("t"), outbox).notification)
        for _ in 0..<8 { _ = try await FanOutPages(outbox).turn(after: nil) }
        clock.advance(by: .seconds(7_201))
        _ = try await outbox.purge()
        #expect(try await devices(outbox, id).count == 200)
        try await turnAll(outbox)
        #expect(try await devices(outbox, id).count == 400 && outbox.pending == 100)
        #expect(try await outbox.lease(limit: 1).leases.first?.delivery.content.text.title == "text")
    }

    // MARK: Over the wire

    @Test func aTopicReachesItsUsersAndStatusHasPages() async throws {
        let channel = ScriptedChannel()
        let notifier = try await TestNotifier.start(channels: [channel]) { $0.limits.deliveriesAtOnceMax = 2 }
        for uid in ["u1", "u2", "u3", "u4"] {
            try await notifier.addDevice(of: uid, at: "https://example.com/\(uid)")
            if uid != "u4" { _ = try await notifier.call(Notifier.Topics.Subscribe(topic: "news"), as: uid) }
        }
        var send = Notifier.Send(to: .init(topic: "news"), notification: .init(title: "hello"))
        send.dryRun = true
        let dry = try await notifier.client.call(send)
        #expect(dry.notification == nil && dry.recipients == 3 && dry.fanOut == true)
        send.dryRun = nil
        let sent = try await notifier.client.call(send)
        #expect(sent.recipients == 3 && sent.fanOut == true)
        try await eventually("all have it") { channel.deliveries.count == 3 }
        #expect(Set(channel.deliveries.map(\.content.uid)) == ["u1", "u2", "u3"])
        var status = Notifier.Status(notification: try #require(sent.notification))
        try await eventually("it has ended") { try await notifier.stats.pending == 0 }
        status.limit = 2
        let page = try await notifier.client.call(status)
        #expect(page.deliveries.map(\.uid) == ["u1", "u2"] && page.title == nil && page.fanOut == nil)
        status.after = page.after
        let rest = try await notifier.client.call(status)
        #expect(rest.deliveries.map(\.uid) == ["u3"] && rest.after == nil)
        status.after = "ntf_other-1"
        await #expect(throws: RPCError.self) { try await notifier.client.call(status) }
        await notifier.stop()
    }

    @Test func severalKindsOfRecipientsAreRefused() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel()])
        var target = Notifier.SendTarget(topic: "news")
        target.uids = ["u1"]
        for target in [target, Notifier.SendTarget(topic: "")] {
            do {
                _ = try await notifier.client.call(Notifier.Send(to: target, notification: .init(title: "x")))
                Issue.record("it was accepted")
            } catch let error as RPCError {
                #expect(error.reason == (target.topic == "" ? "invalid_key" : "invalid_recipients"))
            }
        }
        await notifier.stop()
    }
}
