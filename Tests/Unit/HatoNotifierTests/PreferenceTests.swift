import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import TestAuth
import Testing

@testable import HatoNotifier

/// What users want of notifications, and what becomes of deliveries by it.
@Suite(.timeLimit(.minutes(10))) struct PreferenceTests {
    private let clock = TestClock()

    private func night(_ mode: Notifier.QuietMode) throws -> Notifier.QuietWindow {
        .init(
            days: Notifier.Weekday.allCases, from: try Notifier.WallTime("22:00"), to: try Notifier.WallTime("07:00"),
            mode: mode)
    }

    // MARK: Setting

    @Test func membersThatAreGivenAreReplacedAndNullRemovesThem() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel()])
        var request = Notifier.Preferences.Set()
        request.timeZone = .value("Asia/Tokyo")
        request.quiet = .value([try night(.hold)])
        request.mutes = .value(["c1": .never, "c2": .at(4_000_000_000_000), "over": .at(1)])
        request.off = .value([.webpush, .apns, .webpush])
        let all = try await notifier.call(request, as: "u1")
        let windows = [try night(.hold)]
        #expect(all.timeZone == "Asia/Tokyo" && all.quiet == windows)
        #expect(all.mutes == ["c1": .never, "c2": .at(4_000_000_000_000)] && all.off == [.apns, .webpush])
        #expect(try await notifier.call(Notifier.Preferences.Get(), as: "u1") == all)
        // Another user has none; an administrator sees those of all.
        #expect(try await notifier.call(Notifier.Preferences.Get(), as: "u2") == .init())
        #expect(try await notifier.client.call(Notifier.Preferences.Get(uid: "u1")) == all)
        var less = Notifier.Preferences.Set(uid: "u1")
        less.mutes = .value(["c3": .never])
        less.off = .value([])
        let changed = try await notifier.client.call(less)
        #expect(changed.mutes == ["c3": .never] && changed.off == nil && changed.timeZone == "Asia/Tokyo")
        // As it is written on the wire.
        let params: JSONObject = ["uid": "u1", "timeZone": .null, "quiet": .null, "mutes": .null]
        let empty = try await notifier.client.call(method: "notifier.preferences.set", params: params)
        #expect(empty == [:])
        #expect(try notifier.store.snapshot().count(.preferences) == 0)
        #expect(try notifier.store.snapshot().count(.mute) == 0)
        await notifier.stop()
    }

    @Test func preferencesAreThoseOfTheCallerAndBounded() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel()]) { $0.limits.mutesMax = 2 }
        func refused(_ request: Notifier.Preferences.Set, as uid: String) async -> String? {
            do { _ = try await notifier.call(request, as: uid) } catch { return (error as? RPCError)?.reason }
            return nil
        }
        #expect(await refused(.init(uid: "u2"), as: "u1") == "permission_denied")
        var request = Notifier.Preferences.Set()
        request.mutes = .value(["c1": .never, "c2": .never, "c3": .never])
        #expect(await refused(request, as: "u1") == "too_many_mutes")
        // Those that have ended do not count.
        request.mutes = .value(["c1": .never, "c2": .never, "c3": .at(0)])
        #expect(await refused(request, as: "u1") == nil)
        request = .init()
        request.quiet = .value(Array(repeating: try night(.hold), count: 15))
        #expect(await refused(request, as: "u1") == "invalid_quiet")
        await notifier.stop()
    }

    @Test func theOldestMutesThatHaveEndedMakePlaceForNewOnes() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) { $0.limits.mutesMax = 2 }
        try await PreferenceRows(uid: "u1", mutesMax: 2).mute("c1", until: clock.now + 1_000, in: outbox)
        try await PreferenceRows(uid: "u1", mutesMax: 2).mute("c2", until: nil, in: outbox)
        await #expect(throws: NotifierError.tooManyMutes(2)) {
            try await PreferenceRows(uid: "u1", mutesMax: 2).mute("c3", until: nil, in: outbox)
        }
        // One that is muted already is another matter.
        try await PreferenceRows(uid: "u1", mutesMax: 2).mute("c2", until: clock.now + 5_000, in: outbox)
        clock.advance(by: .seconds(1))
        try await PreferenceRows(uid: "u1", mutesMax: 2).mute("c3", until: nil, in: outbox)
        let mutes = try await outbox.store.read { try PreferenceReading($0).mutes(of: "u1") }
        #expect(mutes.map(\.thread) == ["c2", "c3"])
    }

    @Test func preferencesGoWithTheirUser() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        let outbox = try await Outbox.test(store, clock)
        for uid in ["a", "b"] { try await PreferenceRows(uid: uid, mutesMax: 2).mute("c1", until: nil, in: outbox) }
        let notifier = try await TestNotifier.start(store: store, channels: [ScriptedChannel()]) { configuration in
            configuration.auth = RPCClientConfiguration(host: "127.0.0.1", port: auth.port)
            configuration.authKey = FakeAuth.key
        }
        try await auth.write(FakeEvent(.deleted, "a"), FakeEvent(.disabled, "b"))
        try await eventually("those of the deleted user are gone") { try store.snapshot().count(.mute) == 1 }
        #expect(try await notifier.client.call(Notifier.Preferences.Get(uid: "b")).mutes == ["c1": .never])
        #expect(try store.snapshot().count(.preferences) == 1)
        await notifier.stop()
        await auth.stop()
    }

    // MARK: Sending

    /// A phone of a user with these preferences, at 23:00 UTC.
    private func outbox(
        _ change: (inout Notifier.Preferences.Set) throws -> Void
    ) async throws -> Outbox {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        var new = Notifier.Preferences.Set()
        try change(&new)
        let request = new
        _ = try await outbox.change { draft in
            try PreferenceRows(uid: "u1", mutesMax: 10).replace(by: request, in: &draft)
        }
        let ofDay = clock.now % 86_400_000
        clock.advance(by: .milliseconds((23 * 3_600_000 - ofDay + 86_400_000) % 86_400_000))
        return outbox
    }

    private func send(
        _ title: String?, _ outbox: Outbox, level: Notifier.InterruptionLevel? = nil, thread: String? = "c1",
        timeToLive: Duration = .seconds(86_400)
    ) async throws -> String {
        var new = outbox.notification("", timeToLive: timeToLive)
        new.text = .init(title: title)
        var options = Notifier.DeliveryOptions()
        (options.thread, options.interruptionLevel, options.sound) = (thread, level, "default")
        new.options = options
        return try #require(try await outbox.accept(new).notification)
    }

    /// What goes out now, all of it delivered.
    private func sent(_ outbox: Outbox) async throws -> [DeliveryContent] {
        try await outbox.deliverAll().map(\.delivery.content)
    }

    private func reason(_ id: String, _ outbox: Outbox) async throws -> String? {
        try await outbox.status(of: id)?.deliveries.first?.reason
    }

    @Test func aPlatformThatIsOffGetsNothing() async throws {
        let outbox = try await outbox { $0.off = .value([.apns]) }
        try await outbox.addDevice("d1", of: "u1")
        var ids: [String] = []
        for title in ["a", "b", nil] { ids.append(try await send(title, outbox)) }
        #expect(try await sent(outbox).map(\.device) == ["d1", "d1", "d1"])
        for id in ids {
            let ended = try await outbox.status(of: id)?.deliveries.first { $0.device == "p1" }
            #expect(ended?.state == .dropped && ended?.reason == "off" && ended?.attempts == 0)
        }
        #expect(outbox.pending == 0)
    }

    @Test func ofAMutedThreadNothingIsShownUntilItEnds() async throws {
        let end = clock.now + 2 * 86_400_000
        let outbox = try await outbox { $0.mutes = .value(["c1": .at(Int(end)), "c2": .never]) }
        let muted = [
            try await send("a", outbox), try await send("b", outbox, level: .timeSensitive),
            try await send("c", outbox, thread: "c2"),
        ]
        _ = try await send("d", outbox, thread: "c3")
        // A silent push shows nothing.
        _ = try await send(nil, outbox)
        #expect(Set(try await sent(outbox).map(\.text.title)) == ["d", nil])
        for id in muted { #expect(try await reason(id, outbox) == "muted") }
        clock.advance(by: .milliseconds(end - clock.now))
        _ = try await send("e", outbox)
        #expect(try await sent(outbox).map(\.text.title) == ["e"])
        #expect(outbox.pending == 0)
    }

    @Test func aLaneOfAMutedThreadEndsInFewTransactions() async throws {
        let outbox = try await outbox { $0.mutes = .value(["c1": .never]) }
        try await outbox.change { [clock] draft in
            var new = NewNotification(
                recipients: .uids(["u1"]), text: .init(title: "a"), createdAt: clock.now,
                expiresAt: clock.now + 86_400_000)
            new.options = Notifier.DeliveryOptions()
            new.options?.thread = "c1"
            var acceptance = Acceptance(NotifierLimits(), DeliveryPolicy())
            for index in 0..<2_000 { _ = try acceptance.accept(new, id: "n\(index)", in: &draft) }
        }
        let version = outbox.store.version
        #expect(try await sent(outbox).isEmpty)
        #expect(outbox.pending == 0)
        #expect(outbox.store.version - version < 20)
    }

    @Test func aSilentWindowTakesTheSound() async throws {
        let outbox = try await outbox { $0.quiet = .value([try night(.silent)]) }
        _ = try await send("a", outbox)
        _ = try await send("b", outbox, level: .timeSensitive)
        let sent = try await sent(outbox).sorted { $0.text.title ?? "" < $1.text.title ?? "" }
        #expect(sent.map(\.appearance.sound) == [nil, "default"])
        #expect(sent.map(\.appearance.interruptionLevel) == [.passive, .timeSensitive])
        clock.advance(by: .seconds(8 * 3_600))
        _ = try await send("c", outbox)
        #expect(try await self.sent(outbox).map(\.appearance.sound) == ["default"])
    }

    @Test func aWindowThatHoldsMakesAThreadOneAtItsEnd() async throws {
        let outbox = try await outbox { $0.quiet = .value([try night(.hold)]) }
        var ids: [String] = []
        for title in ["a", "b", "c"] { ids.append(try await send(title, outbox)) }
        for title in ["x", "y"] { _ = try await send(title, outbox, thread: "c2") }
        // These pass, though they stand behind.
        _ = try await send("now", outbox, level: .timeSensitive)
        _ = try await send(nil, outbox)
        #expect(Set(try await sent(outbox).map(\.text.title)) == ["now", nil])
        let held = try await outbox.status(of: ids[0])?.deliveries.first
        #expect(held?.nextAttemptAt == Int(clock.now) + 8 * 3_600_000 && held?.state == .pending)
        clock.advance(by: .seconds(8 * 3_600 - 1))
        #expect(try await sent(outbox).isEmpty)
        clock.advance(by: .seconds(1))
        let morning = try await sent(outbox)
        #expect(morning.map(\.text.title) == ["c", "y"])
        #expect(morning.map(\.text.body) == ["3 new messages", "2 new messages"])
        for id in ids.prefix(2) { #expect(try await reason(id, outbox) == "coalesced") }
        #expect(try await outbox.states(of: ids[2]) == [.delivered])
        #expect(outbox.pending == 0)
        #expect(try outbox.store.snapshot().count(.thread) == 0)
    }

    @Test func whatExpiresInTheWindowIsDroppedForIt() async throws {
        let outbox = try await outbox { $0.quiet = .value([try night(.hold)]) }
        let short = try await send("a", outbox, timeToLive: .seconds(3_600))
        _ = try await send("b", outbox)
        #expect(try await sent(outbox).isEmpty)
        clock.advance(by: .seconds(3_600))
        #expect(try await sent(outbox).isEmpty)
        #expect(try await outbox.states(of: short) == [.dropped])
        #expect(try await reason(short, outbox) == "quiet")
        clock.advance(by: .seconds(7 * 3_600))
        #expect(try await sent(outbox).map(\.text.title) == ["b"])
    }

    @Test func windowsAreOnTheClockOfTheNewestDevice() async throws {
        let outbox = try await outbox { $0.quiet = .value([try night(.hold)]) }
        // At 23:00 UTC, it is morning in Tokyo.
        var new = try await outbox.addPhone("p2", of: "u1", seenAt: clock.now)
        new.timeZone = "Asia/Tokyo"
        let device = new
        try await outbox.change { $0.writes.put(device.key, device) }
        _ = try await send("a", outbox)
        #expect(try await sent(outbox).count == 2)
    }

    /// A phone may know zones that the notifier does not: it is registered all the same.
    @Test func aDeviceWithAnUnknownTimeZoneIsRegisteredWithoutIt() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel()])
        var request = Notifier.Devices.Register(url: "https://example.com/h")
        func zone() async throws -> String? {
            let device = try await notifier.call(request, as: "u1").device
            let devices = try await notifier.call(Notifier.Devices.List(), as: "u1").devices
            #expect(devices.map(\.device) == [device])
            return devices.first?.timeZone
        }
        for unknown in ["Mars/Olympus", "PST", "", "a/\n", String(repeating: "a/", count: 999)] {
            request.timeZone = unknown
            #expect(try await zone() == nil)
        }
        request.timeZone = "Asia/Tokyo"
        #expect(try await zone() == "Asia/Tokyo")
        request.timeZone = "Mars/Olympus"
        #expect(try await zone() == "Asia/Tokyo")
        await notifier.stop()
    }

    @Test func webhooksHaveNoQuietHours() async throws {
        let outbox = try await outbox { $0.quiet = .value([try night(.hold)]) }
        try await outbox.addDevice("d1", of: "u1")
        _ = try await send("a", outbox)
        #expect(try await sent(outbox).map(\.device) == ["d1"])
    }
}
