import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Logging
import Testing

@testable import HatoNotifier

/// What preferences that change mean for what waits, and what counts as shown.
@Suite(.timeLimit(.minutes(10))) struct PreferenceChangeTests {
    private let clock = TestClock()

    /// At every hour of every day.
    private func always() throws -> Notifier.QuietWindow {
        .init(
            days: Notifier.Weekday.allCases, from: try Notifier.WallTime("00:00"), to: try Notifier.WallTime("00:00"),
            mode: .hold)
    }

    private func set(_ outbox: Outbox, _ change: (inout Notifier.Preferences.Set) throws -> Void) async throws {
        var new = Notifier.Preferences.Set()
        try change(&new)
        let request = new
        _ = try await outbox.change { try PreferenceRows(uid: "u1", mutesMax: 10).replace(by: request, in: &$0) }
    }

    @Test func withoutItsWindowWhatIsHeldGoes() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) { $0.limits.deviceIntervalMs = 0 }
        try await outbox.addPhone("p1", of: "u1")
        try await outbox.addPhone("p2", of: "u2")
        try await set(outbox) { $0.quiet = .value([try always()]) }
        // More lanes than one page has, with and without a key.
        for index in 0..<300 { try await outbox.send("\(index)", collapseKey: "k\(index)") }
        for title in ["a", "b"] { try await outbox.send(title) }
        #expect(try await outbox.deliverAll().isEmpty)
        let held = try await outbox.counts().nextDueAt
        #expect(held.map { $0 > clock.now } == true)
        try await QuietEnds(outbox: outbox).change(of: "u1")
        // The window is the same: they wait again.
        #expect(try await outbox.deliverAll().isEmpty)
        #expect(try await outbox.counts().nextDueAt == held)
        try await set(outbox) { $0.quiet = .removed }
        try await QuietEnds(outbox: outbox).change(of: "u1")
        let (first, later) = (try await outbox.deliverAll().count, try await sentLater(outbox))
        #expect(first == 30 && later == 272)
        #expect(outbox.pending == 0)
    }

    /// The pace of the user, at one a second.
    private func sentLater(_ outbox: Outbox) async throws -> Int {
        var count = 0
        while let next = try await outbox.counts().nextDueAt {
            try #require(next > clock.now)
            clock.advance(by: .milliseconds(next - clock.now))
            count += try await outbox.deliverAll().count
        }
        return count
    }

    @Test(arguments: [false, true]) func settingAndRegisteringLookAtWhatIsHeld(registers: Bool) async throws {
        let store = try MemoryStore()
        let outbox = try await Outbox.test(store, clock)
        // It was there before the other one, and not long ago.
        try await outbox.addPhone("p1", of: "u1", seenAt: clock.now - 1_000)
        try await set(outbox) { $0.quiet = .value([try always()]) }
        let id = try await outbox.send("a")
        #expect(try await outbox.deliverAll().isEmpty)
        func dueAt() throws -> Int64? {
            let machine = try store.snapshot().readable(DeliveryRecord.self, DeliveryRecord.key(id, 0))?.machine
            return machine?.isFinished == false ? machine?.time : nil
        }
        let held = try dueAt()
        #expect(held.map { $0 > clock.now } == true)
        let notifier = try await TestNotifier.start(store: store, channels: [ScriptedChannel()]) {
            $0.time = clock.source
        }
        if registers {
            var request = Notifier.Devices.Register(url: "https://example.com/", uid: "u1")
            request.timeZone = "Asia/Tokyo"
            _ = try await notifier.client.call(request)
        } else {
            var request = Notifier.Preferences.Set()
            request.quiet = .removed
            _ = try await notifier.call(request, as: "u1")
        }
        // It goes, or waits for the end of the day in Tokyo.
        try await eventually("it is looked at again") { try dueAt() != held }
        #expect(try dueAt() != nil)
        await notifier.stop()
    }

    @Test func aMuteThatHasEndedGoesWithTheNextChangeOfMutes() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await PreferenceRows(uid: "u1", mutesMax: 2).mute("c1", until: clock.now + 1_000, in: outbox)
        clock.advance(by: .seconds(1))
        // Others do not read mutes, of which there may be many.
        try await set(outbox) { $0.off = .value([]) }
        #expect(try outbox.store.snapshot().count(.mute) == 1)
        try await set(outbox) { $0.mutes = .value([:]) }
        let rows = try outbox.store.snapshot()
        #expect(try rows.count(.mute) == 0 && rows.count(.preferences) == 0)
    }

    // MARK: What is shown

    @Test func textsOfTheAppItselfAreShown() {
        func isShown(_ platform: Notifier.Platform, _ change: (inout Notifier.PlatformMembers) -> Void) -> Bool {
            var members = Notifier.PlatformMembers()
            change(&members)
            return ShownContent(text: .init(), platforms: members).isShown(on: platform)
        }
        let alert: JSONValue = ["alert": ["loc-key": "NEW"]]
        #expect(isShown(.apns) { $0.apns = ["aps": alert] })
        #expect(isShown(.apns) { $0.apns = ["aps": ["sound": "default"]] })
        #expect(!isShown(.apns) { $0.apns = ["aps": ["badge": 1, "content-available": 1]] })
        #expect(!isShown(.fcm) { $0.apns = ["aps": alert] })
        #expect(isShown(.fcm) { $0.fcm = ["android": ["notification": ["body_loc_key": "NEW"]]] })
        #expect(isShown(.fcm) { $0.fcm = ["apns": ["payload": ["aps": alert]]] })
        #expect(!isShown(.fcm) { $0.fcm = ["android": ["priority": "HIGH"]] })
        #expect(isShown(.webpush) { $0.webpush = ["notification": ["title": "a"]] })
        #expect(!isShown(.webpush) { $0.webpush = ["headers": ["urgency": "low"]] })
        #expect(ShownContent(text: .init(), localized: ["ja": .init(title: "a")]).isShown(on: .fcm))
        #expect(ShownContent(text: .init(), content: .ids).isShown(on: .apns))
        #expect(!ShownContent(text: .init(), content: .ids).isShown(on: .webhook))
        #expect(!ShownContent(text: .init(), localized: ["ja": .init()]).isShown(on: .fcm))
    }

    @Test(arguments: [false, true]) func whatIsWithdrawnPassesQuietWindowsAndPace(isQuiet: Bool) async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) { $0.limits.deviceBurstMax = 1 }
        try await outbox.addPhone("p1", of: "u1")
        func send(_ title: String, in thread: String) async throws -> String {
            var new = outbox.notification(title)
            new.options = Notifier.DeliveryOptions()
            new.options?.thread = thread
            return try #require(try await outbox.accept(new).notification)
        }
        let shown = try await send("a", in: "c1")
        #expect(try await outbox.deliverAll().count == 1)
        if isQuiet { try await set(outbox) { $0.quiet = .value([try always()]) } }
        let held = try await send("b", in: "c2")
        #expect(try await outbox.deliverAll().isEmpty)
        try await outbox.change { try ThreadSteps.setCount(0, of: UserThread(uid: "u1", thread: "c1"), in: &$0) }
        try await Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }).runAll()
        clock.advance(by: .seconds(1))
        let silent = try await outbox.deliverAll().map(\.delivery.content)
        #expect(silent.map(\.hato.withdraw) == [[shown]] && silent.first?.hato.badge == 1)
        #expect(try await outbox.status(of: held)?.deliveries.first?.reason == (isQuiet ? "quiet" : "rate"))
    }

    @Test func aTrialSaysWhatIsNotWantedNow() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        var devices: [DeviceRecord] = []
        for uid in ["muted", "off", "hold", "silent", "free"] {
            devices.append(try await outbox.addPhone("p-\(uid)", of: uid))
            var request = Notifier.Preferences.Set()
            var window = try always()
            switch uid {
            case "muted": request.mutes = .value(["c1": .never])
            case "off": request.off = .value([.apns])
            case "hold": request.quiet = .value([window])
            case "silent":
                window.mode = .silent
                request.quiet = .value([window])
            default: break
            }
            try await outbox.change { [request] draft in
                _ = try PreferenceRows(uid: uid, mutesMax: 10).replace(by: request, in: &draft)
            }
        }
        var new = outbox.notification("a")
        var options = Notifier.DeliveryOptions()
        (options.thread, options.sound) = ("c1", "default")
        new.options = options
        let outcomes = try await OutboxTrial(outbox).deliveries(of: new, to: devices)
        let shown = outcomes.map { outcome in
            switch outcome {
            case .sent(let delivery): delivery.content.appearance.sound ?? "no sound"
            case .skipped(let skip): skip.rawValue
            }
        }
        #expect(shown == ["muted", "off", "quiet", "no sound", "default"])
    }

    @Test func anAlertOfThePlatformsOwnIsMuted() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        try await set(outbox) { $0.mutes = .value(["c1": .never]) }
        var new = outbox.notification("")
        new.text = .init()
        new.options = Notifier.DeliveryOptions()
        new.options?.thread = "c1"
        new.platforms = Notifier.PlatformMembers()
        new.platforms?.apns = ["aps": ["alert": ["loc-key": "NEW"]]]
        let id = try #require(try await outbox.accept(new).notification)
        #expect(try await outbox.deliverAll().isEmpty)
        #expect(try await outbox.status(of: id)?.deliveries.first?.reason == "muted")
    }

    @Test func aSilentOneOfAWebhookGoesBehindAMutedOne() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        try await set(outbox) { $0.mutes = .value(["c1": .never]) }
        for title in ["a", nil, "b"] as [String?] {
            var new = outbox.notification("")
            new.text = .init(title: title)
            new.options = Notifier.DeliveryOptions()
            new.options?.thread = "c1"
            _ = try await outbox.accept(new)
        }
        #expect(try await outbox.deliverAll().map(\.delivery.content.text.title) == [nil])
        #expect(outbox.pending == 0)
    }

    @Test func whatExpiresBehindAHeldOneIsDroppedForTheWindow() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        try await set(outbox) { $0.quiet = .value([try always()]) }
        var ids: [String] = []
        for title in ["a", "b"] {
            let new = outbox.notification(title, timeToLive: .seconds(60))
            ids.append(try #require(try await outbox.accept(new).notification))
        }
        #expect(try await outbox.deliverAll().isEmpty)
        #expect(try await outbox.status(of: ids[0])?.deliveries.first?.reason == "quiet")
        clock.advance(by: .seconds(60))
        #expect(try await outbox.deliverAll().isEmpty)
        for id in ids {
            let ended = try await outbox.status(of: id)?.deliveries.first
            #expect(ended?.state == .dropped && ended?.reason == "quiet")
        }
    }
}
