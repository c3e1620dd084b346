import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Logging
import TestAuth
import Testing

@testable import HatoNotifier

/// Badge sources, notifications that go with their node, and the calls about both.
@Suite(.timeLimit(.minutes(10))) struct ThreadFeedTests {
    private let phone = ScriptedChannel(.apns)
    private let android = ScriptedChannel(.fcm)
    private let hook = ScriptedChannel(.webhook)
    private let browser = ScriptedChannel(.webpush)
    private let message = "/chats/{chat}/messages/{message}"

    private func started(
        messages: FakeMessages? = nil, store: any Store, _ change: (inout NotifierConfiguration) -> Void = { _ in }
    ) async throws -> TestNotifier {
        let notifier = try await TestNotifier.start(
            messages: messages, store: store, channels: [phone, android, hook, browser], change)
        notifier.messages.setNode("/chats/c1/members", ["u1": "admin", "u2": "member"])
        return notifier
    }

    /// Three devices of a user, one of each platform, named after it.
    private func addDevices(of uid: String, to store: any Store) async throws {
        _ = try await store.write { transaction in
            var writes = RecordWrites()
            for platform in [Notifier.Platform.apns, .fcm, .webhook] {
                var device = DeviceRecord(
                    device: "\(platform) \(uid)", uid: uid, platform: platform, createdAt: WallClock.milliseconds())
                switch platform {
                case .apns: (device.token, device.environment) = (String(repeating: "0a", count: 32), .production)
                case .fcm: device.token = "t\(uid)"
                default: (device.url, device.secret) = ("https://example.com/\(uid)", WebhookSecret { 1 }.text)
                }
                writes.put(device.key, device)
                writes.put(device.userKey)
                writes.put(device.addressKey, bytes: Array(device.device.utf8))
            }
            try writes.apply(to: transaction)
        }
    }

    private func setChatTrigger(_ notifier: TestNotifier) async throws {
        var chat = try ShippedTriggers.chat.request()
        chat.category = nil
        _ = try await notifier.client.call(chat)
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
    }

    /// A change of a message, as the feed of the chat trigger sends it.
    private func change(
        _ id: String, _ type: Messages.Change.EntryType, by uid: String? = "u1"
    ) -> Messages.Change.Entry {
        var entry = Messages.Change.Entry(path: "/chats/c1/messages/\(id)", type: type)
        entry.pattern = message
        entry.params = ["chat": "c1", "message": id]
        let node: JSONValue = ["senderName": "マスオ", "text": .string(id)]
        (entry.before, entry.after) = type == .deleted ? (node, .null) : (.null, node)
        entry.uid = uid
        return entry
    }

    private func unread(_ uid: String, _ count: JSONValue, in chat: String = "c1") -> Messages.Change.Entry {
        let type: Messages.Change.EntryType = count.isNull ? .deleted : .updated
        var entry = Messages.Change.Entry(path: "/chats/\(chat)/unread/\(uid)", type: type)
        entry.pattern = "/chats/{thread}/unread/{uid}"
        entry.params = ["thread": chat, "uid": uid]
        (entry.before, entry.after) = (count.isNull ? JSONValue.number(1) : .null, count)
        entry.uid = "u1"
        return entry
    }

    private func badge(_ notifier: TestNotifier, of uid: String = "u2") async throws -> Notifier.Badges.Get.Result {
        try await notifier.call(Notifier.Badges.Get(), as: uid)
    }

    private var channels: [ScriptedChannel] { [phone, android, hook] }

    private func refusal(_ body: () async throws -> Void) async -> RPCError? {
        do {
            try await body()
            return nil
        } catch { return error as? RPCError }
    }

    // MARK: Read elsewhere

    @Test func aThreadThatIsReadOnOneDeviceIsRemovedFromAllThree() async throws {
        let store = try MemoryStore()
        try await addDevices(of: "u2", to: store)
        let notifier = try await started(store: store)
        var send = Notifier.Send(to: .init(uids: ["u2"]), notification: .init(title: "1"))
        send.options = Notifier.DeliveryOptions()
        for (index, thread) in ["c1", "c1", "c2"].enumerated() {
            send.notification = .init(title: "\(index)")
            send.options?.thread = thread
            _ = try await notifier.client.call(send)
            try await eventually("they arrived") { channels.allSatisfy { $0.deliveries.count == index + 1 } }
        }
        #expect(try await badge(notifier) == .init(badge: 3, threads: ["c1": 2, "c2": 1]))
        let read = try await notifier.call(Notifier.Badges.Set(thread: "c1", count: 0), as: "u2")
        #expect(read.badge == 1)
        try await eventually("the silent pushes arrived") { channels.allSatisfy { $0.deliveries.count == 4 } }
        for channel in channels {
            let contents = channel.deliveries.map(\.content)
            #expect(contents.map(\.appearance.badge) == [1, 2, 3, 1])
            let silent = try #require(contents.last)
            #expect(silent.text == .init() && silent.hato.badge == 1 && silent.hato.threads == ["c1"])
            #expect(silent.hato.withdraw == [contents[1].notification, contents[0].notification])
        }
        // The other user reads nothing of it, and the same again changes nothing.
        #expect(try await badge(notifier, of: "u1") == .init(badge: 0, threads: [:]))
        #expect(try await notifier.client.call(Notifier.Badges.Set(thread: "c1", count: 0, uid: "u2")).badge == 1)
        #expect(try await notifier.client.call(Notifier.Badges.Set(count: 0, uid: "u2")).badge == 0)
        try await eventually("the last one") { channels.allSatisfy { $0.deliveries.count == 5 } }
        #expect(channels.map { $0.deliveries.last?.content.hato.threads } == [["c2"], ["c2"], ["c2"]])
        await notifier.stop()
    }

    // MARK: Badge sources

    @Test func theNumbersOfTheTreeAreTheCountsOfThreads() async throws {
        let store = try MemoryStore()
        try await addDevices(of: "u2", to: store)
        let notifier = try await started(store: store)
        try await setChatTrigger(notifier)
        notifier.messages.commit { _ in [change("m1", .created), unread("u2", 4)] }
        try await eventually("it arrived") { channels.allSatisfy { $0.deliveries.count == 1 } }
        // The notification itself is not counted.
        #expect(phone.deliveries.first?.content.appearance.badge == 4)
        #expect(try await badge(notifier) == .init(badge: 4, threads: ["c1": 4]))
        let cases: [(JSONValue, Int)] = [
            (2.5, 2), ([".value": 7, ".priority": 1], 7), (200_000, 99_999), (1e300, 99_999),
        ]
        for (value, count) in cases {
            notifier.messages.commit { _ in [unread("u2", value, in: "c2")] }
            try await eventually("\(value)") { try await badge(notifier).threads["c2"] == count }
        }
        for value in [-1, "3", true, .null, ["a": 1]] as [JSONValue] {
            notifier.messages.commit { _ in [unread("u2", 5, in: "c2")] }
            try await eventually("it rises") { try await badge(notifier).threads["c2"] == 5 }
            notifier.messages.commit { _ in [unread("u2", value, in: "c2")] }
            try await eventually("\(value)") { try await badge(notifier).threads["c2"] == nil }
        }
        notifier.messages.commit { _ in [unread("u2", 0)] }
        try await eventually("withdrawn on all three") {
            channels.allSatisfy { $0.deliveries.contains { !($0.content.hato.withdraw ?? []).isEmpty } }
        }
        for channel in channels {
            let silent = channel.deliveries.last { $0.content.hato.withdraw?.isEmpty == false }?.content
            #expect(silent?.hato.withdraw == [channel.deliveries[0].content.notification])
            #expect(silent?.hato.badge == 0 && silent?.hato.threads?.contains("c1") == true)
        }
        await notifier.stop()
    }

    // MARK: Deletion

    @Test func aDeletedMessageIsWithdrawnAlsoByItsAuthorAndAfterARestart() async throws {
        let (store, messages) = (try MemoryStore(), try await FakeMessages.start())
        try await addDevices(of: "u2", to: store)
        let first = try await started(messages: messages, store: StayingOpen(store))
        try await setChatTrigger(first)
        messages.commit { _ in [change("m1", .created), change("m2", .created)] }
        try await eventually("they arrived") { channels.allSatisfy { $0.deliveries.count == 2 } }
        await first.stop(keepingMessages: true)
        let id = try #require(phone.deliveries.first { $0.content.text.body == "m1" }?.content.notification)
        messages.commit { _ in [change("m1", .deleted)] }
        let second = try await started(messages: messages, store: StayingOpen(store))
        try await eventually("it is withdrawn") { channels.allSatisfy { $0.deliveries.count == 3 } }
        for channel in channels {
            #expect(channel.deliveries.last?.content.hato.withdraw == [id])
            // The other message of the thread stays.
            #expect(channel.deliveries.last?.content.hato.threads == nil)
        }
        await second.stop()
    }

    /// A chat that is open elsewhere.
    @Test func aMessageThatIsReadBeforeItIsAcceptedIsNotSent() async throws {
        let store = try MemoryStore()
        try await addDevices(of: "u2", to: store)
        let notifier = try await started(store: store)
        try await setChatTrigger(notifier)
        let gate = Gate()
        notifier.messages.holdReads(of: "/chats/c1/members", until: gate)
        notifier.messages.commit { _ in [change("m1", .created), unread("u2", 1)] }
        try await eventually("it is being handled") { notifier.messages.begunReads.contains("/chats/c1/members") }
        let version = notifier.messages.commit { _ in [unread("u2", 0)] }
        try await eventually("it was read") {
            try store.snapshot().record(CursorRecord.self, CursorRecord.key("default"))?.version == version
        }
        notifier.messages.commit { _ in [change("m2", .created), unread("u2", 1)] }
        gate.open()
        try await eventually("the other arrived") {
            channels.allSatisfy { $0.deliveries.contains { $0.content.text.body == "m2" } }
        }
        #expect(!channels.contains { $0.deliveries.contains { $0.content.text.body == "m1" } })
        await notifier.stop()
    }

    @Test func aMessageThatIsDeletedBeforeItIsAcceptedIsNotSent() async throws {
        let store = try MemoryStore()
        try await addDevices(of: "u2", to: store)
        let notifier = try await started(store: store)
        try await setChatTrigger(notifier)
        let gate = Gate()
        notifier.messages.holdReads(of: "/chats/c1/members", until: gate)
        notifier.messages.commit { _ in [change("m1", .created)] }
        try await eventually("it is being handled") { notifier.messages.begunReads.contains("/chats/c1/members") }
        // Another user deletes it.
        let version = notifier.messages.commit { _ in [change("m1", .deleted, by: "u3")] }
        try await eventually("it was read") {
            try store.snapshot().record(CursorRecord.self, CursorRecord.key("default"))?.version == version
        }
        notifier.messages.commit { _ in [change("m2", .created)] }
        gate.open()
        try await eventually("the other arrived") { channels.allSatisfy { !$0.deliveries.isEmpty } }
        #expect(channels.flatMap { $0.deliveries.map(\.content.text.body) } == ["m2", "m2", "m2"])
        // Written again, it is another message.
        notifier.messages.commit { _ in [change("m1", .created)] }
        try await eventually("it arrived") { channels.allSatisfy { $0.deliveries.count == 2 } }
        await notifier.stop()
    }

    /// The number of the tree stays, and would come with the push that is not sent.
    @Test func aMessageThatIsDeletedBeforeItIsAcceptedLeavesTheNumberOfTheTree() async throws {
        let store = try MemoryStore()
        try await addDevices(of: "u2", to: store)
        let notifier = try await started(store: store)
        try await setChatTrigger(notifier)
        let gate = Gate()
        notifier.messages.holdReads(of: "/chats/c1/members", until: gate)
        notifier.messages.commit { _ in [change("m1", .created), unread("u2", 3)] }
        try await eventually("it is being handled") { notifier.messages.begunReads.contains("/chats/c1/members") }
        let version = notifier.messages.commit { _ in [change("m1", .deleted)] }
        try await eventually("it was read") {
            try store.snapshot().record(CursorRecord.self, CursorRecord.key("default"))?.version == version
        }
        gate.open()
        try await eventually("the badge arrived") { channels.allSatisfy { !$0.deliveries.isEmpty } }
        for channel in channels { #expect(channel.deliveries.map(\.content.hato.badge) == [3]) }
        #expect(!channels.contains { $0.deliveries.contains { $0.content.text.body != nil } })
        await notifier.stop()
    }

    /// The push that would have brought the number waits when its message is taken back.
    @Test func aWithdrawnMessageLeavesTheNumberOfTheTree() async throws {
        let outbox = try await Outbox.test(MemoryStore(), TestClock())
        try await outbox.addDevice("d1", of: "u1")
        try await outbox.change { try ThreadSteps.setCount(1, of: UserThread(uid: "u1", thread: "c1"), in: &$0) }
        var new = outbox.notification("1")
        (new.isCounted, new.options) = (false, Notifier.DeliveryOptions())
        new.options?.thread = "c1"
        let id = try #require(try await outbox.accept(new).notification)
        let withdrawals = Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        _ = try await withdrawals.withdraw(.notification(id)) { _ = try ThreadSteps.beginWithdrawal(of: id, in: &$0) }
        #expect(try await outbox.states(of: id) == [.dropped])
        #expect(try await outbox.lease(limit: 10).leases.map(\.delivery.content.hato.badge) == [1])
    }

    /// A deletion between two parts of the recipients leaves none of them with it.
    @Test func aDeletionBetweenPartsReachesAllRecipients() async throws {
        let clock = TestClock()
        let outbox = try await Outbox.test(MemoryStore(), clock)
        var recipients: [Recipient] = []
        for uid in ["u1", "u2", "u3"] { recipients.append(Recipient(try await outbox.addDevice("d-\(uid)", of: uid))) }
        let rows = ChangeRows(outbox: outbox, database: try DatabaseName("default"))
        let begin = CursorRecord(version: 0, epoch: "e")
        try await outbox.change { $0.writes.put(CursorRecord.key("default"), begin) }
        let entry = FeedChange(
            pattern: message, parameters: [:], path: "/chats/c1/messages/m1", type: .created, before: nil, after: "a",
            uid: "u9")
        var cursor = CursorRecord(version: 1, epoch: "e")
        let record = ChangeRecord(change: entry, version: 1, epoch: "e", time: 0)
        let kept = try await rows.keep([record], moving: CursorMove(from: begin, to: cursor)) { _ in [] }
        func part(_ range: Range<Int>, isLast: Bool) -> NewNotification {
            var new = outbox.notification("a", key: "firing")
            new.recipients = .part(
                RecipientPart(recipients: Array(recipients[range]), total: 3, leftOut: 0, isLast: isLast))
            new.options = Notifier.DeliveryOptions()
            new.options?.thread = "c1"
            (new.trigger, new.path) = ("t", entry.path)
            (new.isWithdrawable, new.position) = (true, ChangePosition(sequence: kept.sequence, index: 0))
            return new
        }
        let first = try await rows.accept([part(0..<1, isLast: false)], of: [])
        let from = cursor
        cursor.version = 2
        let deletion = ThreadChange.Placed(change: .deleted(path: entry.path, trigger: "t"), index: 0)
        _ = try await rows.keep([], [deletion], moving: CursorMove(from: from, to: cursor)) { _ in [] }
        _ = try await rows.accept([part(1..<3, isLast: true)], of: [])
        let withdrawals = Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let task = Task { await withdrawals.run() }
        let id = try #require(first.notifications.first?.notification)
        try await eventually("all are dropped") {
            try await outbox.states(of: id) == [.dropped, .dropped, .dropped]
        }
        task.cancel()
        await task.value
        for uid in ["u1", "u2", "u3"] {
            #expect(try outbox.store.snapshot().record(BadgeRecord.self, BadgeRecord.key(uid)) == nil)
        }
        for lease in try await outbox.lease(limit: 10).leases {
            #expect(lease.delivery.content.hato.badge == 0)
            try await outbox.record(.delivered(DeliveryResponse(status: 200)), of: lease)
        }
        // It is forgotten with the notification.
        clock.advance(by: .seconds(30 * 86_400))
        _ = try await outbox.purge()
        #expect(try outbox.store.snapshot().count(.origin) == 0 && outbox.store.snapshot().count(.purge) == 0)
    }

    @Test func aDeletionOfWhichNoNotificationComesLeavesNothing() async throws {
        let clock = TestClock()
        let outbox = try await Outbox.test(MemoryStore(), clock)
        let key = OriginRecord.key("t", "/a/1")
        let deletion = ThreadChange.Placed(change: .deleted(path: "/a/1", trigger: "t"), index: 0)
        try await outbox.change { try ThreadSteps.apply(deletion, isBehind: false, in: &$0) }
        #expect(try !outbox.store.snapshot().contains(key))
        try await outbox.change { try ThreadSteps.apply(deletion, isBehind: true, in: &$0) }
        #expect(try outbox.store.snapshot().contains(key))
        clock.advance(by: .seconds(30 * 86_400))
        _ = try await outbox.purge()
        #expect(try !outbox.store.snapshot().contains(key) && outbox.store.snapshot().count(.purge) == 0)
    }

    // MARK: Calls

    @Test func wrongCallsAreRefusedByName() async throws {
        let notifier = try await started(store: try MemoryStore())
        func refused<Request: RPCRequest>(_ request: Request, as uid: String? = nil) async -> [String?] {
            let error = await refusal {
                if let uid {
                    _ = try await notifier.call(request, as: uid)
                } else {
                    _ = try await notifier.client.call(request)
                }
            }
            return [error?.reason ?? error.map { "\($0.code)" }, error?.data["parameter"]?.string]
        }
        #expect(await refused(Notifier.Badges.Set(count: 1), as: "u1") == ["invalid_count", "count"])
        #expect(await refused(Notifier.Badges.Set(thread: "c1", count: -1), as: "u1") == ["invalid_count", "count"])
        #expect(
            await refused(Notifier.Badges.Set(thread: "c1", count: 100_000), as: "u1") == ["invalid_count", "count"])
        #expect(await refused(Notifier.Badges.Set(thread: "", count: 0), as: "u1") == ["invalid_key", "thread"])
        #expect(await refused(Notifier.Badges.Set(thread: "a\u{1}", count: 0), as: "u1") == ["invalid_key", "thread"])
        #expect(await refused(Notifier.Badges.Get(uid: ""))[0] == "invalid_key")
        #expect(await refused(Notifier.Badges.Get())[1] == "uid")
        #expect(await refused(Notifier.Badges.Get(uid: "u2"), as: "u1")[0] != nil)
        #expect(await refused(Notifier.Withdraw(notification: "ntf_1"))[0] == "notification_not_found")
        #expect(await refused(Notifier.Withdraw(uid: "u1", thread: ""))[0] == "invalid_key")
        var both = Notifier.Withdraw(notification: "ntf_1")
        both.uid = "u1"
        #expect(await refused(both) == ["invalid_choice", "notification"])
        #expect(await refused(Notifier.Withdraw(notification: "ntf_1"), as: "u1")[0] != nil)
        var trigger = try ShippedTriggers.chat.request()
        trigger.badge = .init(pattern: "/chats/{thread}/unread")
        #expect(await refused(trigger) == ["invalid_pattern", "badge.pattern"])
        trigger.badge = .init(pattern: "/unread/{uid}")
        #expect(await refused(trigger) == ["invalid_pattern", "badge.pattern"])
        (trigger.badge, trigger.withdrawOn) = (nil, [])
        #expect(await refused(trigger) == ["invalid_trigger", "withdrawOn"])
        var send = Notifier.Send(to: .init(uids: ["u1"]), notification: .init(title: "t"))
        send.data = ["hato": "x"]
        #expect(await refused(send) == ["invalid_data", "data"])
        await notifier.stop()
    }

    @Test func withdrawingReturnsWhatItDidAndFollowersGetAnEvent() async throws {
        let store = try MemoryStore()
        try await addDevices(of: "u2", to: store)
        let notifier = try await started(store: store)
        var send = Notifier.Send(to: .init(uids: ["u2"]), notification: .init(title: "1"))
        send.options = Notifier.DeliveryOptions()
        send.options?.thread = "c1"
        let events = try await notifier.client.subscribe(Notifier.Follow())
        let id = try #require(try await notifier.client.call(send).notification)
        try await eventually("it arrived") { channels.allSatisfy { $0.deliveries.count == 1 } }
        let withdrawn = try await notifier.client.call(Notifier.Withdraw(notification: id))
        #expect(withdrawn == .init(dropped: 0, devices: 3))
        #expect(try await notifier.client.call(Notifier.Withdraw(notification: id)) == .init(dropped: 0, devices: 0))
        for try await event in events {
            guard event.params["notification"]?.string == id, event.params["type"] == "withdrawn" else { continue }
            #expect(event.params["uid"] == "u2")
            break
        }
        _ = try await notifier.client.call(send)
        try await eventually("the second arrived") { channels.allSatisfy { $0.titles.count == 2 } }
        let thread = try await notifier.client.call(Notifier.Withdraw(uid: "u2", thread: "c1"))
        #expect(thread == .init(dropped: 0, devices: 3))
        #expect(try await badge(notifier) == .init(badge: 0, threads: [:]))
        #expect(
            try await notifier.client.call(Notifier.Withdraw(uid: "u2", thread: "c1")) == .init(dropped: 0, devices: 0))
        let silent = try #require(phone.deliveries.first { $0.content.hato.withdraw == [id] }?.content.notification)
        // What withdraws cannot be withdrawn.
        let error = await refusal { _ = try await notifier.client.call(Notifier.Withdraw(notification: silent)) }
        #expect(error?.reason == "notification_not_found")
        await notifier.stop()
    }

    @Test func countsGoWithTheirUser() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        let notifier = try await started(store: store) { configuration in
            configuration.auth = RPCClientConfiguration(host: "127.0.0.1", port: auth.port)
            configuration.authKey = FakeAuth.key
        }
        for uid in ["u1", "u2"] {
            _ = try await notifier.client.call(Notifier.Badges.Set(thread: "c1", count: 3, uid: uid))
        }
        try await auth.write(FakeEvent(.deleted, "u1"))
        try await eventually("they are gone") { try store.snapshot().count(.badge) == 2 }
        #expect(try await badge(notifier).badge == 3)
        #expect(try await badge(notifier, of: "u1").badge == 0)
        await notifier.stop()
        await auth.stop()
    }
}
