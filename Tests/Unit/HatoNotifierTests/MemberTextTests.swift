import HatoModel
import HatoPush
import HatoStorage
import Logging
import Testing

@testable import HatoNotifier

/// Notifications whose text stands with one platform alone: each device shows what the members of its own say.
@Suite(.timeLimit(.minutes(10))) struct MemberTextTests {
    private let clock = TestClock()
    private static let alert: JSONValue = ["aps": ["alert": ["loc-key": "NEW"]]]

    /// With a phone, a webhook, a mailbox and a browser of `u1`, and a browser of `u2`.
    private func outbox() async throws -> Outbox {
        let outbox = try await Outbox.test(MemoryStore(), clock) { $0.replyKey = ReplyKey([1]) }
        try await outbox.addPhone("phone", of: "u1")
        try await outbox.addDevice("hook", of: "u1")
        try await outbox.addMailbox("mailbox", of: "u1")
        for uid in ["u1", "u2"] {
            var new = DeviceRecord(device: "browser-\(uid)", uid: uid, platform: .webpush, createdAt: 0)
            let keys = Notifier.Devices.Register.subscriptionKeys
            (new.url, new.p256dh, new.auth) = ("https://push.example.com/\(uid)", keys.p256dh, keys.auth)
            let browser = new
            try await outbox.change { draft in
                draft.writes.put(browser.key, browser)
                draft.writes.put(browser.userKey)
            }
        }
        return outbox
    }

    private func send(
        _ outbox: Outbox, to uids: [String] = ["u1"], _ change: (inout Notifier.PlatformMembers) -> Void
    ) async throws -> String {
        // Ids of one millisecond have no order.
        clock.advance(by: .milliseconds(1))
        var new = outbox.notification("", to: uids)
        (new.text, new.options, new.platforms) = (.init(), .init(), .init())
        new.options?.thread = "c1"
        if var members = new.platforms {
            change(&members)
            new.platforms = members
        }
        return try #require(try await outbox.accept(new).notification)
    }

    /// What goes now, by device.
    private func sent(_ outbox: Outbox) async throws -> [String: DeliveryContent] {
        let contents = try await outbox.deliverAll().map(\.delivery.content)
        return Dictionary(contents.map { ($0.device, $0) }) { first, _ in first }
    }

    private func count(_ outbox: Outbox, of uid: String) throws -> Int {
        try outbox.store.snapshot().record(BadgeRecord.self, BadgeRecord.key(uid))?.total ?? 0
    }

    private func reasons(_ id: String, _ outbox: Outbox) async throws -> [String: String] {
        let deliveries = try #require(try await outbox.status(of: id)).deliveries
        return Dictionary(deliveries.compactMap { delivery in delivery.reason.map { (delivery.device, $0) } }) { $1 }
    }

    @Test func browsersAndMailboxesGetNoPushThatShowsNothing() async throws {
        let outbox = try await outbox()
        let id = try await send(outbox, to: ["u1", "u2"]) { $0.apns = Self.alert }
        #expect(try await reasons(id, outbox) == ["browser-u1": "silent", "browser-u2": "silent", "mailbox": "silent"])
        #expect(Set(try await sent(outbox).keys) == ["phone", "hook"])
    }

    @Test func aBrowserShowsItsOwnMembers() async throws {
        let outbox = try await outbox()
        _ = try await send(outbox) { $0.webpush = ["notification": ["title": "Hi"]] }
        let contents = try await sent(outbox)
        #expect(Set(contents.keys) == ["phone", "hook", "browser-u1"])
        #expect(contents["browser-u1"]?.hato.reply != nil && contents["phone"]?.hato.reply == nil)
    }

    @Test func whatADeviceShowsCanBeRespondedToAndIsCounted() async throws {
        let outbox = try await outbox()
        let id = try await send(outbox, to: ["u1", "u2"]) { $0.apns = Self.alert }
        // The other user has no device that shows it.
        #expect(try count(outbox, of: "u1") == 1 && count(outbox, of: "u2") == 0)
        let contents = try await sent(outbox)
        let (phone, hook) = (try #require(contents["phone"]), try #require(contents["hook"]))
        #expect(phone.hato.id == id && phone.hato.reply != nil && phone.appearance.badge == 1)
        #expect(hook.hato.id == nil && hook.hato.reply == nil && hook.appearance.badge == nil)
    }

    @Test func aThreadThatIsReadTakesItBack() async throws {
        let outbox = try await outbox()
        let id = try await send(outbox) { $0.apns = Self.alert }
        _ = try await sent(outbox)
        clock.advance(by: .milliseconds(1))
        try await outbox.change { try ThreadSteps.setCount(0, of: UserThread(uid: "u1", thread: "c1"), in: &$0) }
        let withdrawals = Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await withdrawals.runAll()
        let contents = try await sent(outbox)
        #expect(contents["phone"]?.hato.withdraw == [id] && contents["phone"]?.hato.badge == 0)
        #expect(contents["browser-u1"] == nil)
        #expect(try count(outbox, of: "u1") == 0)
    }
}
