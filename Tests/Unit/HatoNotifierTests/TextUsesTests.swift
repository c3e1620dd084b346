import HatoModel
import HatoPush
import HatoStorage
import Testing

@testable import HatoNotifier

/// What a notification says is kept while a delivery may need it, and no longer.
@Suite(.timeLimit(.minutes(5))) struct TextUsesTests {
    private let clock = TestClock()
    private let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 200))

    private func outbox() async throws -> Outbox {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        for user in 1...3 { try await outbox.addDevice("d\(user)", of: "u\(user)") }
        return outbox
    }

    /// A notification with all that can be in it.
    private func send(_ outbox: Outbox, to uids: [String], collapseKey: String? = nil) async throws -> String {
        var new = outbox.notification("title", to: uids, collapseKey: collapseKey)
        new.text.body = "body"
        new.localized = ["ja": .init(title: "題")]
        new.data = ["secret": "s"]
        var options = Notifier.DeliveryOptions()
        (options.image, options.link, options.thread) = ("https://e.com/i", "https://e.com/l", "c1")
        new.options = options
        new.platforms = Notifier.PlatformMembers()
        return try #require(try await outbox.accept(new).notification)
    }

    private func record(_ outbox: Outbox, _ id: String) async throws -> NotificationRecord {
        try #require(try await outbox.store.read { try $0.record(NotificationRecord.self, NotificationRecord.key(id)) })
    }

    private func hasTexts(_ outbox: Outbox, _ id: String) async throws -> Bool {
        let record = try await record(outbox, id)
        let shown = try await outbox.status(of: id)
        #expect(shown?.title == record.text.title && shown?.body == record.text.body)
        let options = record.options
        let parts = [
            record.text.title != nil, record.text.body != nil, record.localized != nil, !record.data.isEmpty,
            record.platforms != nil, options?.image != nil, options?.link != nil,
        ]
        // All of them or none.
        #expect(Set(parts).count == 1)
        #expect(options?.thread == "c1" && record.id == id)
        return parts[0]
    }

    private func usesRows(_ outbox: Outbox) async throws -> Int {
        try await outbox.store.read { try $0.count(.textUses) }
    }

    private func end(_ outbox: Outbox, _ outcome: DeliveryOutcome) async throws {
        let lease = try #require(try await outbox.lease(limit: 1).leases.first)
        try await outbox.record(outcome, of: lease)
    }

    @Test func textsGoWithTheOnlyDelivery() async throws {
        let outbox = try await outbox()
        let id = try await send(outbox, to: ["u1"])
        #expect(try await hasTexts(outbox, id))
        #expect(try await usesRows(outbox) == 0)
        try await end(outbox, ScriptedChannel.busy)
        #expect(try await hasTexts(outbox, id))
        clock.advance(by: .seconds(700))
        try await end(outbox, delivered)
        #expect(try await !hasTexts(outbox, id))
        #expect(try await usesRows(outbox) == 0)
    }

    @Test func textsGoWithTheLastDelivery() async throws {
        let outbox = try await outbox()
        let id = try await send(outbox, to: ["u1", "u2", "u3"])
        #expect(try await usesRows(outbox) == 1)
        for _ in 0..<2 { try await end(outbox, delivered) }
        #expect(try await hasTexts(outbox, id))
        try await outbox.dropDeliveries(
            of: try #require(outbox.status(of: id)?.deliveries.first { $0.state == .pending }).device)
        #expect(try await !hasTexts(outbox, id))
        #expect(try await usesRows(outbox) == 0)
    }

    @Test func aNumberThatNoTransactionWroteStopsNothing() async throws {
        let outbox = try await outbox()
        let id = try await send(outbox, to: ["u1", "u2"])
        for number in ["9223372036854775807", "-9223372036854775808"] {
            try await outbox.change { $0.writes.put(TextUses.key(id), bytes: Array(number.utf8)) }
            // A job of the notification would add one.
            try await outbox.change { $0.texts.add(1, to: id) }
            try await outbox.change { $0.texts.add(-1, to: id) }
        }
        #expect(try await record(outbox, id).id == id)
    }

    @Test func severalThatEndInOneTransactionCountEach() async throws {
        let outbox = try await outbox()
        let id = try await send(outbox, to: ["u1", "u2", "u3"])
        let leases = try await outbox.lease(limit: 3).leases
        _ = try await outbox.record(leases.map { EndedAttempt(outcome: delivered, lease: $0) })
        #expect(try await !hasTexts(outbox, id))
        #expect(try await usesRows(outbox) == 0)
    }

    @Test(arguments: [1, 2]) func aDeadOneKeepsThemUntilItIsDroppedOrReplayed(_ devices: Int) async throws {
        let outbox = try await outbox()
        let uids = (1...devices).map { "u\($0)" }
        let id = try await send(outbox, to: uids)
        for _ in uids { try await end(outbox, ScriptedChannel.wrong) }
        #expect(try await hasTexts(outbox, id) && outbox.deadCount == devices)
        #expect(try await outbox.replay(.these(["\(id)-0"])) == 1)
        let lease = try #require(try await outbox.lease(limit: 1).leases.first)
        #expect(lease.delivery.content.text.title == "title" && lease.delivery.content.data == ["secret": "s"])
        #expect(try await hasTexts(outbox, id))
        try await outbox.record(delivered, of: lease)
        #expect(try await hasTexts(outbox, id) == (devices == 2))
        #expect(try await outbox.drop(.all) == devices - 1)
        #expect(try await !hasTexts(outbox, id))
        #expect(try await usesRows(outbox) == 0)
    }

    @Test func whatHasNoDeviceKeepsNone() async throws {
        let outbox = try await outbox()
        #expect(try await !hasTexts(outbox, send(outbox, to: ["u9"])))
    }

    @Test func replacedOnesLoseThem() async throws {
        let outbox = try await outbox()
        let first = try await send(outbox, to: ["u1", "u2"], collapseKey: "k")
        let second = try await send(outbox, to: ["u1"], collapseKey: "k")
        #expect(try await hasTexts(outbox, first))
        #expect(try await hasTexts(outbox, second))
        let third = try await send(outbox, to: ["u1", "u2"], collapseKey: "k")
        #expect(try await !hasTexts(outbox, first))
        #expect(try await !hasTexts(outbox, second))
        #expect(try await hasTexts(outbox, third))
    }

    @Test func textsStayWhilePartsAreToCome() async throws {
        let outbox = try await outbox()
        let cursor = CursorRecord(version: 1, epoch: "e")
        try await outbox.change { $0.writes.put(CursorRecord.key("default"), cursor) }
        func accept(_ user: Int, isLast: Bool) async throws -> String {
            var new = outbox.notification("title", key: "firing")
            let device = DeviceRecord(device: "d\(user)", uid: "u\(user)", platform: .webhook, createdAt: 0)
            new.recipients = .part(
                RecipientPart(recipients: [Recipient(device)], total: 2, leftOut: 0, isLast: isLast))
            let rows = ChangeRows(outbox: outbox, database: .default)
            return try #require(try await rows.accept([new], of: []).notifications.first?.notification)
        }
        let id = try await accept(1, isLast: false)
        try await end(outbox, delivered)
        #expect(try await record(outbox, id).text.title == "title")
        _ = try await accept(2, isLast: true)
        let lease = try #require(try await outbox.lease(limit: 1).leases.first)
        #expect(lease.delivery.content.text.title == "title")
        try await outbox.record(delivered, of: lease)
        #expect(try await record(outbox, id).text.title == nil)
    }

    @Test func notificationsOfAnEarlierVersionAreCounted() async throws {
        let outbox = try await outbox()
        let id = try await send(outbox, to: ["u1", "u2", "u3"])
        try await end(outbox, delivered)
        try await outbox.change { $0.writes.delete(TextUses.key(id)) }
        try await end(outbox, delivered)
        #expect(try await hasTexts(outbox, id))
        #expect(try await usesRows(outbox) == 1)
        try await end(outbox, delivered)
        #expect(try await !hasTexts(outbox, id))
        #expect(try await usesRows(outbox) == 0)
    }

    @Test func deliveriesThatCannotBeReadKeepNone() async throws {
        let outbox = try await outbox()
        let id = try await send(outbox, to: ["u1", "u2"])
        try await outbox.change { $0.writes.put(DeliveryRecord.key(id, 0), bytes: [1]) }
        for lease in try await outbox.lease(limit: 9).leases { try await outbox.record(delivered, of: lease) }
        #expect(outbox.pending == 0)
        #expect(try await !hasTexts(outbox, id))
    }

    @Test func whatIsPurgedLeavesNoRow() async throws {
        let outbox = try await outbox()
        let before = try await outbox.store.read { try $0.keys(RecordKey(bytes: []), limit: .max) }
        _ = try await send(outbox, to: ["u1", "u2"])
        try await end(outbox, delivered)
        try await end(outbox, ScriptedChannel.wrong)
        clock.advance(by: .seconds(40 * 86_400))
        _ = try await outbox.purge()
        let after = try await outbox.store.read { try $0.keys(RecordKey(bytes: []), limit: .max) }
        // What the users have not read stays counted.
        #expect(after.filter { $0.bytes.first != RecordKey.Table.badge.rawValue } == before)
    }
}
