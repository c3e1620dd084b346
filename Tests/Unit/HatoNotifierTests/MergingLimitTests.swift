import HatoModel
import HatoPush
import HatoStorage
import Testing

@testable import HatoNotifier

/// What a burst costs others, and the process.
@Suite(.timeLimit(.minutes(10))) struct MergingLimitTests {
    private let clock = TestClock()

    /// Accepts notifications to a device in one transaction, each with a collapse key of its own.
    private func burst(_ count: Int, _ outbox: Outbox, to device: String = "p1", thread: String?) async throws {
        try await outbox.change { [clock] draft in
            var acceptance = Acceptance(NotifierLimits(), DeliveryPolicy())
            for index in 0..<count {
                var new = NewNotification(
                    recipients: .devices([device]), text: .init(title: "\(index)", body: "b"), createdAt: clock.now,
                    expiresAt: clock.now + 86_400_000)
                new.collapseKey = "k\(index)"
                new.options = Notifier.DeliveryOptions()
                new.options?.thread = thread
                _ = try acceptance.accept(new, id: "\(device)-\(thread ?? "")-\(clock.now)-\(index)", in: &draft)
            }
        }
    }

    private func send(_ title: String, _ outbox: Outbox, to device: String, thread: String? = nil) async throws {
        var new = outbox.notification(title)
        new.recipients = .devices([device])
        new.options = Notifier.DeliveryOptions()
        new.options?.thread = thread
        _ = try await outbox.accept(new)
    }

    private func titles(_ outbox: Outbox) async throws -> [String?] {
        try await outbox.deliverAll().map(\.delivery.content.text.title)
    }

    @Test func aBurstOfManyLanesDelaysNoOtherDeviceOfTheUser() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        for phone in ["p1", "p2"] { try await outbox.addPhone(phone, of: "u1") }
        try await burst(200, outbox, thread: "c1")
        #expect(try await outbox.deliverAll().count == 10)
        try await send("at once", outbox, to: "p2")
        #expect(try await titles(outbox) == ["at once"])
        clock.advance(by: .seconds(3))
        let merged = try await outbox.deliverAll().map(\.delivery.content.text)
        #expect(merged.map(\.title) == ["199"] && merged.first?.body == "190 new messages\nb")
        // All turns that are not needed came back, those of the user, too.
        for (phone, wait) in [("p1", 3), ("p2", 0)] {
            try await send(phone, outbox, to: phone)
            clock.advance(by: .seconds(wait))
            #expect(try await titles(outbox) == [phone])
        }
        #expect(outbox.pending == 0)
    }

    /// Accepts a notification of each thread.
    private func flood(_ count: Int, _ outbox: Outbox, keyed: Bool = false) async throws {
        try await outbox.change { [clock] draft in
            var acceptance = Acceptance(NotifierLimits(), DeliveryPolicy())
            for index in 0..<count {
                var new = NewNotification(
                    recipients: .devices(["p1"]), text: .init(title: "\(index)", body: "b"), createdAt: clock.now,
                    expiresAt: clock.now + 86_400_000)
                if keyed { new.collapseKey = "k\(index)" }
                new.options = Notifier.DeliveryOptions()
                new.options?.thread = "t\(index)"
                _ = try acceptance.accept(new, id: "flood-\(clock.now)-\(index)", in: &draft)
            }
        }
    }

    @Test(arguments: [false, true]) func ofManyThreadsAllGoAsOne(keyed: Bool) async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        for phone in ["p1", "p2"] { try await outbox.addPhone(phone, of: "u1") }
        try await flood(1_500, outbox, keyed: keyed)
        #expect(try await outbox.deliverAll().count == 10)
        try await send("of a friend", outbox, to: "p1", thread: "friends")
        clock.advance(by: .seconds(3))
        let sent = try await outbox.deliverAll().map(\.delivery.content.text)
        #expect(sent.map(\.title) == ["of a friend"] && sent.first?.body == "1491 new messages")
        #expect(outbox.pending == 0)
        #expect(try outbox.store.snapshot().count(.thread) == 0)
        // All turns but one came back.
        for (phone, wait) in [("p1", 3), ("p2", 0)] {
            try await send(phone, outbox, to: phone)
            clock.advance(by: .seconds(wait))
            #expect(try await titles(outbox) == [phone])
        }
    }

    @Test func ofFewThreadsEachGoesByItself() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        try await flood(31, outbox)
        #expect(try await outbox.deliverAll().count == 10)
        clock.advance(by: .seconds(3))
        // 21 wait, which is one too many.
        #expect(try await titles(outbox) == ["30"])
        #expect(outbox.pending == 0)
        clock.advance(by: .seconds(60))
        try await flood(30, outbox)
        #expect(try await outbox.deliverAll().count == 10)
        for index in 10..<30 {
            clock.advance(by: .seconds(3))
            #expect(try await titles(outbox) == ["\(index)"])
        }
    }

    @Test func whatInterruptsInAnotherWayDoesNotMergeWithManyThreads() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        try await flood(40, outbox)
        #expect(try await outbox.deliverAll().count == 10)
        for index in 0..<2 {
            var new = outbox.notification("now \(index)")
            new.recipients = .devices(["p1"])
            var options = Notifier.DeliveryOptions()
            (options.thread, options.interruptionLevel) = ("now\(index)", .timeSensitive)
            new.options = options
            _ = try await outbox.accept(new)
        }
        var sent: [String] = []
        for _ in 0..<3 {
            clock.advance(by: .seconds(3))
            sent += try await titles(outbox).compactMap(\.self)
        }
        #expect(sent.sorted() == ["39", "now 0", "now 1"])
        #expect(outbox.pending == 0)
    }

    @Test func whatDoesNotGoGivesItsTurnBack() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) {
            ($0.limits.userBurstMax, $0.limits.userIntervalMs) = (5, 2_000)
        }
        for phone in ["p1", "p2"] { try await outbox.addPhone(phone, of: "u1") }
        try await burst(100, outbox, thread: nil)
        #expect(try await outbox.deliverAll().count == 5)
        try await outbox.dropDeliveries(of: "p1")
        for phone in ["p1", "p2"] {
            try await send(phone, outbox, to: phone)
            clock.advance(by: .seconds(3))
            #expect(try await titles(outbox) == [phone])
        }
    }

    @Test func oneBehindMoreThanAPageOfAttemptedOnesOfItsThreadGoes() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) {
            ($0.limits.deviceBurstMax, $0.limits.userIntervalMs) = (600, 0)
        }
        try await outbox.addPhone("p1", of: "u1")
        try await burst(600, outbox, thread: "c1")
        for _ in 0..<6 {
            let leases = try await outbox.leaseAll()
            #expect(leases.count == 100)
            _ = try await outbox.record(leases.map { EndedAttempt(outcome: ScriptedChannel.busy, lease: $0) })
        }
        #expect(try outbox.store.snapshot().count(.thread) == 0)
        try await send("held", outbox, to: "p1", thread: "c1")
        #expect(try await outbox.leaseAll().isEmpty)
        clock.advance(by: .seconds(3))
        let version = outbox.store.version
        var titles: [String?] = []
        for _ in 0..<8 where !titles.contains("held") {
            titles += try await outbox.leaseAll().map(\.delivery.content.text.title)
        }
        #expect(titles.contains("held"))
        #expect(outbox.store.version - version <= 8)
    }

    @Test(arguments: [false, true]) func whatSeveralHeadsMergeIsCountedOnce(hasThreads: Bool) async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) {
            ($0.limits.deviceBurstMax, $0.limits.deviceIntervalMs, $0.limits.userIntervalMs) = (1, 1, 0)
        }
        try await outbox.addPhone("p1", of: "u1")
        if hasThreads {
            try await flood(1_500, outbox, keyed: true)
        } else {
            try await burst(1_500, outbox, thread: "c1")
        }
        var sent = try await outbox.deliverAll()
        #expect(sent.count == 1)
        // All of them have their turns.
        clock.advance(by: .seconds(2))
        sent += try await outbox.deliverAll()
        let counts = sent.map { lease in
            lease.delivery.content.text.body?.split(separator: " ").first.flatMap { Int($0) } ?? 1
        }
        #expect(counts.reduce(0, +) == 1_500, "\(counts)")
        #expect(outbox.pending == 0)
    }

    @Test func whatWasAttemptedMergesNoMore() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        try await send("a", outbox, to: "p1", thread: "c1")
        // It may have been shown all the same.
        for lease in try await outbox.leaseAll() { try await outbox.record(ScriptedChannel.busy, of: lease) }
        var request = Notifier.Preferences.Set()
        let window = Notifier.QuietWindow(
            days: Notifier.Weekday.allCases, from: try Notifier.WallTime("00:00"), to: try Notifier.WallTime("00:00"),
            mode: .hold)
        request.quiet = .value([window])
        try await set(request, outbox)
        clock.advance(by: .seconds(60))
        #expect(try await outbox.deliverAll().isEmpty)
        for title in ["b", "c"] { try await send(title, outbox, to: "p1", thread: "c1") }
        request.quiet = .removed
        try await set(request, outbox)
        try await QuietEnds(outbox: outbox).change(of: "u1")
        let sent = try await outbox.deliverAll().map(\.delivery.content.text)
        #expect(sent.map(\.title) == ["a", "b", "c"] && sent.first?.body == nil)
    }

    @Test func oneThatWasHeldBackAgainGoesWithWhatCameMeanwhile() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        try await send("a", outbox, to: "p1", thread: "c1")
        // As it stands after it merged, and before it was sent.
        try await outbox.change { draft in
            let row = try #require(try draft.transaction.rows(RecordKey(.queued), limit: 1).first)
            var head = try #require(try draft.transaction.readable(DeliveryRecord.self, RecordKey(bytes: row.value)))
            head.pacing = head.pacing?.with(isNext: true)
            draft.writes.put(head.key, head)
        }
        var request = Notifier.Preferences.Set()
        let window = Notifier.QuietWindow(
            days: Notifier.Weekday.allCases, from: try Notifier.WallTime("00:00"), to: try Notifier.WallTime("00:00"),
            mode: .hold)
        request.quiet = .value([window])
        try await set(request, outbox)
        #expect(try await outbox.deliverAll().isEmpty)
        try await send("b", outbox, to: "p1", thread: "c1")
        request.quiet = .value([])
        try await set(request, outbox)
        try await QuietEnds(outbox: outbox).change(of: "u1")
        #expect(try await outbox.deliverAll().map(\.delivery.content.text.body) == ["2 new messages"])
    }

    private func set(_ request: Notifier.Preferences.Set, _ outbox: Outbox) async throws {
        _ = try await outbox.change { try PreferenceRows(uid: "u1", mutesMax: 10).replace(by: request, in: &$0) }
    }

    @Test func whatIsReplayedAsksForItsTurnAgain() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) { $0.limits.deviceBurstMax = 1 }
        try await outbox.addPhone("p1", of: "u1")
        for title in ["a", "b", "c"] {
            try await send(title, outbox, to: "p1")
            let lease = try #require(try await outbox.leaseAll().first)
            try await outbox.record(ScriptedChannel.wrong, of: lease)
            clock.advance(by: .seconds(3))
        }
        #expect(try await outbox.replay(.all) == 3)
        #expect(try await outbox.deliverAll().count == 1)
        clock.advance(by: .seconds(3))
        #expect(try await outbox.deliverAll().count == 1)
    }
}
