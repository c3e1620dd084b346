import Foundation
import HatoModel
import HatoPush
import HatoRocksDB
import HatoStorage
import Testing

@testable import HatoNotifier

@Suite(.timeLimit(.minutes(10))) struct OutboxTests {
    private let clock = TestClock()
    private let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 200))

    /// Leases what is due and answers each with `outcome`; returns the titles.
    @discardableResult
    private func round(_ outbox: Outbox, _ outcome: DeliveryOutcome) async throws -> [String] {
        let leases = try await outbox.lease(limit: 100).leases
        for lease in leases { try await outbox.record(outcome, of: lease) }
        return leases.compactMap(\.delivery.content.text.title)
    }

    @Test func everyActiveDeviceOfEveryRecipientGetsADelivery() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        for (name, uid) in [("d1", "u1"), ("d2", "u1"), ("d3", "u2"), ("d4", "u3")] {
            try await outbox.addDevice(name, of: uid)
        }
        let accepted = try await outbox.accept(outbox.notification("a", to: ["u1", "u2", "u1", "nobody"]))
        #expect(accepted.recipients == 3)
        #expect(
            try await outbox.lease(limit: 100).leases.map(\.delivery.content.device).sorted() == ["d1", "d2", "d3"])
        #expect(outbox.pending == 3)
    }

    @Test func anIdempotencyKeyIsAcceptedOnceWithinADay() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        let first = try await outbox.accept(outbox.notification("a", key: "k"))
        let second = try await outbox.accept(outbox.notification("a", key: "k"))
        #expect(second.notification == first.notification && second.isRepetition && second.recipients == 1)
        await #expect(throws: OutboxRefusal.idempotencyKeyReused) {
            try await outbox.accept(outbox.notification("b", key: "k"))
        }
        #expect(try await round(outbox, delivered) == ["a"])
        clock.advance(by: .seconds(86_401))
        let third = try await outbox.accept(outbox.notification("b", key: "k"))
        #expect(!third.isRepetition && third.notification != first.notification)
    }

    @Test func oneLaneHasOneAttemptInFlightAndKeepsItsOrder() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        try await outbox.addDevice("d2", of: "u2")
        for title in ["a", "b", "c"] { try await outbox.send(title, to: ["u1", "u2"]) }
        let first = try await outbox.lease(limit: 100).leases
        #expect(first.map(\.delivery.content.text.title) == ["a", "a"])
        #expect(try await outbox.lease(limit: 100).leases.isEmpty)
        for lease in first {
            let isBusy = lease.delivery.content.device == "d1"
            try await outbox.record(isBusy ? ScriptedChannel.busy : delivered, of: lease)
        }
        // d1 holds its order back, d2 goes on.
        let second = try await outbox.lease(limit: 100).leases
        #expect(second.map(\.delivery.content.device) == ["d2"] && second.first?.delivery.content.text.title == "b")
        clock.advance(by: .seconds(1))
        #expect(try await outbox.lease(limit: 100).leases.map(\.delivery.content.text.title) == ["a"])
    }

    @Test func theNextDueTimeIsThatOfTheFirstDeliveryThatWaits() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        try await outbox.addDevice("d2", of: "u2")
        #expect(try await outbox.counts().nextDueAt == nil)
        try await outbox.send("a", to: ["u1"])
        let began = clock.now
        #expect(try await outbox.counts().nextDueAt == began)
        // Being attempted, it waits for nothing: the end of its lease is not when something is due.
        let lease = try #require(try await outbox.lease(limit: 1).leases.first)
        #expect(try await outbox.counts().nextDueAt == nil)
        // What stands behind it waits, since it was accepted.
        clock.advance(by: .seconds(1))
        try await outbox.send("b", to: ["u1"])
        #expect(try await outbox.counts().nextDueAt == began + 1_000)
        clock.advance(by: .seconds(1))
        try await outbox.record(.failed(DeliveryResponse(status: 503), retryAfter: .seconds(30)), of: lease)
        #expect(try await outbox.counts().nextDueAt == began + 32_000)
        try await outbox.send("c", to: ["u2"])
        #expect(try await outbox.counts().nextDueAt == began + 2_000)
        try await round(outbox, delivered)
        #expect(try await outbox.counts().nextDueAt == began + 32_000)
        clock.advance(by: .seconds(30))
        for _ in 1...2 { try await round(outbox, delivered) }
        #expect(try await outbox.counts().nextDueAt == nil)
    }

    @Test func whatWaitsForADeviceThatIsGoneIsDroppedInPagesAndLeavesNothing() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        let device = try await outbox.addDevice("d1", of: "u1")
        let leased = try await outbox.send("leased", collapseKey: "a")
        let lease = try #require(try await outbox.lease(limit: 1).leases.first)
        for index in 1...1_200 { try await outbox.send("\(index)") }
        let behind = try await outbox.send("behind", collapseKey: "a")
        try await outbox.change { $0.writes.delete(device.key) }
        try await outbox.dropDeliveries(of: "d1")
        #expect(outbox.pending == 1)
        #expect(try await outbox.states(of: behind) == [.dropped])
        // The attempt that was under way counts if it was heard, and is not made again.
        try await outbox.record(ScriptedChannel.busy, of: lease)
        #expect(try await outbox.states(of: leased) == [.dropped])
        let counts = try await outbox.counts()
        #expect(counts.pending == 0 && counts.leased == 0 && counts.nextDueAt == nil && outbox.pending == 0)
    }

    @Test func underACollapseKeyTheNewestReplacesWhatWasNotSent() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        let first = try await outbox.send("1", collapseKey: "room")
        let other = try await outbox.send("other")
        let second = try await outbox.send("2", collapseKey: "room")
        #expect(try await outbox.states(of: first) == [.dropped])
        let leases = try await outbox.lease(limit: 100).leases
        #expect(Set(leases.compactMap(\.delivery.content.text.title)) == ["other", "2"])
        // What is being attempted is not replaced; what waits behind it is.
        let third = try await outbox.send("3", collapseKey: "room")
        let fourth = try await outbox.send("4", collapseKey: "room")
        #expect(try await outbox.states(of: third) == [.dropped])
        for lease in leases { try await outbox.record(delivered, of: lease) }
        #expect(try await round(outbox, delivered) == ["4"])
        for id in [other, second, fourth] { #expect(try await outbox.states(of: id) == [.delivered]) }
        #expect(outbox.pending == 0)
    }

    @Test func replacingDoesNotCallAFailingReceiverSooner() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        try await outbox.send("1", collapseKey: "room")
        try await round(outbox, .failed(DeliveryResponse(status: 503), retryAfter: .seconds(100)))
        try await outbox.send("2", collapseKey: "room")
        #expect(try await round(outbox, delivered).isEmpty)
        clock.advance(by: .seconds(100))
        #expect(try await round(outbox, delivered) == ["2"])
    }

    @Test func aBatchMayReplaceWithinItself() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        try await outbox.change { $0.writes.put(CursorRecord.key("default"), CursorRecord.beginning) }
        let new = ["1", "2", "3"].map { outbox.notification($0, collapseKey: "room") }
        _ = try await ChangeRows(outbox: outbox, database: .default).accept(new, of: [])
        #expect(outbox.pending == 1)
        #expect(try await round(outbox, delivered) == ["3"])
        #expect(try await outbox.counts().pending == 0)
    }

    @Test func failuresAreRetriedUntilTheDeliveryHasExpired() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        let id = try await outbox.send("a")
        var ids: Set<String> = []
        // With the longest waits: ten doubling to ten minutes, then one each ten minutes until the day is over.
        for _ in 0..<153 {
            let lease = try #require(try await outbox.lease(limit: 1).leases.first)
            ids.insert(lease.delivery.id)
            try await outbox.record(ScriptedChannel.busy, of: lease)
            guard let next = try await outbox.counts().nextDueAt else { break }
            clock.advance(by: .milliseconds(next - clock.now))
        }
        #expect(ids == ["\(id)-0"])
        #expect(try await outbox.states(of: id) == [.dead])
        #expect(try await outbox.lease(limit: 1).leases.isEmpty)
        let letters = try await outbox.deadLetters(after: nil, limit: 10).dead
        #expect(letters.map(\.delivery) == ["\(id)-0"] && letters.first?.lastAttempt?.status == 500)
        #expect(letters.first.map { $0.attempts > 100 && $0.reason == "expired" } == true)
        let history = try await outbox.status(of: id)?.deliveries.first?.history
        #expect(history?.count == 11 && history?.last?.status == 500)
    }

    @Test func deadLettersArePagedReplayedAndDropped() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        var ids: [String] = []
        for title in ["a", "b", "c"] {
            ids.append(try await outbox.send(title))
            try await round(outbox, ScriptedChannel.wrong)
            clock.advance(by: .seconds(1))
        }
        let first = try await outbox.deadLetters(after: nil, limit: 2)
        #expect(first.dead.compactMap(\.title) == ["a", "b"])
        let rest = try await outbox.deadLetters(after: first.after, limit: 2)
        #expect(rest.dead.compactMap(\.title) == ["c"] && rest.after == nil)
        #expect(outbox.deadCount == 3)
        #expect(try await Outbox.test(outbox.store, clock).deadCount == 3, "counted when it is opened")

        #expect(try await outbox.replay(.these(["\(ids[1])-0", "\(ids[1])-0"])) == 1)
        #expect(try await round(outbox, delivered) == ["b"])
        #expect(try await outbox.drop(.these(["\(ids[0])-0"])) == 1)
        #expect(try await outbox.states(of: ids[0]) == [.dropped])
        #expect(try await outbox.deadCount == outbox.counts().dead)
        #expect(try await outbox.replay(.all) == 1)
        #expect(try await round(outbox, delivered) == ["c"])
        #expect(try await outbox.counts().dead == 0 && outbox.deadCount == 0)
        #expect(try await outbox.replay(.all) == 0)
    }

    /// As a notification without a time to live of its own.
    @Test func whatIsReplayedLivesNoLongerThanTheLimit() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) { $0.limits.timeToLiveSecondsMax = 60 }
        try await outbox.addDevice("d1", of: "u1")
        let id = try await outbox.send("a")
        try await round(outbox, ScriptedChannel.wrong)
        #expect(try await outbox.replay(.these(["\(id)-0"])) == 1)
        clock.advance(by: .seconds(61))
        #expect(try await round(outbox, delivered) == [])
        #expect(try await outbox.states(of: id) == [.dropped])
    }

    @Test func aReceiverThatIsGoneDisablesItsDevice() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        let first = try await outbox.send("a")
        let second = try await outbox.send("b")
        try await round(outbox, .deviceGone(DeliveryResponse(status: 410), since: nil))
        #expect(try await round(outbox, delivered).isEmpty)
        #expect(try await outbox.states(of: first) == [.dropped])
        #expect(try await outbox.states(of: second) == [.dropped])
        let device = try await outbox.store.read { try $0.record(DeviceRecord.self, DeviceRecord.key("d1")) }
        #expect(device?.state == .disabled && device?.disabledReason == "gone")
        #expect(try await outbox.accept(outbox.notification("c")).recipients == 0)
    }

    @Test func aDeviceThatOnlyFailsForDaysIsDisabled() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        for _ in 1...6 {
            try await outbox.send("a", collapseKey: "k")
            clock.advance(by: .seconds(86_400))
            try await outbox.send("b", collapseKey: "k")
            try await round(outbox, ScriptedChannel.busy)
        }
        let device = try await outbox.store.read { try $0.record(DeviceRecord.self, DeviceRecord.key("d1")) }
        #expect(device?.state == .disabled && device?.disabledReason == "failing")
    }

    @Test func whatExpiredUnsentIsDropped() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        let accepted = try await outbox.accept(outbox.notification("a", timeToLive: .seconds(10)))
        clock.advance(by: .seconds(10))
        #expect(try await round(outbox, delivered).isEmpty)
        #expect(try await outbox.states(of: accepted.notification ?? "") == [.dropped])
        #expect(outbox.pending == 0)
    }

    @Test func aResultThatComesAfterItsLeaseLapsedChangesNothing() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        let id = try await outbox.send("a")
        let first = try #require(try await outbox.lease(limit: 1).leases.first)
        clock.advance(by: .seconds(60))
        let second = try #require(try await outbox.lease(limit: 1).leases.first)
        #expect(second.delivery.id == first.delivery.id)
        try await outbox.record(ScriptedChannel.busy, of: first)
        #expect(try await outbox.states(of: id) == [.leased])
        try await outbox.record(delivered, of: second)
        #expect(try await outbox.states(of: id) == [.delivered])
    }

    @Test func leasingReturnsWhenTheNextIsDue() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        for name in ["d1", "d2"] { try await outbox.addDevice(name, of: name) }
        try await outbox.send("a", to: ["d1"])
        try await round(outbox, .failed(DeliveryResponse(), retryAfter: .seconds(30)))
        try await outbox.send("b", to: ["d2"])
        let round = try await outbox.lease(limit: 1)
        #expect(round.isFull && round.leases.count == 1)
        #expect(round.nextDueAt == clock.now + 30_000)
        #expect(try await outbox.lease(limit: 1).nextDueAt == clock.now + 30_000)
    }

    @Test func anAttemptThatDidNotReachItsReceiverDoesNotCount() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) {
            $0.delivery.disableAfter = .seconds(1)
        }
        try await outbox.addDevice("d1", of: "u1")
        let id = try await outbox.send("a")
        for _ in 0..<3 {
            try await round(outbox, .postponed(DeliveryResponse(error: "too many names wait")))
            clock.advance(by: .seconds(14))
            #expect(try await outbox.lease(limit: 1).leases.isEmpty, "it is not tried at once")
            clock.advance(by: .seconds(30))
        }
        #expect(try await outbox.status(of: id)?.deliveries.first?.attempts == 0)
        #expect(try await round(outbox, delivered) == ["a"])
    }

    @Test func oldRowsAreDeleted() async throws {
        let store = try MemoryStore()
        let outbox = try await Outbox.test(store, clock)
        try await outbox.addDevice("d1", of: "u1")
        let kept = try await store.read { try $0.rows(RecordKey(bytes: [])).count }
        let sent = try await outbox.accept(outbox.notification("a", key: "k")).notification ?? ""
        try await round(outbox, delivered)
        let dead = try await outbox.send("b")
        try await round(outbox, ScriptedChannel.wrong)
        clock.advance(by: .seconds(8 * 86_400) + .seconds(1))
        let next = try await outbox.purge()
        #expect(try await outbox.status(of: sent) == nil)
        #expect(try await outbox.states(of: dead) == [.dead])
        #expect(try #require(next) > clock.now)
        clock.advance(by: .seconds(30 * 86_400))
        #expect(try await outbox.purge() == nil)
        #expect(try await outbox.status(of: dead) == nil)
        #expect(try await store.read { try $0.rows(RecordKey(bytes: [])).count } == kept)
        #expect(try #require(store.keptCommits.oldest) > 1)
    }

    @Test func deletedNotificationKeepsTheKeyOfALaterOne() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        _ = try await outbox.accept(outbox.notification("a", key: "k"))
        #expect(try await round(outbox, delivered) == ["a"])
        clock.advance(by: .seconds(7 * 86_400 - 3_600))
        let second = try await outbox.accept(outbox.notification("b", key: "k"))
        #expect(!second.isRepetition)
        clock.advance(by: .seconds(7_200))
        _ = try await outbox.purge()
        let repetition = try await outbox.accept(outbox.notification("b", key: "k"))
        #expect(repetition.isRepetition && repetition.notification == second.notification)
    }

    @Test func unfinishedDeliveriesAreNotDeleted() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        let id = try await outbox.send("a")
        clock.advance(by: .seconds(20 * 86_400))
        _ = try await outbox.purge()
        #expect(try await outbox.states(of: id) == [.pending])
    }

    @Test(arguments: ["memory", "rocksdb"])
    func afterACrashWhatWasAttemptedIsAttemptedAgainAndWhatWasDeliveredIsNot(_ kind: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "hato-outbox-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let memory = try MemoryStore()
        func open() throws -> any Store {
            if kind == "memory" { memory } else { try RocksDBStore.open(folder: folder) }
        }
        var store = try open()
        var outbox = try await Outbox.test(store, clock)
        try await outbox.addDevice("d1", of: "u1")
        try await outbox.addDevice("d2", of: "u2")
        let first = try await outbox.send("first", to: ["u1", "u2"])
        try await outbox.send("second", to: ["u1"])
        let leases = try await outbox.lease(limit: 10).leases
        #expect(leases.count == 2)
        let done = try #require(leases.first { $0.delivery.content.device == "d2" })
        try await outbox.record(delivered, of: done)
        // The process ends here: the attempt at d1 is lost with it.
        if kind == "rocksdb" { store.close() }
        store = try open()
        outbox = try await Outbox.test(store, clock)
        #expect(outbox.pending == 2)
        let again = try await outbox.lease(limit: 10).leases
        #expect(again.map(\.delivery.id) == ["\(first)-0"] && again.first?.attempt == 2)
        for lease in again { try await outbox.record(delivered, of: lease) }
        #expect(try await round(outbox, delivered) == ["second"])
        #expect(try await outbox.states(of: first) == [.delivered, .delivered])
        store.close()
    }
}
