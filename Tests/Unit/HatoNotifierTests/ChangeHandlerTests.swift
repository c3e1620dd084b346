import HatoModel
import HatoRPC
import HatoStorage
import Logging
import Testing

@testable import HatoNotifier

/// What the turns of one feed accept.
@Suite struct ChangeHandlerTests {
    private let users = (10..<20).map { "u\($0)" }

    private func commit(_ version: UInt64) -> BufferedCommit {
        let change = FeedChange(
            pattern: "/a/{x}", parameters: ["x": "\(version)"], path: "/a/\(version)", type: .created,
            before: .null, after: true, uid: nil)
        return BufferedCommit(
            commit: FeedCommit(version: version, epoch: "e", time: 0, changes: [change]), reservation: nil)
    }

    /// A new recipient can have had a later notification already, unless the list could not be kept.
    @Test(arguments: [true, false])
    func allPartsOfANotificationGoToTheRecipientsOfTheFirst(isKept: Bool) async throws {
        let outbox = try await Outbox.test(MemoryStore(), TestClock()) {
            $0.limits.triggerBytesMax = 16 * 5 * TriggerBudget.bytesPerDelivery
        }
        for user in users + ["u99"] { try await outbox.addDevice(user, of: user) }
        let messages = MessagesClient(RPCClientConfiguration(host: "127.0.0.1", port: 1))
        let budget = TriggerBudget(outbox.limits)
        let full = isKept ? nil : budget.parted.reserveNow(budget.parted.bytes)
        let source = TriggerSource(
            database: .default, messages: messages, outbox: outbox, budget: budget,
            notices: ThrottledNotices(Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
        let trigger = Notifier.Triggers.Set(
            id: "t", pattern: try FeedPattern("/a/{x}"), recipients: .init(uids: users),
            notification: .init(title: "new", body: nil)
        ).trigger
        let feedTrigger = FeedTrigger(
            compiled: try CompiledTrigger(trigger, limits: outbox.limits),
            record: TriggerRecord(trigger: trigger, startsAfter: 0, epoch: "e"))
        let cursor = CursorRecord(version: 0, epoch: "e")
        try await outbox.change { draft in
            draft.writes.put(CursorRecord.key(source.database.rawValue), cursor)
        }
        let readings = FeedReadings(ended: {}) { try await source.read($0) }
        var handler = ChangeHandler(source, readings, [feedTrigger], cursor)
        #expect(handler.take([commit(1)]) == 0)
        _ = try await handler.turn()
        #expect(!handler.isIdle)
        #expect(isKept == (budget.parted.free > 0 && budget.parted.free < budget.parted.bytes))
        let newer = try await outbox.store.read { [users] snapshot in
            var list = RecipientList()
            try list.add(users + ["u99"], in: snapshot, .init(countMax: 100, bytesMax: 1 << 20))
            list.sort()
            return list
        }
        budget.lists.keep(newer, .init(database: .default, source: .named(by: "t")), readAt: budget.lists.tick())
        for _ in 0..<20 where !handler.isIdle { _ = try await handler.turn() }
        #expect(handler.isIdle)
        let notified = try await outbox.store.read { snapshot in
            try snapshot.rows(RecordKey(.delivery)).compactMap { try snapshot.record(DeliveryRecord.self, $0.key)?.uid }
        }
        #expect(notified.sorted() == users + (isKept ? [] : ["u99"]))
        withExtendedLifetime(full) {}
        #expect(budget.parted.free == (isKept ? budget.parted.bytes : 0))
        await readings.stop()
        await messages.close()
    }
}
