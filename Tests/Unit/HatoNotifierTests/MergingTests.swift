import HatoModel
import HatoPush
import HatoStorage
import Testing

@testable import HatoNotifier

/// How often devices and users are sent something, and what becomes of the rest.
@Suite(.timeLimit(.minutes(10))) struct MergingTests {
    private let clock = TestClock()

    private func send(
        _ title: String, _ outbox: Outbox, thread: String? = "c1", key: String? = nil, summary: String? = nil
    ) async throws -> String {
        var new = outbox.notification(title, collapseKey: key)
        new.text.body = "\(title)!"
        var options = Notifier.DeliveryOptions()
        (options.thread, options.summary) = (thread, summary)
        new.options = options
        return try #require(try await outbox.accept(new).notification)
    }

    /// Delivers what is due, and waits for what is not, until nothing waits; returns what went out, and when.
    private func drain(_ outbox: Outbox) async throws -> [(content: DeliveryContent, at: Int64)] {
        var sent: [(DeliveryContent, Int64)] = []
        while true {
            sent += try await outbox.deliverAll().map { ($0.delivery.content, clock.now) }
            guard let next = try await outbox.counts().nextDueAt else { return sent }
            try #require(next > clock.now, "something is due and does not go")
            clock.advance(by: .milliseconds(next - clock.now))
        }
    }

    /// How many notifications one shows.
    private func count(_ content: DeliveryContent) -> Int {
        content.text.body?.wholeMatch(of: #/(\d+) new messages\n.*/#).flatMap { Int($0.output.1) } ?? 1
    }

    private func hasNoRows(_ outbox: Outbox) throws -> Bool {
        let snapshot = try outbox.store.snapshot()
        return try [RecordKey.Table.thread, .lane, .due, .queued, .leased, .waiting].allSatisfy {
            try snapshot.count($0) == 0
        } && outbox.pending == 0
    }

    @Test func aBurstInARoomIsFewPushesThatCountAll() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        var (sent, ids): ([DeliveryContent], [String]) = ([], [])
        for index in 0..<200 {
            ids.append(try await send("m\(index)", outbox))
            if index % 10 == 9 {
                sent += try await outbox.deliverAll().map(\.delivery.content)
                clock.advance(by: .milliseconds(100))
            }
        }
        #expect(sent.count == 10)
        sent += try await drain(outbox).map(\.content)
        #expect(sent.count <= 12, "\(sent.count) pushes")
        #expect(sent.reduce(0) { $0 + count($1) } == 200)
        #expect(sent.last?.text.title == "m199" && sent.last?.text.body == "190 new messages\nm199!")
        #expect(try await outbox.states(of: ids[199]) == [.delivered])
        let merged = try await outbox.status(of: ids[50])?.deliveries.first
        #expect(merged?.state == .dropped && merged?.reason == "coalesced" && merged?.attempts == 0)
        #expect(try hasNoRows(outbox))
    }

    @Test func threadsMergeEachAndTheirLaneKeepsItsOrder() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        for index in 0..<60 { _ = try await send("\(index)", outbox, thread: "c\(index % 3)") }
        let sent = try await drain(outbox).map(\.content)
        #expect(sent.map { $0.text.title } == (0..<10).map { "\($0)" } + ["57", "58", "59"])
        #expect(sent.suffix(3).map(count) == [16, 17, 17])
        #expect(try hasNoRows(outbox))
    }

    @Test func lanesOfOneThreadMerge() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        for index in 0..<10 { _ = try await send("\(index)", outbox, thread: nil) }
        #expect(try await outbox.deliverAll().count == 10)
        let start = clock.now
        for key in ["k1", "k2", "k3"] { _ = try await send(key, outbox, key: key) }
        #expect(try await outbox.deliverAll().isEmpty)
        // The newest one with a key takes the place of those that wait, and counts those that were held back.
        _ = try await send("k1 again", outbox, key: "k1")
        _ = try await send("no key", outbox)
        _ = try await send("other", outbox, thread: "c2")
        let sent = try await drain(outbox)
        #expect(sent.map(\.content.text.title) == ["no key", "other"])
        #expect(sent.map { count($0.content) } == [5, 1])
        // The turns of those that went into it are not lost.
        #expect(sent.map { $0.at - start } == [3_000, 6_000])
        #expect(try hasNoRows(outbox))
    }

    @Test func aNewerOneWithTheKeyWaitsAsLongAsTheOneThatWasHeldBack() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        for index in 0..<10 { _ = try await send("\(index)", outbox, thread: nil) }
        _ = try await outbox.deliverAll()
        let start = clock.now
        for index in 0..<50 {
            _ = try await send("\(index)", outbox, thread: nil, key: "k")
            #expect(try await outbox.deliverAll().isEmpty)
        }
        let sent = try await drain(outbox)
        #expect(sent.map(\.content.text.title) == ["49"] && sent.map { $0.at - start } == [3_000])
        #expect(sent.first?.content.text.body == "49!")
    }

    @Test func withoutAThreadTheyGoOneAfterTheOther() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        let start = clock.now
        for index in 0..<14 { _ = try await send("\(index)", outbox, thread: nil) }
        let sent = try await drain(outbox)
        #expect(sent.map(\.content.text.title) == (0..<14).map { "\($0)" })
        #expect(sent.map { $0.at - start } == Array(repeating: 0, count: 10) + [3_000, 6_000, 9_000, 12_000])
    }

    @Test func aBurstWithoutAThreadIsPacedToo() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        let start = clock.now
        for index in 0..<200 { _ = try await send("\(index)", outbox, thread: nil) }
        let sent = try await drain(outbox)
        #expect(sent.map(\.content.text.title) == (0..<200).map { "\($0)" })
        #expect(sent.map { $0.at - start } == (0..<200).map { max(0, $0 - 9) * 3_000 })
    }

    @Test func aLongLaneMergesInFewTransactions() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        for index in 0..<10 { _ = try await send("\(index)", outbox, thread: nil) }
        _ = try await outbox.deliverAll()
        try await outbox.change { [clock] draft in
            var acceptance = Acceptance(NotifierLimits(), DeliveryPolicy())
            for index in 0..<3_000 {
                var new = NewNotification(
                    recipients: .uids(["u1"]), text: .init(title: "\(index)", body: "b"), createdAt: clock.now,
                    expiresAt: clock.now + 86_400_000)
                new.options = Notifier.DeliveryOptions()
                new.options?.thread = "c1"
                _ = try acceptance.accept(new, id: "n\(index)", in: &draft)
            }
        }
        let version = outbox.store.version
        let sent = try await drain(outbox).map(\.content)
        #expect(sent.map(\.text.body) == ["3000 new messages\nb"] && sent.first?.text.title == "2999")
        #expect(outbox.store.version - version < 30)
        #expect(try hasNoRows(outbox))
    }

    @Test func aUserWithManyPhonesIsSentFewAtOnce() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) {
            ($0.limits.userBurstMax, $0.limits.userIntervalMs) = (5, 2_000)
        }
        for index in 0..<4 { try await outbox.addPhone("p\(index)", of: "u1") }
        try await outbox.addPhone("q", of: "u2")
        let start = clock.now
        _ = try await outbox.accept(outbox.notification("a", to: ["u1", "u2"]))
        _ = try await outbox.accept(outbox.notification("b", to: ["u1", "u2"]))
        let sent = try await drain(outbox)
        #expect(sent.count == 10)
        #expect(sent.filter { $0.content.uid == "u1" }.map { $0.at - start } == [0, 0, 0, 0, 0, 2_000, 4_000, 6_000])
        #expect(sent.filter { $0.content.uid == "u2" }.allSatisfy { $0.at == start })
    }

    @Test func webhooksAreSentAll() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        for index in 0..<50 { _ = try await send("\(index)", outbox) }
        #expect(try await outbox.deliverAll().map { $0.delivery.content.text.title } == (0..<50).map { "\($0)" })
    }

    @Test func anAttemptThatFailedHasItsTurnAlready() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) { $0.limits.deviceBurstMax = 1 }
        try await outbox.addPhone("p1", of: "u1")
        _ = try await send("a", outbox)
        let lease = try #require(try await outbox.leaseAll().first)
        try await outbox.record(ScriptedChannel.busy, of: lease)
        clock.advance(by: .milliseconds(1_001))
        #expect(try await outbox.deliverAll().map(\.delivery.content.text.title) == ["a"])
    }

    @Test func whatWasHeldBackKeepsItsTurnOverARestart() async throws {
        let store = try MemoryStore()
        let outbox = try await Outbox.test(store, clock)
        try await outbox.addPhone("p1", of: "u1")
        let start = clock.now
        for index in 0..<15 { _ = try await send("\(index)", outbox) }
        #expect(try await outbox.deliverAll().count == 10)
        let next = try await Outbox.test(store, clock)
        #expect(try await next.deliverAll().isEmpty)
        let sent = try await drain(next)
        #expect(sent.map { count($0.content) } == [5] && sent.map { $0.at - start } == [3_000])
    }

    @Test func whatIsDroppedLeavesNothingOfItsThread() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) { $0.limits.pendingMax = 5 }
        try await outbox.addPhone("p1", of: "u1")
        for index in 0..<10 { _ = try await send("\(index)", outbox, thread: nil) }
        _ = try await outbox.deliverAll()
        clock.advance(by: .seconds(60))
        for index in 0..<40 {
            _ = try await send("\(index)", outbox)
            if index == 20 { _ = try await outbox.deliverAll() }
        }
        #expect(try outbox.store.snapshot().count(.thread) == 5)
        try await outbox.dropDeliveries(of: "p1")
        #expect(try hasNoRows(outbox))
    }

    @Test func theSummaryIsTheSendersOrInTheLanguageOfTheDevice() {
        #expect(MergeSummary.text(count: 3, template: nil, locale: "ja-JP") == "新着メッセージ3件")
        #expect(MergeSummary.text(count: 3, template: nil, locale: "JA") == "新着メッセージ3件")
        #expect(MergeSummary.text(count: 3, template: nil, locale: "jam") == "3 new messages")
        #expect(MergeSummary.text(count: 3, template: nil, locale: nil) == "3 new messages")
        #expect(MergeSummary.text(count: 3, template: "{count}枚の写真", locale: "en") == "3枚の写真")
        #expect(MergeSummary.text(count: 1, template: nil, locale: "en") == "1 new message")
        #expect(MergeSummary.text(count: 1, template: nil, locale: "ja") == "新着メッセージ1件")
    }

    @Test func aSummaryOfTheSenderIsShown() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) { $0.limits.deviceBurstMax = 1 }
        try await outbox.addPhone("p1", of: "u1")
        for index in 0..<4 { _ = try await send("\(index)", outbox, summary: "{count}枚") }
        #expect(try await drain(outbox).map(\.content.text.body) == ["0!", "3枚\n3!"])
    }

    @Test func whatSaysNoWordsSaysHowManyItIs() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) { $0.limits.deviceBurstMax = 1 }
        try await outbox.addPhone("p1", of: "u1")
        for title in ["a", "b", "c"] {
            var new = outbox.notification(title)
            var options = Notifier.DeliveryOptions()
            (options.thread, options.summary) = ("c1", "{count} words")
            (new.options, new.content) = (options, .ids)
            _ = try await outbox.accept(new)
        }
        let sent = try await drain(outbox).map(\.content)
        #expect(sent.map(\.neutralText) == ["New message", "2 new messages"])
        #expect(sent.allSatisfy { $0.text == .init() })
    }

    @Test func aBucketGivesTurnsAndTakesThemBack() {
        let rate = BucketRate(burst: 2, interval: 100)
        var bucket = TokenBucket()
        var turns: [Int64] = []
        for _ in 0..<4 {
            let turn = bucket.next(at: 1_000, rate)
            bucket.take(at: turn, rate)
            turns.append(turn)
        }
        #expect(turns == [1_000, 1_000, 1_100, 1_200])
        bucket.giveBack(rate)
        #expect(bucket.next(at: 1_000, rate) == 1_200)
        #expect(bucket.next(at: 1_250, rate) == 1_250)
        #expect(TokenBucket().next(at: 7, BucketRate(burst: 1, interval: 0)) == 7)
    }
}
