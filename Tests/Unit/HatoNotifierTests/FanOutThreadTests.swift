import HatoModel
import HatoPush
import HatoStorage
import HatoTesting
import Logging
import Testing

@testable import HatoNotifier

/// Threads and withdrawals of notifications whose deliveries are made in pages.
@Suite(.timeLimit(.minutes(5))) struct FanOutThreadTests {
    private let clock = TestClock()

    private func outbox(_ store: any Store, atOnce: Int) async throws -> Outbox {
        try await Outbox.test(store, clock) { $0.limits.deliveriesAtOnceMax = atOnce }
    }

    private func send(_ recipients: NewNotification.Recipients, _ outbox: Outbox) async throws -> String {
        var new = outbox.notification("text")
        new.options = Notifier.DeliveryOptions()
        new.options?.thread = "c1"
        new.recipients = recipients
        let accepted = try await outbox.accept(new)
        #expect(accepted.isFannedOut)
        return try #require(accepted.notification)
    }

    private func turnAll(_ outbox: Outbox, after job: RecordKey? = nil) async throws {
        var last = job
        while let job = try await FanOutPages(outbox).turn(after: last) { last = job }
    }

    private func withdraw(_ outbox: Outbox) async throws {
        let withdrawals = Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let task = Task { await withdrawals.run() }
        try await eventually("nothing is to be withdrawn") { try outbox.store.snapshot().count(.withdrawal) == 0 }
        task.cancel()
        await task.value
    }

    private func count(_ outbox: Outbox, of uid: String) throws -> Int {
        let place = UserThread(uid: uid, thread: "c1")
        return try outbox.store.snapshot().readable(ThreadRecord.self, ThreadRecord.key(place))?.count ?? 0
    }

    private func shown(_ outbox: Outbox, _ id: String, of uid: String) throws -> [UInt32]? {
        let place = UserThread(uid: uid, thread: "c1")
        return try outbox.store.snapshot().readable(ShownRecord.self, ShownRecord.key(place, id))?.deliveries
    }

    /// Those of `u` are in three pages.
    private func sendToDevices(_ outbox: Outbox) async throws -> String {
        for (name, uid) in [("d0", "u"), ("d1", "v"), ("d2", "u"), ("d3", "w"), ("d4", "u")] {
            try await outbox.addDevice(name, of: uid)
        }
        return try await send(.devices(["d0", "d1", "d2", "d3", "d4"]), outbox)
    }

    @Test func aUserIsCountedOnceAlsoWhenItsDevicesAreInSeveralPages() async throws {
        let outbox = try await outbox(MemoryStore(), atOnce: 2)
        let id = try await sendToDevices(outbox)
        try await turnAll(outbox)
        for uid in ["u", "v", "w"] { #expect(try count(outbox, of: uid) == 1) }
        #expect(try shown(outbox, id, of: "u") == [0, 2, 4])
        #expect(try shown(outbox, id, of: "w") == [3])
        #expect(outbox.pending == 5 && outbox.fanOuts.waiting == 0)
    }

    @Test func aUserThatReadItBetweenPagesGetsNoMoreOfIt() async throws {
        let outbox = try await outbox(MemoryStore(), atOnce: 2)
        let id = try await sendToDevices(outbox)
        let first = try await FanOutPages(outbox).turn(after: nil)
        #expect(try count(outbox, of: "u") == 1)
        try await outbox.change { try ThreadSteps.setCount(0, of: UserThread(uid: "u", thread: "c1"), in: &$0) }
        try await withdraw(outbox)
        try await turnAll(outbox, after: first)
        #expect(try count(outbox, of: "u") == 0 && count(outbox, of: "w") == 1)
        #expect(try shown(outbox, id, of: "u") == nil)
        let deliveries = try #require(try await outbox.status(of: id)?.deliveries)
        #expect(deliveries.filter { $0.uid == "u" }.map(\.state) == [.dropped, .dropped, .dropped])
        #expect(deliveries.filter { $0.uid != "u" }.map(\.state) == [.pending, .pending])
    }

    @Test func theUsersOfATopicAreCountedUntilItIsWithdrawn() async throws {
        let store = try MemoryStore()
        let outbox = try await outbox(store, atOnce: 10)
        for number in 10..<40 {
            try await outbox.addDevice("a\(number)", of: "u\(number)")
            try await outbox.addDevice("b\(number)", of: "u\(number)")
        }
        for number in 10..<40 {
            _ = try await store.write { transaction in
                var changes = TopicChanges()
                _ = try changes.subscribe("u\(number)", to: "news", topicsMax: 9, in: transaction)
                try changes.writes.apply(to: transaction)
            }
        }
        let id = try await send(.topic("news"), outbox)
        let first = try await FanOutPages(outbox).turn(after: nil)
        #expect(try await outbox.status(of: id)?.deliveries.count == 10)
        for number in 10..<15 { #expect(try count(outbox, of: "u\(number)") == 1) }
        #expect(try await outbox.change { try ThreadSteps.beginWithdrawal(of: id, in: &$0) })
        try await turnAll(outbox, after: first)
        try await withdraw(outbox)
        let status = try await outbox.status(of: id)
        #expect(status?.deliveries.count == 10 && status?.deliveries.allSatisfy { $0.state == .dropped } == true)
        #expect(outbox.fanOuts.waiting == 0)
        for number in 10..<40 { #expect(try count(outbox, of: "u\(number)") == 0) }
        #expect(try store.snapshot().count(.shown) == 0)
        // Nothing needs its text; that it is withdrawn stays known.
        let record = try store.snapshot().readable(NotificationRecord.self, NotificationRecord.key(id))
        #expect(record?.hasTexts == false && record?.withdrawnAt != nil)
    }

    /// The response to an action may come long after the last delivery.
    @Test func whatResponsesWriteIsKeptWithTheNotification() async throws {
        let outbox = try await outbox(MemoryStore(), atOnce: 2)
        try await outbox.addDevice("d", of: "u")
        let category = Notifier.Category(id: "C", actions: [.init(id: "A", title: .init("t"))])
        try await outbox.change { $0.writes.put(CategoryRecord.key("C"), CategoryRecord(category: category)) }
        var new = outbox.notification("text", to: ["u"])
        (new.category, new.data) = ("C", ["chat": "c1"])
        let id = try #require(try await outbox.accept(new).notification)
        let lease = try #require(try await outbox.lease(limit: 1).leases.first)
        try await outbox.record(.delivered(.init(status: 200)), of: lease)
        let record = try outbox.store.snapshot().readable(NotificationRecord.self, NotificationRecord.key(id))
        #expect(record?.text.title == nil && record?.data == ["chat": "c1"] && record?.hasTexts == false)
    }

    @Test func reportsOnALargeNotificationAreRemovedWithIt() async throws {
        let store = try MemoryStore()
        let outbox = try await outbox(store, atOnce: 2)
        let id = try await sendToDevices(outbox)
        try await turnAll(outbox)
        try await outbox.change { draft in
            for uid in ["u", "v", "w"] {
                let response = ResponseRecord(action: "A", at: draft.now, effect: .none)
                draft.writes.put(ResponseRecord.key(id, uid), response)
            }
        }
        while true {
            let leases = try await outbox.lease(limit: 10).leases
            guard !leases.isEmpty else { break }
            for lease in leases { try await outbox.record(.delivered(.init(status: 200)), of: lease) }
        }
        clock.advance(by: .seconds(40 * 86_400))
        _ = try await outbox.purge()
        #expect(try await outbox.status(of: id) == nil)
        #expect(try store.snapshot().count(.response) == 0 && store.snapshot().count(.shown) == 0)
    }
}
