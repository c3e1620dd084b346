import HatoModel
import HatoPush
import HatoStorage
import Testing

@testable import HatoNotifier

@Suite(.timeLimit(.minutes(10))) struct KnownDevicesTests {
    private let clock = TestClock()

    private func leased(_ outbox: Outbox) async throws -> [Lease] {
        let leases = try await outbox.lease(limit: 100).leases
        for lease in leases {
            try await outbox.record(.delivered(DeliveryResponse(status: 200)), of: lease)
        }
        return leases
    }

    /// Writes rows as all parts of the notifier do.
    private func write(_ outbox: Outbox, _ body: @escaping @Sendable (inout RecordWrites) -> Void) async throws {
        _ = try await outbox.store.write { transaction in
            var writes = RecordWrites()
            body(&writes)
            try writes.apply(to: transaction)
        }
    }

    @Test func theDevicesOfAUserThatIsSentToAreKnown() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        #expect(try await outbox.accept(outbox.notification("a", to: ["u1"])).recipients == 1)
        #expect(try await outbox.accept(outbox.notification("b", to: ["u1"])).recipients == 1)
        let known = try await outbox.change { $0.transaction.knownDevices?.devices(of: "u1")?.map(\.device) }
        #expect(known == ["d1"])
    }

    @Test func aNewDeviceAndOneThatIsGoneAreSeenByTheNextTransaction() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        for title in ["a", "b"] { try await outbox.send(title, to: ["u1"]) }
        try await outbox.addDevice("d2", of: "u1")
        #expect(try await outbox.accept(outbox.notification("c", to: ["u1"])).recipients == 2)
        let device = try await outbox.store.read { try $0.record(DeviceRecord.self, DeviceRecord.key("d1")) }
        let first = try #require(device)
        try await write(outbox) { first.delete(in: &$0) }
        #expect(try await outbox.accept(outbox.notification("d", to: ["u1"])).recipients == 1)
        // What waited for the device that is gone is not sent.
        #expect(Set(try await leased(outbox).map(\.delivery.content.device)) == ["d2"])
    }

    @Test func aChangedDeviceIsSentToAsItIsNow() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        try await outbox.send("a", to: ["u1"])
        let before = try #require(try await leased(outbox).first)
        let device = try await outbox.store.read { try $0.record(DeviceRecord.self, DeviceRecord.key("d1")) }
        var changed = try #require(device)
        let secret = try WebhookSecret("whsec_" + String(repeating: "A", count: 32))
        changed.secret = secret.text
        try await write(outbox) { [changed] in $0.put(changed.key, changed) }
        try await outbox.send("b", to: ["u1"])
        let after = try #require(try await leased(outbox).first)
        guard case .webhook(_, let secrets) = after.delivery.address else {
            Issue.record("the device is no webhook")
            return
        }
        #expect(secrets == [secret])
        #expect(after.delivery.address != before.delivery.address)
    }

    @Test func whatATransactionThatFailsWouldHaveWrittenIsNotKnown() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        try await outbox.send("a", to: ["u1"])
        let device = try await outbox.store.read { try $0.record(DeviceRecord.self, DeviceRecord.key("d1")) }
        let record = try #require(device)
        await #expect(throws: OutboxRefusal.unknownDevice("d9")) {
            try await outbox.change { draft in
                record.delete(in: &draft.writes)
                try draft.writes.apply(to: draft.transaction)
                throw OutboxRefusal.unknownDevice("d9")
            }
        }
        #expect(try await outbox.accept(outbox.notification("b", to: ["u1"])).recipients == 1)
    }

    @Test func moreDevicesThanAreKnownAreReadAgain() throws {
        let known = KnownDevices()
        for number in 0..<20_000 {
            let uid = "u\(number / 2)"
            known.remember(
                DeviceRecord(device: "d\(number)", uid: uid, platform: .webhook, createdAt: 0))
        }
        #expect(known.device("d0") == nil)
        #expect(known.device("d19999") != nil)
        #expect(known.devices(of: "u9999") == nil)
    }
}
