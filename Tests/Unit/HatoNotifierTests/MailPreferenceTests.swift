import HatoModel
import HatoPush
import HatoStorage
import Testing

@testable import HatoNotifier

/// What users want of e-mails: quiet windows, mutes, and none at all.
@Suite(.timeLimit(.minutes(10))) struct MailPreferenceTests {
    private let clock = TestClock()

    /// A mailbox of a user with these preferences, at 23:00 UTC.
    private func outbox(
        _ change: (inout Notifier.Preferences.Set) throws -> Void
    ) async throws -> Outbox {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addMailbox("m1", of: "u1")
        var request = Notifier.Preferences.Set()
        try change(&request)
        try await set(request, outbox)
        let ofDay = clock.now % 86_400_000
        clock.advance(by: .milliseconds((23 * 3_600_000 - ofDay + 86_400_000) % 86_400_000))
        return outbox
    }

    private func set(_ request: Notifier.Preferences.Set, _ outbox: Outbox) async throws {
        _ = try await outbox.change { try PreferenceRows(uid: "u1", mutesMax: 10).replace(by: request, in: &$0) }
    }

    private func night(_ mode: Notifier.QuietMode) throws -> Notifier.QuietWindow {
        .init(
            days: Notifier.Weekday.allCases, from: try Notifier.WallTime("22:00"), to: try Notifier.WallTime("07:00"),
            mode: mode)
    }

    @discardableResult
    private func send(
        _ title: String, _ outbox: Outbox, thread: String? = "t", level: Notifier.InterruptionLevel? = nil,
        timeToLive: Duration = .seconds(86_400)
    ) async throws -> String {
        var new = outbox.notification(title, timeToLive: timeToLive)
        var options = Notifier.DeliveryOptions()
        (options.thread, options.interruptionLevel) = (thread, level)
        new.options = options
        return try #require(try await outbox.accept(new).notification)
    }

    /// What the e-mails say that go now, all of them delivered.
    private func mails(_ outbox: Outbox) async throws -> [[String]] {
        try await outbox.deliverAll().map { lease in
            #expect(lease.platform == .email)
            return lease.delivery.content.digest?.entries.compactMap(\.text.title) ?? []
        }
    }

    private func reason(_ id: String, _ outbox: Outbox) async throws -> String? {
        try await outbox.status(of: id)?.deliveries.first?.reason
    }

    @Test func aWindowThatHoldsMakesOneDigestAtItsEnd() async throws {
        let outbox = try await outbox { $0.quiet = .value([try night(.hold)]) }
        let first = try await send("a", outbox)
        clock.advance(by: .seconds(60))
        #expect(try await mails(outbox).isEmpty)
        let held = try await outbox.status(of: first)?.deliveries.first
        #expect(held?.state == .pending && held?.reason == "quiet" && held?.attempts == 0)
        #expect(held?.nextAttemptAt == Int(clock.now) + 8 * 3_600_000 - 60_000)
        for title in ["b", "c"] { try await send(title, outbox) }
        try await send("x", outbox, thread: "other")
        clock.advance(by: .seconds(8 * 3_600 - 61))
        #expect(try await mails(outbox).isEmpty)
        clock.advance(by: .seconds(1))
        #expect(try await Set(mails(outbox)) == [["c", "b", "a"], ["x"]])
        #expect(try await outbox.states(of: first) == [.delivered] && outbox.pending == 0)
        // Outside of the window they go as otherwise.
        clock.advance(by: .seconds(600))
        try await send("d", outbox)
        clock.advance(by: .seconds(60))
        #expect(try await mails(outbox) == [["d"]])
    }

    @Test func whatIsSoonWithinTheWindowExpiresInIt() async throws {
        let outbox = try await outbox { $0.quiet = .value([try night(.hold)]) }
        let short = try await send("a", outbox, timeToLive: .seconds(3_600))
        try await send("b", outbox)
        clock.advance(by: .seconds(60))
        #expect(try await mails(outbox).isEmpty)
        clock.advance(by: .seconds(8 * 3_600 - 60))
        #expect(try await mails(outbox) == [["b"]])
        #expect(try await outbox.states(of: short) == [.dropped])
        #expect(try await reason(short, outbox) == "quiet")
    }

    @Test func aWindowWithoutSoundHoldsNoMail() async throws {
        let outbox = try await outbox { $0.quiet = .value([try night(.silent)]) }
        try await send("a", outbox)
        clock.advance(by: .seconds(60))
        #expect(try await mails(outbox) == [["a"]])
    }

    @Test func aWindowThatIsRemovedHoldsNoMailAnyMore() async throws {
        let outbox = try await outbox { $0.quiet = .value([try night(.hold)]) }
        try await send("a", outbox)
        clock.advance(by: .seconds(60))
        #expect(try await mails(outbox).isEmpty)
        var request = Notifier.Preferences.Set()
        request.quiet = .removed
        try await set(request, outbox)
        try await QuietEnds(outbox: outbox).change(of: "u1")
        #expect(try await mails(outbox) == [["a"]])
    }

    /// By itself, or with what a window holds already.
    @Test(arguments: [false, true]) func whatIsTimeSensitivePasses(isBehind: Bool) async throws {
        let outbox = try await outbox { $0.quiet = .value([try night(.hold)]) }
        if isBehind {
            try await send("a", outbox)
            clock.advance(by: .seconds(60))
            #expect(try await mails(outbox).isEmpty)
        }
        try await send("now", outbox, level: .timeSensitive)
        try await send("held", outbox, thread: "other")
        if !isBehind {
            #expect(try await mails(outbox).isEmpty)
            clock.advance(by: .seconds(60))
        }
        #expect(try await mails(outbox) == [isBehind ? ["now", "a"] : ["now"]])
        #expect(outbox.pending == 1)
    }

    @Test func whatPassesBehindOneThatIsNotDueYetGoesWithIt() async throws {
        let outbox = try await outbox { $0.quiet = .value([try night(.hold)]) }
        try await send("a", outbox)
        try await send("now", outbox, level: .critical)
        #expect(try await mails(outbox).isEmpty)
        clock.advance(by: .seconds(60))
        #expect(try await mails(outbox) == [["now", "a"]])
        #expect(outbox.pending == 0)
    }

    @Test func whatPassesBehindOneThatIsBeingSentIsNotHeld() async throws {
        let outbox = try await outbox { $0.quiet = .value([try night(.hold)]) }
        try await send("first", outbox, level: .timeSensitive)
        clock.advance(by: .seconds(60))
        let under = try await outbox.leaseAll()
        #expect(under.count == 1)
        try await send("a", outbox)
        try await send("now", outbox, level: .timeSensitive)
        for lease in under { try await outbox.record(.delivered(DeliveryResponse(status: 250)), of: lease) }
        clock.advance(by: .seconds(600))
        #expect(try await mails(outbox) == [["now", "a"]])
    }

    @Test func ofAMutedThreadNoMailIsSent() async throws {
        let outbox = try await outbox { $0.mutes = .value(["t": .never]) }
        let muted = [
            try await send("a", outbox), try await send("b", outbox, level: .timeSensitive),
            try await send("c", outbox),
        ]
        try await send("d", outbox, thread: "other")
        try await send("e", outbox, thread: nil)
        clock.advance(by: .seconds(60))
        #expect(try await Set(mails(outbox)) == [["d"], ["e"]])
        for id in muted {
            #expect(try await outbox.states(of: id) == [.dropped])
            #expect(try await reason(id, outbox) == "muted")
        }
        #expect(outbox.pending == 0)
    }

    @Test func aPlatformThatIsOffGetsNoMail() async throws {
        let outbox = try await outbox { $0.off = .value([.email]) }
        try await outbox.addPhone("p1", of: "u1")
        let ids = [try await send("a", outbox), try await send("b", outbox)]
        clock.advance(by: .seconds(60))
        #expect(try await outbox.deliverAll().map(\.platform) == [.apns, .apns])
        for id in ids {
            let mail = try await outbox.status(of: id)?.deliveries.first { $0.device == "m1" }
            #expect(mail?.state == .dropped && mail?.reason == "off" && mail?.attempts == 0)
        }
        #expect(outbox.pending == 0)
    }
}
