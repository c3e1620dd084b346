import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import TestAuth
import Testing

@testable import HatoNotifier

/// What users leave behind that are gone is removed in transactions of bounded size, also by a later process.
@Suite(.timeLimit(.minutes(5))) struct GoneUserTests {
    /// Writes rows of each kind, and a topic `all`.
    private func fill(_ uids: [String], topics: Int, in store: any Store) async throws {
        _ = try await store.write { transaction in
            var writes = RecordWrites()
            for uid in uids {
                for topic in ["all"] + (0..<topics).map({ "t\($0)-\(uid)" }) {
                    writes.put(TopicRecord.userKey(uid, topic))
                    writes.put(TopicRecord.subscriberKey(topic, uid))
                    if topic != "all" { writes.put(TopicRecord.key(topic), TopicRecord(users: 1)) }
                }
                writes.put(BadgeRecord.key(uid), BadgeRecord(total: 1, threads: 1))
                writes.put(ThreadRecord.key(UserThread(uid: uid, thread: "t")), ThreadRecord(count: 1, changed: 1))
                writes.put(MuteRecord.key(uid, "t"), MuteRecord(thread: "t", until: nil))
                var device = DeviceRecord(device: "d-\(uid)", uid: uid, platform: .webhook, createdAt: 0)
                (device.url, device.secret) = ("https://example.com/\(uid)", "s")
                writes.put(device.key, device)
                writes.put(device.userKey)
                writes.put(device.addressKey, bytes: Array(device.device.utf8))
            }
            writes.put(TopicRecord.key("all"), TopicRecord(users: uids.count))
            try writes.apply(to: transaction)
        }
    }

    /// But for those that say which users are gone.
    private func rows(_ store: any Store) throws -> [RecordKey] {
        try store.snapshot().rows(RecordKey(bytes: [])).map(\.key).filter { $0.bytes.prefix(1) != Self.former }
    }

    private static let former = RecordKey(.former).bytes[...]

    private func begin(_ uids: [String], in store: any Store) async throws -> [Bool] {
        try await store.write { transaction in
            var writes = RecordWrites()
            let begun = try uids.map { try GoneUsers.begin($0, at: 1_000, in: transaction, &writes) }
            try writes.apply(to: transaction)
            return begun
        }.outcome
    }

    /// Removes all; returns how many rows each page removed.
    private func removeAll(_ store: any Store) async throws -> (rows: [Int], devices: [String]) {
        var (removed, devices): ([Int], [String]) = ([], [])
        while true {
            let before = try rows(store).count
            let page = try await GoneUsers(store: store).removePage()
            removed.append(before - (try rows(store).count))
            devices += page.devices
            if page.isLast { return (removed, devices) }
        }
    }

    @Test func manyRowsOfAUserGoInPages() async throws {
        let store = try MemoryStore()
        try await fill(["a", "b"], topics: 2_500, in: store)
        #expect(try await begin(["a", "none"], in: store) == [true, false])
        #expect(try store.snapshot().count(.gone) == 1)
        let (removed, devices) = try await removeAll(store)
        #expect(removed.count == 3 && removed.allSatisfy { $0 <= 3_200 } && devices == ["d-a"])
        #expect(try TopicReading(store.snapshot()).users(of: "all", after: nil, limit: 9) == ["b"])
        #expect(try TopicReading(store.snapshot()).userCount(of: "all") == 1)
        let other = try MemoryStore()
        try await fill(["b"], topics: 2_500, in: other)
        #expect(try rows(store) == rows(other))
    }

    @Test func manyUsersGoInPages() async throws {
        let store = try MemoryStore()
        let uids = (1_000..<1_900).map { "u\($0)" }
        try await fill(uids, topics: 0, in: store)
        _ = try await begin(uids, in: store)
        let (removed, devices) = try await removeAll(store)
        #expect(removed.count == 4 && Set(devices).count == 900)
        #expect(try rows(store).isEmpty)
    }

    @Test func aDeviceThatCameSinceStays() async throws {
        let store = try MemoryStore()
        try await fill(["a"], topics: 1, in: store)
        _ = try await begin(["a"], in: store)
        _ = try await store.write { transaction in
            var device = DeviceRecord(device: "new", uid: "a", platform: .webhook, createdAt: 1_001)
            (device.url, device.secret) = ("https://example.com/new", "s")
            var writes = RecordWrites()
            writes.put(device.key, device)
            writes.put(device.userKey)
            try writes.apply(to: transaction)
        }
        #expect(try await removeAll(store).devices == ["d-a"])
        #expect(try store.snapshot().devices(of: "a").map(\.device) == ["new"])
    }

    /// A response and the deletion of its user may come at the same time.
    @Test func noResponseMakesRowsOfAUserThatIsGone() async throws {
        let outbox = try await Outbox.test(MemoryStore(), TestClock())
        try await outbox.addDevice("d", of: "a")
        var new = outbox.notification("1", to: ["a"])
        new.options = Notifier.DeliveryOptions()
        new.options?.thread = "c1"
        let id = try #require(try await outbox.accept(new).notification)
        _ = try await begin(["a"], in: outbox.store)
        _ = try await removeAll(outbox.store)
        let responding = Responding(
            notification: id, choice: .report(.opened), text: nil, responder: Responder(uid: "a"),
            limits: NotifierLimits())
        let error = await #expect(throws: ResponseRefusal.self) {
            try await outbox.change { try responding.apply(to: &$0) }
        }
        #expect(error == .refusedUser("user_not_found", isByToken: false))
        #expect(error?.rpcError.message.contains("replyToken") == false && error?.rpcError.data["parameter"] == nil)
        // Nor does the tree.
        try await outbox.change { try ThreadSteps.setCount(2, of: UserThread(uid: "a", thread: "c1"), in: &$0) }
        #expect(try outbox.store.snapshot().count(.badge) == 0 && outbox.store.snapshot().count(.response) == 0)
    }

    /// A process ended between two pages of `a`; the event of `b` comes to the next one.
    @Test func whatAProcessHasLeftGoesAtTheNextStart() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        try await fill(["a", "b"], topics: 2_500, in: store)
        _ = try await begin(["a"], in: store)
        _ = try await GoneUsers(store: store).removePage()
        let notifier = try await TestNotifier.start(store: store) { configuration in
            configuration.auth = RPCClientConfiguration(host: "127.0.0.1", port: auth.port)
            configuration.authKey = FakeAuth.key
        }
        let version = store.version
        try await auth.write(FakeEvent(.deleted, "b"))
        let tables: [RecordKey.Table] = [.topic, .badge, .mute, .device, .deviceOfUser, .deviceAtAddress, .gone]
        try await eventually("all is gone") {
            let snapshot = try store.snapshot()
            return try tables.allSatisfy { try snapshot.count($0) == 0 }
        }
        // The event, and three pages.
        #expect(store.version >= version + 4)
        await notifier.stop()
        await auth.stop()
    }
}
