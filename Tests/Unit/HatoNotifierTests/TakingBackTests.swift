import HatoModel
import HatoPush
import HatoStorage
import Logging
import Testing

@testable import HatoNotifier

/// What becomes of those that went into another one, or that others went into, when they are withdrawn or read.
@Suite(.timeLimit(.minutes(10))) struct TakingBackTests {
    private let clock = TestClock()

    private func outbox() async throws -> Outbox {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        return outbox
    }

    /// Accepts ten that go at once and `count` that wait, of one thread or of one each, and lets those that wait go as
    /// one. Returns the ids of these, oldest first: the last one counts the others, and is due.
    private func merged(_ count: Int, _ outbox: Outbox, thread: String? = nil, key: String? = nil) async throws
        -> [String]
    {
        var ids: [String] = []
        for index in -10..<count {
            // Ids of one millisecond have no order.
            clock.advance(by: .milliseconds(1))
            var new = outbox.notification("\(index)", collapseKey: index < 0 ? nil : key)
            new.text.body = "words"
            new.data = ["text": "words"]
            var options = Notifier.DeliveryOptions()
            (options.thread, options.summary, options.link) = (thread ?? "t\(index)", "{count} words", "https://a.b")
            new.options = options
            let id = try #require(try await outbox.accept(new).notification)
            if index >= 0 { ids.append(id) }
            if index == -1 { #expect(try await outbox.deliverAll().count == 10) }
            // Under a key, a newer one counts those that were held back.
            if index == count - 1 || key != nil && index >= 0 { #expect(try await outbox.leaseAll().isEmpty) }
        }
        clock.advance(by: .seconds(3))
        // This round merges.
        if key == nil { #expect(try await outbox.leaseAll().isEmpty) }
        #expect(outbox.pending == 1)
        return ids
    }

    private func withdraw(_ ids: [String], _ outbox: Outbox) async throws {
        try await outbox.change { draft in for id in ids { try ThreadSteps.beginWithdrawal(of: id, in: &draft) } }
        try await runWithdrawals(outbox)
    }

    private func read(_ threads: [String], _ outbox: Outbox) async throws {
        try await outbox.change { draft in
            for thread in threads {
                try ThreadSteps.setCount(0, of: UserThread(uid: "u1", thread: thread), in: &draft)
            }
        }
        try await runWithdrawals(outbox)
    }

    private func runWithdrawals(_ outbox: Outbox) async throws {
        let withdrawals = Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await withdrawals.runAll()
        #expect(try outbox.store.snapshot().count(.withdrawal) == 0)
    }

    private func mute(_ thread: String, _ outbox: Outbox) async throws {
        try await PreferenceRows(uid: "u1", mutesMax: 10).mute(thread, until: nil, in: outbox)
    }

    /// What is shown, and the silent pushes: all that goes now, delivered.
    private func deliver(_ outbox: Outbox) async throws -> (shown: [DeliveryContent], silent: [HatoMember]) {
        let all = try await outbox.deliverAll().map(\.delivery.content)
        return (all.filter { !$0.text.isEmpty || $0.neutralText != nil }, all.filter(\.text.isEmpty).map(\.hato))
    }

    /// The words of the one that is shown, which must be the line alone.
    private func line(_ outbox: Outbox) async throws -> String? {
        let shown = try await deliver(outbox).shown
        #expect(shown.count <= 1)
        #expect(!"\(shown)".contains("words") && !"\(shown)".contains("a.b"))
        #expect(outbox.pending == 0)
        guard let content = shown.first, content.text.title == nil else { return nil }
        return content.text.body
    }

    private func hasNoRows(_ outbox: Outbox) throws -> Bool {
        let snapshot = try outbox.store.snapshot()
        return try [RecordKey.Table.thread, .lane, .due, .queued, .leased, .waiting].allSatisfy {
            try snapshot.count($0) == 0
        }
    }

    // MARK: Before it is sent

    @Test func theNewestOfABurstThatIsTakenBackGoesWithTheCountOfTheOthers() async throws {
        let outbox = try await outbox()
        let ids = try await merged(5, outbox, thread: "c1")
        try await withdraw([ids[4]], outbox)
        #expect(try await outbox.status(of: ids[4])?.deliveries.first?.state == .pending)
        #expect(try await line(outbox) == "4 new messages")
        #expect(try await outbox.states(of: ids[4]) == [.delivered])
        #expect(try hasNoRows(outbox))
    }

    @Test func whatIsTakenBackOfABurstIsNotCounted() async throws {
        let outbox = try await outbox()
        let ids = try await merged(5, outbox, thread: "c1")
        try await withdraw([ids[1], ids[3]], outbox)
        // Once more changes nothing.
        try await withdraw([ids[1]], outbox)
        let shown = try await deliver(outbox).shown
        #expect(shown.map(\.text.title) == ["4"] && shown.map(\.text.body) == ["3 words\nwords"])
    }

    @Test func theLastOneThatIsLeftIsOneNewMessage() async throws {
        let outbox = try await outbox()
        let ids = try await merged(5, outbox, thread: "c1")
        try await withdraw([ids[0], ids[4], ids[1], ids[2]], outbox)
        #expect(try await line(outbox) == "1 new message")
    }

    @Test(arguments: [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 1, 3]])
    func aBurstOfWhichAllIsTakenBackIsDropped(order: [Int]) async throws {
        let outbox = try await outbox()
        let ids = try await merged(5, outbox, thread: "c1")
        for index in order { try await withdraw([ids[index]], outbox) }
        #expect(try await line(outbox) == nil)
        let last = try await outbox.status(of: ids[4])?.deliveries.first
        #expect(last?.state == .dropped && last?.reason == "withdrawn" && last?.attempts == 0)
        #expect(try hasNoRows(outbox))
    }

    @Test func aBurstThatIsReadElsewhereIsDropped() async throws {
        let outbox = try await outbox()
        let ids = try await merged(300, outbox, thread: "c1")
        try await read(["c1"], outbox)
        #expect(try await line(outbox) == nil)
        #expect(try await outbox.status(of: ids[299])?.deliveries.first?.reason == "withdrawn")
        #expect(try hasNoRows(outbox))
    }

    @Test func ofManyThreadsThoseThatAreReadElsewhereAreNotCounted() async throws {
        let outbox = try await outbox()
        _ = try await merged(30, outbox)
        // Its own thread, and three others.
        try await read(["t29", "t0", "t17", "t28"], outbox)
        #expect(try await line(outbox) == "26 new messages")
    }

    @Test func ofManyThreadsTheNewestGoesWhenOnlyOthersAreRead() async throws {
        let outbox = try await outbox()
        _ = try await merged(30, outbox)
        try await read(["t0", "t17"], outbox)
        let shown = try await deliver(outbox).shown
        #expect(shown.map(\.text.title) == ["29"] && shown.map(\.text.body) == ["28 words\nwords"])
    }

    @Test func ofManyThreadsTheMutedOneGoesForTheOthers() async throws {
        let outbox = try await outbox()
        _ = try await merged(30, outbox)
        try await mute("t29", outbox)
        #expect(try await line(outbox) == "29 new messages")
    }

    @Test func aMutedThreadThatCountsNoOthersIsDropped() async throws {
        let outbox = try await outbox()
        let ids = try await merged(5, outbox, thread: "c1")
        try await mute("c1", outbox)
        #expect(try await line(outbox) == nil)
        #expect(try await outbox.status(of: ids[4])?.deliveries.first?.reason == "muted")
    }

    /// Each newer one with the key takes the place of the former one, and counts it.
    @Test func whatWasReplacedUnderAKeyIsNotCountedWhenItIsTakenBack() async throws {
        let outbox = try await outbox()
        let ids = try await merged(5, outbox, thread: "c1", key: "k")
        try await withdraw([ids[0], ids[2], ids[4]], outbox)
        #expect(try await line(outbox) == "2 new messages")
    }

    @Test func oneThatGoesForOthersMergesWithWhatComesLater() async throws {
        let outbox = try await outbox()
        let ids = try await merged(5, outbox, thread: "c1")
        try await withdraw([ids[4]], outbox)
        var request = Notifier.Preferences.Set()
        let day = Notifier.QuietWindow(
            days: Notifier.Weekday.allCases, from: try Notifier.WallTime("00:00"), to: try Notifier.WallTime("00:00"),
            mode: .hold)
        request.quiet = .value([day])
        try await set(request, outbox)
        #expect(try await deliver(outbox).shown.isEmpty)
        var new = outbox.notification("later")
        new.options = Notifier.DeliveryOptions()
        new.options?.thread = "c1"
        _ = try await outbox.accept(new)
        try await withdraw([ids[2], ids[4]], outbox)
        request.quiet = .value([])
        try await set(request, outbox)
        try await QuietEnds(outbox: outbox).change(of: "u1")
        let leases = try await outbox.leaseAll() + outbox.leaseAll()
        try await outbox.record(ScriptedChannel.busy, of: try #require(leases.first))
        // Through the one that was merged twice.
        try await withdraw([ids[0]], outbox)
        clock.advance(by: .seconds(60))
        let shown = try await deliver(outbox).shown
        #expect(shown.map(\.text.title) == ["later"] && shown.map(\.text.body) == ["3 new messages"])
    }

    private func set(_ request: Notifier.Preferences.Set, _ outbox: Outbox) async throws {
        _ = try await outbox.change { try PreferenceRows(uid: "u1", mutesMax: 10).replace(by: request, in: &$0) }
    }

    // MARK: While it is being sent

    @Test func anAttemptThatFailsIsRepeatedForTheOthers() async throws {
        let outbox = try await outbox()
        let ids = try await merged(5, outbox, thread: "c1")
        let lease = try #require(try await outbox.leaseAll().first)
        try await withdraw([ids[4]], outbox)
        try await outbox.record(ScriptedChannel.busy, of: lease)
        _ = try await outbox.deliverAll()
        clock.advance(by: .seconds(60))
        #expect(try await line(outbox) == "4 new messages")
    }

    @Test func anAttemptThatWasLostIsRepeatedForTheOthers() async throws {
        let outbox = try await outbox()
        let ids = try await merged(5, outbox, thread: "c1")
        _ = try await outbox.leaseAll()
        try await withdraw([ids[4]], outbox)
        try await outbox.reclaimLeases()
        #expect(try await line(outbox) == "4 new messages")
    }

    // MARK: When it is shown

    @Test func whatIsShownStaysForThreadsThatAreNotRead() async throws {
        let outbox = try await outbox()
        let ids = try await merged(30, outbox)
        #expect(try await deliver(outbox).shown.map(\.text.title) == ["29"])
        try await read(["t29"], outbox)
        var silent = try await deliver(outbox).silent
        #expect(silent.map(\.withdraw) == [[]] && silent.map(\.threads) == [nil])
        try await read((1..<29).map { "t\($0)" }, outbox)
        silent = try await deliver(outbox).silent
        #expect(silent.map(\.withdraw) == [[]])
        #expect(silent.first?.threads?.contains("t29") == false)
        // With the last of them it goes.
        try await read(["t0"], outbox)
        silent = try await deliver(outbox).silent
        #expect(silent.map(\.withdraw) == [[ids[29]]])
        #expect(silent.first?.threads?.contains("t29") == true && silent.first?.badge == 10)
    }

    @Test func aBurstThatIsShownIsRemovedWhenItsThreadIsRead() async throws {
        let outbox = try await outbox()
        let ids = try await merged(5, outbox, thread: "c1")
        _ = try await deliver(outbox)
        try await read(["c1"], outbox)
        let silent = try await deliver(outbox).silent
        #expect(silent.first?.withdraw?.first == ids[4] && silent.first?.withdraw?.count == 11)
        #expect(silent.map(\.threads) == [["c1"]])
    }

    /// Its words go, and the others do not.
    @Test(arguments: ["c1", nil]) func theOthersTakeThePlaceOfWordsThatAreTakenBack(thread: String?) async throws {
        let outbox = try await outbox()
        let ids = try await merged(30, outbox, thread: thread)
        #expect(try await deliver(outbox).shown.map(\.text.title) == ["29"])
        try await withdraw([ids[29]], outbox)
        #expect(outbox.pending == 2)
        let (shown, silent) = try await deliver(outbox)
        #expect(shown.map(\.text.title) == [nil] && shown.map(\.text.body) == ["29 new messages"])
        #expect(shown.map(\.notification) == [ids[29]] && !"\(shown)".contains("words"))
        #expect(shown.map(\.appearance.interruptionLevel) == [.passive] && shown.map(\.appearance.sound) == [nil])
        #expect(silent.map(\.withdraw) == [[]] && silent.map(\.threads) == [nil] && silent.first?.badge == 39)
        #expect(try hasNoRows(outbox))
        // With the last of them it goes.
        try await withdraw(Array(ids.dropLast()), outbox)
        #expect(try await deliver(outbox).silent.map(\.withdraw) == [[ids[29]]])
        #expect(outbox.pending == 0)
    }

    /// One transaction drops what waits in a lane and sends again what was shown: it must not wait behind the former.
    @Test func aLaneThatIsEmptiedAndFilledAtOnceGoesOn() async throws {
        let outbox = try await outbox()
        try await outbox.send("a")
        try await outbox.change { draft in
            let row = try #require(try draft.transaction.rows(RecordKey(.lane)).first)
            let waiting = try draft.transaction.record(DeliveryRecord.self, RecordKey(bytes: row.value))
            var again = try #require(waiting)
            #expect(try draft.withdraw(again))
            again.index += 1
            try draft.enqueue(again)
        }
        #expect(try await outbox.deliverAll().map(\.delivery.content.text.title) == ["a"])
        #expect(outbox.pending == 0)
    }

    @Test func wordsThatAreTakenBackAreRemovedWhereANewerOneWaits() async throws {
        let outbox = try await outbox()
        let ids = try await merged(30, outbox, key: "k")
        #expect(try await deliver(outbox).shown.map(\.text.title) == ["29"])
        var new = outbox.notification("newer", collapseKey: "k")
        new.options = Notifier.DeliveryOptions()
        _ = try await outbox.accept(new)
        try await withdraw([ids[29]], outbox)
        let silent = try await deliver(outbox).silent
        #expect(silent.flatMap { $0.withdraw ?? [] } == [ids[29]])
    }

    @Test func oneThatExpiredIsRemovedAlthoughItCountsOthers() async throws {
        let outbox = try await outbox()
        let ids = try await merged(5, outbox, thread: "c1")
        _ = try await deliver(outbox)
        clock.advance(by: .seconds(86_400))
        try await withdraw([ids[4]], outbox)
        let (shown, silent) = try await deliver(outbox)
        #expect(shown.isEmpty && silent.map(\.withdraw) == [[ids[4]]])
    }

    // MARK: By value

    @Test func countsAreThoseOfTheOwnThreadAndOfOthers() {
        let one = Pacing(thread: "a", isPaced: true)
        var all = one.merging(2, of: Pacing(thread: "a", isPaced: true).merging(1, of: one))
        #expect(all.count == 3 && all.ofOtherThreads == 0 && all.ofOthersAlone == nil)
        all = all.merging(3, of: Pacing(thread: "b", isPaced: true))
        #expect(all.count == 6 && all.ofOtherThreads == 3 && all.ofOthersAlone?.count == 3)
        all = all.without(oneOf: "b")
        #expect(all.count == 5 && all.ofOtherThreads == 2)
        all = all.without(oneOf: "a").takenBack
        #expect(all.count == 3 && all.ofOtherThreads == 2 && all.staysForOthers)
        for _ in 0..<9 { all = all.without(oneOf: "a") }
        #expect(all.count == 2 && all.ofOtherThreads == 2 && all.staysForOthers)
        for _ in 0..<9 { all = all.without(oneOf: "b") }
        #expect(all.count == 0 && all.ofOtherThreads == 0 && !all.staysForOthers)
        // Where an earlier version merged, it is not known which.
        let former = Pacing.fields.blank
        #expect(former.merging(0, of: nil) == former && !former.staysForOthers)
    }
}
