import HatoModel
import HatoStorage
import Testing

@testable import HatoNotifier

/// Receivers of actions that no category names any more go, but not before all reports to them have ended.
@Suite(.timeLimit(.minutes(5))) struct UnnamedReceiverTests {
    private func url(_ name: String) -> String { "https://example.com/\(name)" }

    private func category(_ id: String, naming names: [String]) -> Notifier.Category {
        .init(
            id: id,
            actions: names.map { name in
                var action = Notifier.CategoryAction(id: name, title: .init("a"))
                action.effect = .webhook(url(name))
                return action
            })
    }

    private func effect(_ kind: EffectKind, of uid: String, to name: String) -> EffectRecord {
        EffectRecord(
            notification: "n", uid: uid, action: "A", kind: kind, path: .root, value: .string(url(name)), fills: [:],
            respondedAt: 0, dueAt: 0)
    }

    /// With the receivers `named` by a category, `reported` to by an effect, with a delivery that is `waiting`, and
    /// others.
    private func outbox(others: [String]) async throws -> Outbox {
        let outbox = try await Outbox.test(MemoryStore(), TestClock())
        let named = CategoryRecord(category: category("NAMED", naming: ["named"]))
        let effects = [effect(.webhook, of: "u1", to: "reported"), effect(.set, of: "u2", to: others[0])]
        try await outbox.change { draft in
            for name in ["named", "reported", "waiting"] + others {
                var device = DeviceRecord(device: name, uid: "", platform: .webhook, createdAt: 0)
                (device.url, device.secret) = (url(name), "s")
                draft.writes.put(device.key, device)
                draft.writes.put(device.addressKey, bytes: Array(device.device.utf8))
            }
            draft.writes.put(CategoryRecord.key("NAMED"), named)
            for effect in effects { draft.writes.put(effect.key, effect) }
            // One that cannot be read will not be done.
            draft.writes.put(EffectRecord.key("n", "u3"), bytes: [0xFF])
            draft.writes.put(Lane(device: "waiting", collapseKey: nil).prefix.with(1 as UInt64))
        }
        return outbox
    }

    private func receivers(_ outbox: Outbox) throws -> [String] {
        let rows = try outbox.store.snapshot().rows(RecordKey(.deviceAtAddress))
        return rows.map { String(decoding: $0.value, as: UTF8.self) }
    }

    @Test func theyGoBesideEffectsThatAreNotForThem() async throws {
        let outbox = try await outbox(others: ["unnamed"])
        try await SilentDevices(outbox: outbox).remove()
        #expect(try receivers(outbox) == ["named", "reported", "waiting"])
        // It is not known what a category names that cannot be read.
        try await outbox.change { draft in
            draft.writes.delete(EffectRecord.key("n", "u1"))
            draft.writes.put(CategoryRecord.key("OTHER"), bytes: [0xFF])
        }
        try await SilentDevices(outbox: outbox).remove()
        #expect(try receivers(outbox) == ["named", "reported", "waiting"])
        try await outbox.change { $0.writes.delete(CategoryRecord.key("OTHER")) }
        try await SilentDevices(outbox: outbox).remove()
        #expect(try receivers(outbox) == ["named", "waiting"])
    }

    /// What waits for them is of a category that named them before.
    @Test func anotherCategoryThatGoesTakesNoReceiverWithReports() async throws {
        let outbox = try await outbox(others: ["unused"])
        let category = category("OTHER", naming: ["named", "reported", "unused", "waiting"])
        let gone = try await outbox.change { try ActionReceivers.remove(of: category, in: &$0) }
        #expect(try gone == ["unused"] && receivers(outbox) == ["named", "reported", "waiting"])
    }
}
