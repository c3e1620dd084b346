import HatoFollow
import HatoModel
import HatoPush
import HatoStorage
import Logging
import Testing

@testable import HatoNotifier

/// Withdrawals of more deliveries than one transaction visits.
@Suite struct ThreadPageTests {
    @Test func aUserWhoseDevicesAreInTwoPagesGetsItOnBoth() async throws {
        let outbox = try await Outbox.test(MemoryStore(), TestClock())
        let users = (1...255).map { "u\($0)" } + ["last"]
        for user in users { try await outbox.addDevice("d-\(user)", of: user) }
        try await outbox.addDevice("d-more", of: "last")
        var new = outbox.notification("1", to: users)
        (new.isCounted, new.options) = (false, Notifier.DeliveryOptions())
        new.options?.thread = "c1"
        let id = try #require(try await outbox.accept(new).notification)
        func rounds() async throws -> [DeliveryContent] {
            var contents: [DeliveryContent] = []
            while case let leases = try await outbox.lease(limit: 100).leases, !leases.isEmpty {
                for lease in leases { try await outbox.record(.delivered(DeliveryResponse(status: 200)), of: lease) }
                contents += leases.map(\.delivery.content)
            }
            return contents
        }
        _ = try await rounds()
        let withdrawals = Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        _ = try await withdrawals.withdraw(.notification(id)) { _ = try ThreadSteps.beginWithdrawal(of: id, in: &$0) }
        let silent = try await rounds()
        #expect(silent.count == 257 && silent.allSatisfy { $0.hato.withdraw == [id] })
    }

    // MARK: Turns

    private let clock = TestClock()

    private func send(to uid: String, in thread: String, times: Int = 1, _ outbox: Outbox) async throws {
        for _ in 0..<times {
            // Ids of one millisecond have no order.
            clock.advance(by: .milliseconds(1))
            var new = outbox.notification("1", to: [uid])
            new.options = Notifier.DeliveryOptions()
            new.options?.thread = thread
            try await outbox.accept(new)
        }
    }

    /// Reads threads, and returns the users of the pages that withdraw them, with how many notifications each has.
    private func pages(
        reading threads: [UserThread], _ outbox: Outbox
    ) async throws -> [(uid: String, notifications: Int)] {
        try await outbox.change { draft in
            for thread in threads { try ThreadSteps.setCount(0, of: thread, in: &draft) }
        }
        let version = outbox.store.version
        try await Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }).runAll()
        #expect(try outbox.store.snapshot().count(.withdrawal) == 0)
        return try outbox.store.commits(after: version, limit: 1_000).compactMap { commit in
            let uids = OutboxEvent.events(of: commit).filter { $0.type == .withdrawn }.compactMap(\.uid)
            #expect(Set(uids).count <= 1)
            return uids.first.map { ($0, uids.count) }
        }
    }

    @Test func aUserThatReadsMuchDelaysNoOther() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        for uid in ["a", "b"] { try await outbox.addDevice("d-\(uid)", of: uid) }
        try await send(to: "a", in: "c1", times: 600, outbox)
        for number in 100..<170 { try await send(to: "a", in: "t\(number)", outbox) }
        try await send(to: "b", in: "c1", outbox)
        let threads = try outbox.store.snapshot().rows(ThreadRecord.prefix("a")).compactMap { row in
            ThreadRecord.thread(row.key).map { UserThread(uid: "a", thread: $0) }
        }
        #expect(threads.count == 71)
        let pages = try await pages(reading: threads + [UserThread(uid: "b", thread: "c1")], outbox)
        #expect(pages.map(\.uid).prefix(4) == ["a", "b", "a", "a"])
        #expect(pages.map(\.notifications).reduce(0, +) == 671)
    }

    /// What came since is looked at once, in pages.
    @Test func whatCameAfterAWithdrawalIsPassedOverInPages() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d", of: "a")
        try await send(to: "a", in: "c1", times: 3, outbox)
        let place = UserThread(uid: "a", thread: "c1")
        try await outbox.change { draft in
            try ThreadSteps.setCount(0, of: place, in: &draft)
            // As they come while the withdrawal waits for its turn.
            for number in 0..<2_500 {
                let row = ShownRecord(deliveries: [0], isCounted: false, accepted: draft.transaction.nextVersion + 1)
                draft.writes.put(ShownRecord.key(place, "ntf_z\(10_000 + number)"), row)
            }
        }
        let version = outbox.store.version
        try await Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }).runAll()
        let snapshot = try outbox.store.snapshot()
        #expect(try snapshot.count(.withdrawal) == 0 && snapshot.count(.shown) == 2_500)
        // 1,024 rows, as many, and the rest with the three.
        #expect(outbox.store.version == version + 3)
    }

    @Test func aPageTakesAccountOfDevices() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        for number in 10..<30 { try await outbox.addDevice("d\(number)", of: "a") }
        try await send(to: "a", in: "c1", times: 40, outbox)
        let pages = try await pages(reading: [UserThread(uid: "a", thread: "c1")], outbox)
        // 256 deliveries, and what the last notification has more.
        #expect(pages.map(\.notifications) == [13, 13, 13, 1])
    }

    /// Else a user that reads and forgets all the time fills the disk with them.
    @Test func aSilentPushThatArrivedIsDeletedSoon() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d", of: "a")
        let before = try outbox.store.snapshot().count(.notification)
        for count in [1, 0] {
            try await outbox.change { draft in
                try ThreadSteps.setCount(count, of: UserThread(uid: "a", thread: "c1"), in: &draft)
            }
            try await Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }).runAll()
        }
        #expect(try await outbox.deliverAll().count == 1)
        clock.advance(by: .seconds(7_201))
        _ = try await outbox.purge()
        #expect(try outbox.store.snapshot().count(.notification) == before)
        #expect(try outbox.store.snapshot().count(.delivery) == 0 && outbox.store.snapshot().count(.purge) == 0)
    }
}
