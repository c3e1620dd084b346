import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import Logging
import Testing

@testable import HatoNotifier

/// Counts of threads, the badge that is their sum, and what becomes of notifications that were read.
@Suite(.timeLimit(.minutes(10))) struct ThreadTests {
    private let clock = TestClock()
    private let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 200))

    private func outbox(
        _ store: any Store, _ change: (inout NotifierConfiguration) -> Void = { _ in }
    ) async throws -> Outbox {
        let outbox = try await Outbox.test(store, clock, change)
        for (name, uid) in [("d1", "u1"), ("d2", "u1"), ("d3", "u2")] { try await outbox.addDevice(name, of: uid) }
        return outbox
    }

    /// Lets what is to be withdrawn be withdrawn.
    private func withdraw(_ outbox: Outbox) async throws {
        let withdrawals = Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await withdrawals.runAll()
        #expect(try outbox.store.snapshot().count(.withdrawal) == 0)
    }

    @discardableResult
    private func send(
        _ title: String, _ outbox: Outbox, in thread: String? = "c1",
        _ change: (inout NewNotification) -> Void = { _ in }
    ) async throws -> String {
        // Ids of one millisecond have no order.
        clock.advance(by: .milliseconds(1))
        var new = outbox.notification(title)
        new.options = Notifier.DeliveryOptions()
        new.options?.thread = thread
        change(&new)
        return try #require(try await outbox.accept(new).notification)
    }

    private func set(_ count: Int, _ thread: String = "c1", of uid: String = "u1", in outbox: Outbox) async throws {
        try await outbox.change { try ThreadSteps.setCount(count, of: UserThread(uid: uid, thread: thread), in: &$0) }
    }

    /// The counts of a user by thread, and the badge under the name "".
    private func counts(_ outbox: Outbox, of uid: String = "u1") throws -> [String: Int] {
        let snapshot = try outbox.store.snapshot()
        var counts = ["": try snapshot.record(BadgeRecord.self, BadgeRecord.key(uid))?.total ?? 0]
        for row in try snapshot.rows(ThreadRecord.prefix(uid)) {
            let thread = try #require(ThreadRecord.thread(row.key))
            counts[thread] = try snapshot.record(ThreadRecord.self, row.key)?.count
        }
        return counts
    }

    /// Leases what is due and gives each the outcome; returns what was sent to a device.
    private func round(
        _ outbox: Outbox, of device: String = "d1", _ outcome: DeliveryOutcome? = nil
    ) async throws -> [DeliveryContent] {
        let leases = try await outbox.lease(limit: 100).leases
        for lease in leases { try await outbox.record(outcome ?? delivered, of: lease) }
        return leases.map(\.delivery.content).filter { $0.device == device }
    }

    // MARK: Counting

    @Test func aNotificationCountsOnceForEachUserAndTheBadgeIsTheSumOfThreads() async throws {
        let outbox = try await outbox(MemoryStore())
        try await send("a", outbox) { $0.recipients = .uids(["u1", "u2"]) }
        try await send("b", outbox)
        try await send("c", outbox, in: "c2")
        #expect(try counts(outbox) == ["": 3, "c1": 2, "c2": 1])
        #expect(try counts(outbox, of: "u2") == ["": 1, "c1": 1])
        // The badge is that of the time when the push is built.
        #expect(try await round(outbox).map(\.appearance.badge) == [3])
    }

    @Test func whatIsNotCounted() async throws {
        let outbox = try await outbox(MemoryStore())
        let app = try #require(TokenApp(.fcm, app: nil))
        let token = try app.device("dev_9", with: "t0", at: clock.now)
        try await send("without a thread", outbox, in: nil)
        try await send("to a token without a user", outbox) { $0.recipients = .tokens([token]) }
        try await send("silent", outbox) {
            $0.text = .init()
            $0.data = ["a": "1"]
        }
        try await send("counted by the tree", outbox) { $0.isCounted = false }
        try await send("to no device", outbox) { $0.recipients = .uids(["u9"]) }
        #expect(
            try counts(outbox) == ["": 0] && counts(outbox, of: "") == ["": 0] && counts(outbox, of: "u9") == ["": 0])
        #expect(try await round(outbox).map(\.appearance.badge) == [nil])
    }

    @Test func aRepetitionAndADryRunCountNothingAndWhatIsReplacedDoes() async throws {
        let outbox = try await outbox(MemoryStore())
        for _ in 1...3 { try await send("a", outbox) { $0.idempotency = .init(scope: "s", key: "k", fingerprint: "") } }
        #expect(try counts(outbox) == ["": 1, "c1": 1])
        for title in ["1", "2", "3"] { try await send(title, outbox) { $0.collapseKey = "room" } }
        var dry = outbox.notification("dry")
        dry.options = Notifier.DeliveryOptions()
        dry.options?.thread = "c1"
        #expect(try await OutboxTrial(outbox).acceptance(of: dry).recipients == 2)
        #expect(try counts(outbox) == ["": 4, "c1": 4])
        #expect(
            try await round(outbox).map { [$0.text.title ?? "", "\($0.appearance.badge ?? -1)"] } == [
                ["a", "4"], ["3", "4"],
            ])
    }

    @Test func aGivenBadgeIsSentInPlaceOfTheSum() async throws {
        let outbox = try await outbox(MemoryStore())
        try await send("a", outbox) { $0.options?.badge = 77 }
        #expect(try counts(outbox) == ["": 1, "c1": 1])
        #expect(try await round(outbox).map(\.appearance.badge) == [77])
    }

    @Test func countsAreBoundedAndSoAreThreads() async throws {
        let outbox = try await outbox(MemoryStore()) { $0.limits.threadsPerUserMax = 3 }
        for thread in ["a", "b", "c"] { try await set(2, thread, in: outbox) }
        // It changed last: `b` has not changed for the longest time.
        try await set(3, "a", in: outbox)
        try await set(1, "d", in: outbox)
        #expect(try counts(outbox) == ["": 6, "a": 3, "c": 2, "d": 1])
        try await set(BadgeRecord.shownMax, "a", in: outbox)
        try await send("one more", outbox, in: "a")
        try await set(BadgeRecord.shownMax, "d", in: outbox)
        #expect(try counts(outbox) == ["": 199_999 + 1, "a": 99_999, "c": 2, "d": 99_999])
        #expect(try await round(outbox).map(\.appearance.badge) == [99_999])
        try await outbox.change { try ThreadSteps.readAll(of: "u1", in: &$0) }
        #expect(try counts(outbox) == ["": 0])
    }

    @Test func manyInOneTransactionAreCountedAsIfTheyCameAlone() async throws {
        let outbox = try await outbox(MemoryStore()) { $0.limits.threadsPerUserMax = 3 }
        try await set(5, "old", in: outbox)
        try await outbox.change { draft in
            for thread in ["a", "a", "b", "c", "c", "c"] {
                _ = try draft.threads.add(
                    1, to: UserThread(uid: "u1", thread: thread), draft.transaction, &draft.writes)
            }
            try ThreadSteps.setCount(0, of: UserThread(uid: "u1", thread: "a"), in: &draft)
            try ThreadSteps.setCount(4, of: UserThread(uid: "u1", thread: "e"), in: &draft)
        }
        #expect(try counts(outbox) == ["": 8, "b": 1, "c": 3, "e": 4])
    }

    // MARK: Reading

    @Test func aThreadThatWasReadIsWithdrawnAndWhatWaitsIsDropped() async throws {
        let outbox = try await outbox(MemoryStore())
        let shown = [try await send("1", outbox), try await send("2", outbox)]
        for _ in 1...2 { _ = try await round(outbox) }
        let other = try await send("other", outbox, in: "c2")
        let waiting = try await send("3", outbox)
        try await set(0, in: outbox)
        try await withdraw(outbox)
        #expect(try await outbox.states(of: waiting) == [.dropped, .dropped])
        #expect(try await outbox.status(of: waiting)?.deliveries.map(\.reason) == ["withdrawn", "withdrawn"])
        let sent = try await round(outbox)
        #expect(sent.map(\.text.title) == ["other", nil])
        let silent = try #require(sent.last)
        #expect(silent.hato.withdraw == shown.reversed() && silent.hato.threads == ["c1"] && silent.hato.badge == 1)
        #expect(silent.appearance.badge == 1 && silent.appearance.priority == .normal)
        #expect(silent.collapseKey == "hato.withdrawal")
        #expect(try await outbox.states(of: other) == [.delivered, .delivered])
        #expect(try await round(outbox).isEmpty && outbox.pending == 0)
        // Read again, nothing happens.
        try await set(0, in: outbox)
        try await withdraw(outbox)
        #expect(try await round(outbox).isEmpty)
    }

    @Test func aCountThatFallsASendsTheBadgeAloneAndOneThatRisesNothing() async throws {
        let outbox = try await outbox(MemoryStore())
        try await set(3, in: outbox)
        try await set(5, in: outbox)
        try await withdraw(outbox)
        #expect(try await round(outbox).isEmpty)
        try await set(2, in: outbox)
        try await withdraw(outbox)
        let silent = try await round(outbox)
        #expect(silent.map(\.hato.badge) == [2] && silent.map(\.hato.withdraw) == [[]])
        #expect(silent.map(\.hato.threads) == [nil])
    }

    @Test func silentPushesThatWaitBecomeOne() async throws {
        let outbox = try await outbox(MemoryStore())
        let ids = [try await send("1", outbox, in: "a"), try await send("2", outbox, in: "b")]
        for _ in 1...2 { _ = try await round(outbox) }
        for thread in ["a", "b"] {
            try await set(0, thread, in: outbox)
            try await withdraw(outbox)
        }
        let silent = try await round(outbox)
        #expect(silent.map(\.hato.withdraw) == [ids.reversed()] && silent.map(\.hato.badge) == [0])
        #expect(silent.first?.hato.threads == ["b", "a"])
        #expect(try await round(outbox).isEmpty)
    }

    /// A user that reads and forgets all the time.
    @Test func manyWithdrawalsSoonAfterEachOtherAreOnePush() async throws {
        let outbox = try await outbox(MemoryStore()) { $0.delivery.silentPushDelay = .seconds(1) }
        for _ in 1...20 {
            try await set(1, in: outbox)
            try await set(0, in: outbox)
            try await withdraw(outbox)
            clock.advance(by: .milliseconds(40))
            #expect(try await round(outbox).isEmpty)
        }
        // The first one is not put off by those that follow.
        clock.advance(by: .milliseconds(200))
        #expect(try await round(outbox).map(\.hato.badge) == [0])
        // One push has said it all.
        #expect(try outbox.store.snapshot().count(.notification) == 1)
    }

    @Test func aThreadWithoutACountIsReadAllTheSame() async throws {
        let outbox = try await outbox(MemoryStore())
        let id = try await send("1", outbox) { $0.isCounted = false }
        _ = try await round(outbox)
        try await set(0, in: outbox)
        try await withdraw(outbox)
        #expect(try await round(outbox).map(\.hato.withdraw) == [[id]])
    }

    @Test func aFallAfterAReadingLeavesTheReading() async throws {
        let outbox = try await outbox(MemoryStore())
        let id = try await send("1", outbox)
        _ = try await round(outbox)
        try await outbox.change { draft in
            for count in [0, 3, 2] {
                try ThreadSteps.setCount(count, of: UserThread(uid: "u1", thread: "c1"), in: &draft)
            }
        }
        try await withdraw(outbox)
        let silent = try await round(outbox)
        #expect(silent.map(\.hato.withdraw) == [[id]] && silent.map(\.hato.badge) == [2])
    }

    /// The device would remove what it is about to show.
    @Test func aThreadWithSomethingNewIsNotClearedAsAWhole() async throws {
        let outbox = try await outbox(MemoryStore())
        let old = try await send("1", outbox)
        _ = try await round(outbox)
        try await set(0, in: outbox)
        try await withdraw(outbox)
        try await send("2", outbox)
        let sent = try await round(outbox)
        #expect(sent.first { $0.text.isEmpty }?.hato.withdraw == [old])
        #expect(sent.first { $0.text.isEmpty }?.hato.threads == nil)
        #expect(sent.map(\.appearance.badge) == [1, 1])
    }

    @Test func allThreadsAreReadTogether() async throws {
        let outbox = try await outbox(MemoryStore())
        for thread in ["a", "b", "c"] {
            try await send(thread, outbox, in: thread)
            _ = try await round(outbox)
        }
        try await outbox.change { try ThreadSteps.readAll(of: "u1", in: &$0) }
        try await withdraw(outbox)
        let silent = try await round(outbox)
        #expect(
            silent.map { $0.hato.withdraw?.count } == [3] && silent.first?.hato.threads?.sorted() == ["a", "b", "c"])
        #expect(try counts(outbox) == ["": 0] && silent.map(\.hato.badge) == [0])
    }

    @Test func whatWasReadBeforeARestartIsWithdrawnAfterIt() async throws {
        let store = try MemoryStore()
        let outbox = try await outbox(store)
        let id = try await send("1", outbox)
        _ = try await round(outbox)
        try await set(0, in: outbox)
        let next = try await Outbox.test(store, clock)
        try await withdraw(next)
        #expect(try await round(next).map(\.hato.withdraw) == [[id]])
    }

    @Test func browsersGetNoPushThatShowsNothing() async throws {
        let outbox = try await outbox(MemoryStore())
        var browser = DeviceRecord(device: "d4", uid: "u1", platform: .webpush, createdAt: 0)
        let keys = Notifier.Devices.Register.subscriptionKeys
        (browser.url, browser.p256dh, browser.auth) = ("https://push.example.com/1", keys.p256dh, keys.auth)
        try await outbox.change { [browser] draft in
            draft.writes.put(browser.key, browser)
            draft.writes.put(browser.userKey)
        }
        try await send("1", outbox)
        #expect(try await round(outbox, of: "d4").map(\.appearance.badge) == [1])
        try await set(0, in: outbox)
        try await withdraw(outbox)
        #expect(try await round(outbox, of: "d4").isEmpty)
    }

    // MARK: Attempts that are under way

    @Test func whatArrivesWhileItIsWithdrawnIsRemovedAfterwards() async throws {
        let outbox = try await outbox(MemoryStore())
        let id = try await send("1", outbox)
        let leases = try await outbox.lease(limit: 10).leases
        try await set(0, in: outbox)
        try await withdraw(outbox)
        #expect(try await outbox.states(of: id) == [.leased, .leased])
        #expect(try await round(outbox).map(\.hato.withdraw) == [[id]])
        // One arrives all the same, the other is not tried again.
        try await outbox.record(delivered, of: leases[0])
        try await outbox.record(ScriptedChannel.busy, of: leases[1])
        #expect(try await outbox.states(of: id) == [.delivered, .dropped])
        let device = leases[0].delivery.content.device
        let silent = try await round(outbox, of: device)
        // It came with the badge 1, after the 0 of the first silent push.
        #expect(leases[0].delivery.content.appearance.badge == 1)
        #expect(silent.map(\.hato.withdraw) == [[id]] && silent.map(\.hato.badge) == [0])
        #expect(try await round(outbox).isEmpty && outbox.pending == 0)
    }

    @Test func aWithdrawnAttemptIsNotMadeAgainAfterARestart() async throws {
        let store = try MemoryStore()
        let outbox = try await outbox(store)
        let id = try await send("1", outbox)
        _ = try await outbox.lease(limit: 10)
        try await set(0, in: outbox)
        try await withdraw(outbox)
        let next = try await Outbox.test(store, clock)
        #expect(try await round(next).map(\.text.title) == [nil])
        #expect(try await next.states(of: id) == [.dropped, .dropped])
        #expect(next.pending == 0)
    }

    /// Both results come with one transaction: the lane of silent pushes loses its head and gets a new one.
    @Test func aSilentPushFollowsTheOneThatHasJustArrived() async throws {
        let outbox = try await outbox(MemoryStore())
        let id = try await send("1", outbox)
        let shown = try await outbox.lease(limit: 10).leases
        try await set(0, in: outbox)
        try await withdraw(outbox)
        let silent = try await outbox.lease(limit: 10).leases
        #expect(shown.count == 2 && silent.count == 2)
        _ = try await outbox.record((silent + shown).map { EndedAttempt(outcome: delivered, lease: $0) })
        #expect(try await round(outbox).map(\.hato.withdraw) == [[id]])
        #expect(try await round(outbox).isEmpty && outbox.pending == 0)
    }

    // MARK: Withdrawing

    @Test func aNotificationIsWithdrawnOnce() async throws {
        let outbox = try await outbox(MemoryStore())
        let withdrawals = Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await send("kept", outbox)
        let id = try await send("1", outbox) { $0.recipients = .uids(["u1", "u2"]) }
        // One of `kept` and one of `1` arrive at `u2`; at `u1`, `1` waits behind `kept`.
        _ = try await round(outbox)
        func withdraw() async throws -> Withdrawals.Outcome {
            try await withdrawals.withdraw(.notification(id)) { try ThreadSteps.beginWithdrawal(of: id, in: &$0) }
        }
        #expect(try await withdraw() == .init(dropped: 2, devices: 3))
        #expect(try counts(outbox) == ["": 1, "c1": 1] && counts(outbox, of: "u2") == ["": 0])
        #expect(try await withdraw() == .init(dropped: 0, devices: 0))
        let sent = try await outbox.lease(limit: 10).leases.map(\.delivery.content)
        #expect(sent.map(\.text.title) == [nil, nil, nil])
        let (own, others) = (sent.filter { $0.uid == "u1" }, sent.filter { $0.uid == "u2" })
        // No device of `u1` has it: they get the badge alone, and `u2` what is to be removed.
        #expect(own.map(\.hato.withdraw) == [[], []] && own.map(\.hato.badge) == [1, 1])
        #expect(others.map(\.hato.withdraw) == [[id]] && others.map(\.hato.badge) == [0])
        #expect(others.map(\.hato.threads) == [["c1"]])
    }

    @Test func aNotificationWithoutThreadIsRemovedWhereItArrived() async throws {
        let outbox = try await outbox(MemoryStore())
        let withdrawals = Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let id = try await send("1", outbox, in: nil)
        let leases = try await outbox.lease(limit: 10).leases
        try await outbox.record(delivered, of: leases[0])
        try await outbox.record(.postponed(DeliveryResponse(error: "no turn")), of: leases[1])
        let outcome = try await withdrawals.withdraw(.notification(id)) {
            try ThreadSteps.beginWithdrawal(of: id, in: &$0)
        }
        #expect(outcome == .init(dropped: 1, devices: 1))
        let sent = try await outbox.lease(limit: 10).leases.map(\.delivery.content)
        #expect(sent.map(\.device) == [leases[0].delivery.content.device])
        #expect(sent.map(\.hato.withdraw) == [[id]] && sent.map(\.hato.badge) == [nil])
    }

    @Test func aNotificationToManyDevicesIsWithdrawnInPages() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        let users = (1...700).map { "u\($0)" }
        for user in users { try await outbox.addDevice("d-\(user)", of: user) }
        let withdrawals = Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let id = try await send("1", outbox) { $0.recipients = .uids(users) }
        let version = outbox.store.version
        let outcome = try await withdrawals.withdraw(.notification(id)) {
            try ThreadSteps.beginWithdrawal(of: id, in: &$0)
        }
        #expect(outcome == .init(dropped: 700, devices: 700) && outbox.store.version == version + 4)
        #expect(try counts(outbox, of: "u700") == ["": 0])
        #expect(try outbox.store.snapshot().count(.shown) == 0 && outbox.store.snapshot().count(.badge) == 0)
    }

    @Test func aThreadIsWithdrawnWithWhatItCounts() async throws {
        let outbox = try await outbox(MemoryStore())
        let withdrawals = Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        for title in ["1", "2"] { try await send(title, outbox) }
        try await set(7, in: outbox)
        let job = WithdrawalJob.thread(uid: "u1", thread: "c1")
        let outcome = try await withdrawals.withdraw(job) { draft in
            let record = WithdrawalRecord(through: draft.transaction.nextVersion, isRead: true, lowersCount: true)
            try draft.threads.begin(job, record, draft.transaction, &draft.writes)
        }
        #expect(outcome == .init(dropped: 4, devices: 2))
        #expect(try counts(outbox) == ["": 5, "c1": 5])
    }

    // MARK: Bounds

    @Test func aSilentPushHasAsManyIdsAsFit() {
        let ids = (100...999).map { "ntf_0123456789abcdef01234567\($0)" }
        let content = WithdrawalContent(ids: ids, threads: [], hasBadge: true).bounded
        #expect(content.ids == Array(ids.prefix(80)))
        let added = WithdrawalContent(ids: ["new", ids[0]], threads: ["c1"], hasBadge: false).adding(content)
        #expect(added.ids.first == "new" && added.ids.filter { $0 == ids[0] }.count == 1 && added.hasBadge)
        // A few threads of many bytes leave little for ids.
        let long = String(repeating: "\"", count: 256)
        let threads = WithdrawalContent(ids: ids, threads: (0..<9).map { "\($0)\(long)" }, hasBadge: true).bounded
        #expect(threads.threads.count == 2 && !threads.ids.isEmpty)
    }

    @Test func nothingIsLeftOfOldNotifications() async throws {
        let outbox = try await outbox(MemoryStore())
        for title in ["1", "2"] { try await send(title, outbox) }
        _ = try await round(outbox)
        try await set(0, in: outbox)
        try await withdraw(outbox)
        try await send("3", outbox)
        for _ in 1...3 { _ = try await round(outbox) }
        #expect(try outbox.store.snapshot().count(.shown) == 1)
        clock.advance(by: .seconds(30 * 86_400))
        _ = try await outbox.purge()
        for table in [RecordKey.Table.shown, .notification, .delivery, .withdrawal, .origin, .lane, .purge] {
            #expect(try outbox.store.snapshot().count(table) == 0)
        }
        // It is still unread.
        #expect(try counts(outbox) == ["": 1, "c1": 1])
    }
}

extension Notifier.Devices.Register {
    /// Of a subscription.
    static let subscriptionKeys = (
        p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        auth: "BTBZMqHH6r4Tts7J_aSIgg"
    )
}
