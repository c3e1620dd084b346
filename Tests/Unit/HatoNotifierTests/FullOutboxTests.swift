import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

/// When more deliveries wait than may, users with the most lose their oldest, and no other user notices.
@Suite(.timeLimit(.minutes(10))) struct FullOutboxTests {
    private let clock = TestClock()
    private let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 200))

    /// With devices d1 of u1, d2 of u2 and so on.
    private func outbox(_ store: any Store, pendingMax: Int, users: Int = 3) async throws -> Outbox {
        let outbox = try await Outbox.test(store, clock) { $0.limits.pendingMax = pendingMax }
        for user in 1...users { try await outbox.addDevice("d\(user)", of: "u\(user)") }
        return outbox
    }

    /// Delivers what is due until nothing is; returns the titles.
    private func deliverAll(_ outbox: Outbox) async throws -> [String] {
        var titles: [String] = []
        while true {
            let leases = try await outbox.lease(limit: 100).leases
            guard !leases.isEmpty else { return titles }
            for lease in leases { try await outbox.record(delivered, of: lease) }
            titles += leases.compactMap(\.delivery.content.text.title)
        }
    }

    private func reason(_ outbox: Outbox, _ notification: String) async throws -> String? {
        try await outbox.status(of: notification)?.deliveries.first?.reason
    }

    @Test func theUserWithTheMostLosesItsOldest() async throws {
        let outbox = try await outbox(MemoryStore(), pendingMax: 4)
        var many: [String] = []
        for title in ["1", "2", "3", "4"] { many.append(try await outbox.send(title)) }
        let other = try await outbox.send("a", to: ["u2"])
        #expect(try await reason(outbox, many[0]) == "outbox_full")
        #expect(outbox.pending == 4)
        let further = try await outbox.send("b", to: ["u2"])
        #expect(try await reason(outbox, many[1]) == "outbox_full")
        // The one with the most loses its own.
        try await outbox.send("5")
        try await outbox.send("6")
        #expect(outbox.pending == 4)
        for id in [other, further] { #expect(try await outbox.states(of: id) == [.pending]) }
        #expect(try await deliverAll(outbox).sorted() == ["5", "6", "a", "b"])
        #expect(outbox.pending == 0 && outbox.metrics.droppedCount == 4)
    }

    @Test func whatIsBeingAttemptedIsNotDropped() async throws {
        let outbox = try await outbox(MemoryStore(), pendingMax: 2)
        let first = try await outbox.send("1")
        let lease = try #require(try await outbox.lease(limit: 1).leases.first)
        let second = try await outbox.send("2")
        try await outbox.send("3", to: ["u2"])
        #expect(try await outbox.states(of: first) == [.leased])
        #expect(try await reason(outbox, second) == "outbox_full")
        try await outbox.record(.failed(DeliveryResponse(status: 500), retryAfter: nil), of: lease)
        clock.advance(by: .seconds(2))
        #expect(try await deliverAll(outbox).sorted() == ["1", "3"])
    }

    @Test func oneNotificationToMoreDevicesThanMayWaitIsBoundedToo() async throws {
        let outbox = try await outbox(MemoryStore(), pendingMax: 3, users: 5)
        try await outbox.send("1", to: (1...5).map { "u\($0)" })
        #expect(outbox.pending == 3)
        #expect(try await deliverAll(outbox) == ["1", "1", "1"])
    }

    @Test func aRepetitionOfADroppedNotificationIsKnown() async throws {
        let outbox = try await outbox(MemoryStore(), pendingMax: 1)
        let first = try await outbox.accept(outbox.notification("1", key: "k"))
        try await outbox.send("2")
        #expect(try await outbox.states(of: first.notification ?? "") == [.dropped])
        let again = try await outbox.accept(outbox.notification("1", key: "k"))
        #expect(again.isRepetition && again.notification == first.notification)
        #expect(try await deliverAll(outbox) == ["2"])
    }

    private func rowCount(_ store: any Store) async throws -> Int {
        try await store.read { try $0.rows(RecordKey(bytes: [])).count }
    }

    @Test func droppedNotificationIsDeletedSoonAndItsRepetitionsAreKnown() async throws {
        let store = try MemoryStore()
        let outbox = try await outbox(store, pendingMax: 1)
        let empty = try await rowCount(store)
        try await outbox.send("1")
        let other = try await rowCount(store) - empty
        let dropped = try await outbox.accept(outbox.notification("2", key: "k")).notification ?? ""
        for title in ["3", "4"] { try await outbox.send(title) }
        clock.advance(by: .seconds(3_590))
        _ = try await outbox.purge()
        #expect(try await reason(outbox, dropped) == "outbox_full")
        clock.advance(by: .seconds(3_611))
        _ = try await outbox.purge()
        #expect(try await outbox.status(of: dropped) == nil)
        // The key, and when to forget it.
        #expect(try await rowCount(store) == empty + other + 2)
        let again = try await outbox.accept(outbox.notification("2", key: "k"))
        #expect(again.isRepetition && again.notification == dropped)
        clock.advance(by: .seconds(9 * 86_400))
        #expect(try await deliverAll(outbox) == [])
        _ = try await outbox.purge()
        #expect(try await rowCount(store) == empty)
    }

    /// Else the parts that come would have no texts.
    @Test func aDroppedOneIsKeptWhilePartsOfItsNotificationAreToCome() async throws {
        let outbox = try await outbox(MemoryStore(), pendingMax: 2)
        let cursor = CursorRecord(version: 1, epoch: "e")
        try await outbox.change { $0.writes.put(CursorRecord.key("default"), cursor) }
        func accept(_ user: Int, isLast: Bool) async throws -> String {
            var new = outbox.notification("parts", key: "firing")
            new.recipients = .part(
                RecipientPart(
                    recipients: [
                        Recipient(
                            DeviceRecord(device: "d\(user)", uid: "u\(user)", platform: .webhook, createdAt: 0))
                    ], total: 2, leftOut: 0,
                    isLast: isLast))
            let rows = ChangeRows(outbox: outbox, database: .default)
            return try #require(try await rows.accept([new], of: []).notifications.first?.notification)
        }
        let first = try await accept(1, isLast: false)
        for title in ["1", "2"] { try await outbox.send(title) }
        #expect(try await reason(outbox, first) == "outbox_full")
        #expect(try await deliverAll(outbox) == ["1", "2"])
        clock.advance(by: .seconds(7_201))
        _ = try await outbox.purge()
        #expect(try await accept(2, isLast: true) == first)
        #expect(try await deliverAll(outbox) == ["parts"])
        #expect(try await outbox.status(of: first)?.deliveries.map(\.state) == [.dropped, .delivered])
    }

    @Test func aDroppedOneIsKeptWhileOthersOfItsNotificationWait() async throws {
        let outbox = try await outbox(MemoryStore(), pendingMax: 2)
        let both = try await outbox.send("1", to: ["u1", "u2"])
        try await outbox.send("2")
        #expect(try await outbox.states(of: both) == [.dropped, .pending])
        clock.advance(by: .seconds(7_201))
        _ = try await outbox.purge()
        #expect(try await outbox.states(of: both) == [.dropped, .pending])
        #expect(try await deliverAll(outbox).sorted() == ["1", "2"])
        clock.advance(by: .seconds(9 * 86_400))
        _ = try await outbox.purge()
        #expect(try await outbox.status(of: both) == nil)
    }

    @Test func whatTheSameTransactionLeasesIsNotDropped() async throws {
        let outbox = try await outbox(MemoryStore(), pendingMax: 1)
        let first = try await outbox.send("1")
        let new = outbox.notification("2")
        let (limits, policy) = (outbox.limits, outbox.policy)
        try await outbox.change { draft in
            let key = DeliveryRecord.key(first, 0)
            var delivery = try #require(try draft.transaction.record(DeliveryRecord.self, key))
            let dueKey = delivery.dueKey
            _ = delivery.machine.leaseRequested(at: draft.now, until: draft.now + 60_000)
            draft.moveHead(delivery, dueKey: dueKey)
            var acceptance = Acceptance(limits, policy)
            _ = try acceptance.accept(new, id: "new", in: &draft)
        }
        #expect(try await outbox.states(of: first) == [.leased])
        #expect(try await reason(outbox, "new") == "outbox_full")
        try await expectWhole(outbox)
    }

    @Test func aLowerLimitIsReachedInTransactionsOfBoundedSize() async throws {
        let store = try MemoryStore()
        let former = try await outbox(store, pendingMax: 1_000_000)
        for number in 0..<2_000 { try await former.send("\(number)") }
        clock.advance(by: .milliseconds(1))
        let version = store.version
        let outbox = try await Outbox.test(store, clock) { $0.limits.pendingMax = 10 }
        #expect(store.version >= version + 3)
        try await expectWhole(outbox)
        #expect(try await deliverAll(outbox).sorted() == (1_990..<2_000).map { "\($0)" })
    }

    @Test func lastLossesOfSomeUsersAreRemembered() throws {
        let counts = WaitingCounts(shareMax: 1)
        let users = (0..<300).map { UserDigest($0) }
        let row = RecordKey(.waiting)
        func lose(_ user: UserDigest, keeping: Bool = true) throws {
            try counts.transaction(keeping: keeping) { counts.lost(row, of: user) }
        }
        for user in users.prefix(2) { try lose(user) }
        try lose(users[2], keeping: false)
        #expect(throws: Refusal.self) {
            try counts.transaction {
                counts.lost(row, of: users[3])
                throw Refusal()
            }
        }
        #expect(users.prefix(5).map { counts.lastLost(by: $0) != nil } == [true, true, false, false, false])
        for user in users { try lose(user) }
        #expect((1...256).contains(users.count { counts.lastLost(by: $0) != nil }))
    }

    private struct Refusal: Error {}

    @Test func countsAreThoseOfTheRowsAfterTransactionsThatFail() async throws {
        let store = try MemoryStore()
        let outbox = try await outbox(store, pendingMax: 3)
        for title in ["1", "2"] { try await outbox.send(title) }
        try await outbox.send("a", to: ["u2"])
        await #expect(throws: Refusal.self) {
            let new = outbox.notification("never", to: ["u1", "u2", "u3"])
            let (limits, policy) = (outbox.limits, outbox.policy)
            try await outbox.change { draft in
                var acceptance = Acceptance(limits, policy)
                _ = try acceptance.accept(new, id: "never", in: &draft)
                try draft.dropExcess(1, policy)
                throw Refusal()
            }
        }
        let accepted = try await OutboxTrial(outbox).acceptance(of: outbox.notification("x", to: ["u1", "u2", "u3"]))
        #expect(accepted.recipients == 3)
        try await expectWhole(outbox)
        try await outbox.send("b", to: ["u2"])
        #expect(try await deliverAll(outbox).sorted() == ["2", "a", "b"])
    }

    @Test func rowsOfAnEarlierVersionAreCountedAtTheStart() async throws {
        let store = try MemoryStore()
        let former = try await outbox(store, pendingMax: 100)
        for number in 1...20 { try await former.send("\(number)", collapseKey: number > 10 ? "\(number)" : nil) }
        try await former.send("a", to: ["u2"])
        try await former.change { draft in
            for row in try draft.transaction.rows(RecordKey(.waiting)).dropFirst() { draft.writes.delete(row.key) }
            draft.writes.put(RecordKey(.waiting).with(7 as UInt64), bytes: [1])
        }
        clock.advance(by: .milliseconds(1))
        let outbox = try await outbox(store, pendingMax: 21)
        try await expectWhole(outbox)
        try await outbox.send("b", to: ["u2"])
        try await expectWhole(outbox)
        #expect(try await deliverAll(outbox).sorted() == ((2...20).map { "\($0)" } + ["a", "b"]).sorted())
    }

    @Test func rowsOfLanesThatDifferAreFoundThoughTheirCountsAreEqual() async throws {
        let store = try MemoryStore()
        let former = try await outbox(store, pendingMax: 100)
        for title in ["1", "2"] { try await former.send(title) }
        try await former.change { draft in
            for row in try draft.transaction.rows(RecordKey(.waiting), limit: 1) { draft.writes.delete(row.key) }
            draft.writes.put(RecordKey(.waiting).with(7 as UInt64), bytes: [1])
        }
        try await expectWhole(try await Outbox.test(store, clock))
    }

    @Test func aDeliveryThatCannotBeReadCausesNoWritesAtTheStart() async throws {
        let store = try MemoryStore()
        let former = try await outbox(store, pendingMax: 100)
        let id = try await former.send("1")
        for title in ["2", "3"] { try await former.send(title) }
        try await former.change { draft in
            for row in try draft.transaction.rows(RecordKey(.waiting), limit: 1) { draft.writes.delete(row.key) }
            draft.writes.put(DeliveryRecord.key(id, 0), bytes: [0])
        }
        let version = store.version
        let outbox = try await Outbox.test(store, clock)
        #expect(store.version == version && outbox.waiting.total == 2)
    }

    /// Expects that the counts are those of the rows, and that each lane has one row where its head is due.
    private func expectWhole(_ outbox: Outbox, _ comment: Comment? = nil) async throws {
        let counted = try await WaitingCounts.of(outbox.store, shareMax: outbox.limits.pendingShareMax)
        try await outbox.store.read { snapshot in
            var heads: [Lane: RecordKey] = [:]
            var users: [UserDigest: Int] = [:]
            let rows = try snapshot.rows(RecordKey(.lane))
            for row in rows {
                let key = RecordKey(bytes: row.value)
                let delivery = try #require(try snapshot.record(DeliveryRecord.self, key))
                users[delivery.owner, default: 0] += 1
                #expect(try snapshot.value(delivery.waitingKey) == row.key.bytes, comment)
                guard heads.updateValue(heads[delivery.lane] ?? key, forKey: delivery.lane) == nil else { continue }
                #expect(try snapshot.value(delivery.dueKey) == key.bytes, comment)
            }
            #expect(try snapshot.count(.due) + snapshot.count(.parked) == heads.count, comment)
            #expect(try snapshot.count(.waiting) == rows.count, comment)
            #expect(outbox.pending == rows.count && outbox.waiting.total == rows.count, comment)
            #expect(rows.count <= outbox.limits.pendingMax, comment)
            #expect(outbox.waiting.boundedTotal == counted.boundedTotal, comment)
            for counts in [outbox.waiting, counted] { expectOrder(counts, users, comment) }
        }
    }

    /// Expects that the users with the most come first.
    private func expectOrder(_ counts: WaitingCounts, _ users: [UserDigest: Int], _ comment: Comment?) {
        var passed: Set<UserDigest> = []
        var sizes: [Int] = []
        while let user = counts.longest(besides: passed) {
            passed.insert(user)
            sizes.append(users[user] ?? 0)
        }
        #expect(passed == Set(users.keys) && sizes == users.values.sorted(by: >), comment)
    }

    @Test(arguments: 1...10) func lanesAndCountsStayWholeWhateverHappens(_ seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        let store = try MemoryStore()
        var outbox = try await outbox(store, pendingMax: 12, users: 5)
        try await outbox.addDevice("d1-b", of: "u1")
        var leases: [Lease] = []
        for step in 0..<100 {
            let users = (0...Int.random(in: 0...3, using: &random)).map { _ in
                "u\(min(Int.random(in: 1...5, using: &random), Int.random(in: 1...5, using: &random)))"
            }
            switch Int.random(in: 0..<12, using: &random) {
            case 0...4:
                let key = ["room", "other", nil, nil].randomElement(using: &random) ?? nil
                try await outbox.send("\(step)", to: users, collapseKey: key)
            case 5, 6: leases += try await outbox.lease(limit: 2).leases
            case 7, 8:
                guard let lease = leases.popLast() else { break }
                let failed = DeliveryOutcome.failed(DeliveryResponse(status: 500), retryAfter: nil)
                try await outbox.record(Bool.random(using: &random) ? failed : delivered, of: lease)
            case 9: clock.advance(by: .seconds(Int64.random(in: 1...4_000, using: &random)))
            case 10: _ = try await outbox.replay(.all)
            default:
                guard Int.random(in: 0..<4, using: &random) == 0 else { break }
                // Names begin anew with each outbox of a test.
                clock.advance(by: .milliseconds(1))
                outbox = try await Outbox.test(store, clock) { $0.limits.pendingMax = 12 }
                leases = []
            }
            try await expectWhole(outbox, "step \(step)")
        }
        clock.advance(by: .seconds(40_000))
        for _ in 0..<50 where outbox.pending > 0 {
            clock.advance(by: .seconds(61))
            _ = try await deliverAll(outbox)
        }
        try await expectWhole(outbox)
    }

    /// What expired, and what waits for a device that is gone, ends in pages.
    @Test(arguments: [true, false]) func manyDeadHeadsEndInFewTransactions(_ isExpired: Bool) async throws {
        let store = try MemoryStore()
        let outbox = try await outbox(store, pendingMax: 1_000_000)
        for number in 0..<1_500 { try await outbox.send("\(number)") }
        try await outbox.send("other", to: ["u2"])
        if isExpired {
            clock.advance(by: .seconds(86_400))
            try await outbox.send("behind")
        } else {
            try await outbox.change { $0.writes.delete(DeviceRecord.key("d1")) }
        }
        let version = store.version
        while outbox.pending > (isExpired ? 1 : 0) {
            let leases = try await outbox.lease(limit: 1).leases
            for lease in leases where lease.delivery.content.text.title == "other" {
                try await outbox.record(delivered, of: lease)
            }
            try #require(store.version < version + 20)
        }
        try await expectWhole(outbox)
    }

    /// A user whose receivers fail fills the outbox; all others send and are notified as before, by triggers too.
    @Test func aFullOutboxStopsNoFeedAndNoSend() async throws {
        let gate = Gate()
        let channel = ScriptedChannel(gate: gate) { $0.content.uid == "hangs" }
        let store = StayingOpen(try MemoryStore())
        var notifier = try await TestNotifier.start(store: store, channels: [channel]) { $0.limits.pendingMax = 40 }
        for number in 0..<4 { try await notifier.addDevice(of: "hangs", at: "http://127.0.0.1:1/\(number)") }
        try await notifier.addDevice(of: "honest", at: "http://127.0.0.2:1/")
        try await notifier.setTrigger(recipients: .init(uids: ["hangs", "honest"]))
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        func honest() -> [String] {
            channel.deliveries.filter { $0.content.uid == "honest" }.map { $0.content.text.body ?? "" }
        }
        for number in 0..<30 {
            notifier.messages.push("\(number)")
            try await eventually("the honest user's is delivered") { honest().last == "\(number)" }
        }
        #expect(try await notifier.stats.pending <= 40)
        #expect(try await notifier.client.call(sending("direct")).recipients == 1)
        try await eventually("it is delivered") { honest().last == "direct" }
        await notifier.client.close()
        gate.open()
        await notifier.stop(keepingMessages: true)
        notifier = try await TestNotifier.start(messages: notifier.messages, store: store, channels: [channel]) {
            $0.limits.pendingMax = 40
        }
        try await eventually("the feed is followed") { try await notifier.isFollowing() }
        _ = try await notifier.client.call(sending("after the start"))
        try await eventually("it is delivered") { honest().last == "after the start" }
        await notifier.stop()
    }

    private func sending(_ body: String) -> Notifier.Send {
        .init(to: .init(uids: ["honest"]), notification: .init(title: "", body: body))
    }
}
